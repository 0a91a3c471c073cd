# SPDX-License-Identifier: Apache-2.0
"""Training with `import ddl`, by scripts of the kinds that IBM DDL's users have."""

import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

import conftest

pytest.importorskip("tensorflow")

IMPORTED = conftest.TENSORFLOW + """
import ddl
rank, size = ddl.rank(), ddl.size()
def same_on_all(values):
    values = tf.concat([tf.reshape(tf.cast(each, tf.float64), [-1]) for each in values], 0)
    same(ddl.bcast(values), values)
    return values.numpy()
"""
# What one process makes of the whole batch, and what all ranks make of theirs, is the same.
KERAS = IMPORTED + """
import keras
inputs = np.random.default_rng(1).normal(size=(12, 4)).astype(np.float32)
targets = inputs.sum(1, keepdims=True)
part = slice(rank * 12 // size, (rank + 1) * 12 // size)
def net(seed):
    keras.utils.set_random_seed(seed)
    return keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3, activation="tanh"), keras.layers.Dense(1)])
class Heard(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None): self.heard = dict(logs)
"""


@pytest.mark.parametrize("count", [1, 2, 3])
def test_fit_is_that_of_the_whole_batch(ranks, count):
    ranks(count, KERAS + """
weights = {}
for optimizer in ("sgd", "adam") + ("loss_scale",) * hasattr(keras.optimizers, "LossScaleOptimizer"):  # which Keras 3 has there
    def made(size):
        inner = keras.optimizers.Adam(0.01) if optimizer == "adam" else keras.optimizers.SGD(0.1, momentum=0.9)
        return keras.optimizers.LossScaleOptimizer(inner, initial_scale=8.0) if optimizer == "loss_scale" else inner
    model = net(1 + rank)  # whose weights are rank 0's
    first = [each.copy() for each in model.get_weights()]
    same_on_all(first)
    heard = Heard()
    model.compile(made(size), "mse", metrics=["mae"])
    model.fit(inputs[part], targets[part], batch_size=12, epochs=3, shuffle=False, verbose=0, callbacks=[ddl.DDLCallback(), heard])
    same_on_all(model.get_weights())
    same_on_all([heard.heard["loss"], heard.heard["mae"]])
    alone = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3, activation="tanh"), keras.layers.Dense(1)])
    alone.set_weights(first)
    alone.compile(made(1), "mse")
    alone.fit(inputs, targets, batch_size=12, epochs=3, shuffle=False, verbose=0)  # on each rank the same
    for found, expected in zip(model.get_weights(), alone.get_weights()):
        assert np.allclose(found, expected, atol=1e-5), (optimizer, found, expected)
""", preamble="")


def test_callbacks(ranks):
    ranks(2, KERAS + """
model = net(1)
model.compile("adam", "mse")
model.fit(inputs, targets, epochs=1, verbose=0)
model.set_weights([each + rank for each in model.get_weights()])  # as if a rank had loaded another file
model.optimizer.variables[-1].assign(tf.ones_like(model.optimizer.variables[-1]) * rank)
class Equal(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        same_on_all(self.model.get_weights())
        same_on_all([each.numpy() for each in self.model.optimizer.variables])
model.fit(inputs, targets, epochs=1, verbose=0, callbacks=[ddl.DDLGlobalVariablesCallback(), Equal()])
logs = {"loss": rank + 0.5, "words": "kept"}
ddl.DDLCallback().on_epoch_end(0, logs)
assert logs == {"loss": 1.0, "words": "kept"}
with refused(errors.InvalidArgumentError, "elements, this rank"):
    ddl.DDLCallback().on_epoch_end(0, {"loss": 1.0} if rank else {"loss": 1.0, "val_loss": 2.0})
""", preamble="")


def test_variables_and_a_tape(ranks):
    ranks(3, """
trained = tf.Variable(tf.fill([3], float(rank)))
deferred = tf.Variable(lambda: tf.fill([2], rank + 5.0), trainable=True)
kept = tf.Variable(tf.fill([3], float(rank)), trainable=False)
words = tf.Variable("of rank %d" % rank)
whole = tf.Variable([rank], dtype=tf.int64)
same(trained, [0, 0, 0])
same(deferred, [5, 5])
same(whole, [0])
same(kept, [rank] * 3)
assert words.numpy().decode() == "of rank %d" % rank

@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(trained * (rank + 1.0)) + tf.reduce_sum(tf.gather(deferred, [rank % 2]))
    pairs = ddl.grads_reduce(zip(tape.gradient(loss, [trained, deferred]), [trained, deferred]))
    assert pairs[0][1] is trained and pairs[1][1] is deferred
    return [each for each, _ in pairs]
gradients = step()
same(gradients[0], [2, 2, 2])
assert np.allclose(gradients[1], [2 / 3, 1 / 3])  # which were slices
found = ddl.allreduce_n([tf.ones(2), None, tf.constant([rank], tf.int32), tf.ones(1, tf.float16)], average=False)
same(found[0], [3, 3])
assert found[1] is None and found[2].dtype == tf.int32 and found[3].dtype == tf.float16
same(found[2], [3])
optimizer = tf.keras.optimizers.SGD(1.0)
optimizer.apply_gradients([(tf.fill([3], float(rank)), trained)])
same(trained, [-1, -1, -1])
if hasattr(optimizer, "apply"):  # of Keras 3
    optimizer.apply([tf.fill([3], float(rank))], [trained])
    same(trained, [-2, -2, -2])
with refused(RuntimeError, f"ddl.init, rank {rank}: DDL is started already, with \\"-mode p:3x1x1x1 \\"; call it once"):
    ddl.init("")
""", preamble=IMPORTED)


@pytest.mark.parametrize("kind", ["keras", "compat.v1"])
def test_gradients_that_overflow_on_one_rank(ranks, kind):
    """Whether a step is taken is decided by averages, on all ranks alike."""
    ranks(2, f"KIND = {kind!r}\n" + """
import keras
variable = tf.Variable([1.0, 2.0])
if KIND == "keras":
    scaled = getattr(keras.optimizers, "LossScaleOptimizer", None) or keras.mixed_precision.LossScaleOptimizer
    optimizer = scaled(keras.optimizers.SGD(1.0), initial_scale=1.0)
else:
    optimizer = v1.train.experimental.MixedPrecisionLossScaleOptimizer(v1.train.GradientDescentOptimizer(1.0), "dynamic")
def step(values):
    optimizer.apply_gradients([(tf.constant(values), variable)])
    same_on_all([variable])
step([float("inf") if rank else 1.0, 1.0])
same(variable, [1, 2])  # nobody has taken it
step([float(rank), 4.0 * rank])
assert variable.numpy()[1] < 2
""", preamble=IMPORTED)


def test_a_broadcast_inside_functions_of_functions(ranks):
    ranks(2, """
@tf.function
def repeated(x):
    y = ddl.bcast(x)
    for _ in tf.range(3):
        y = ddl.bcast(y + rank)
    return tf.cond(tf.reduce_sum(y) > 0, lambda: ddl.bcast(y), lambda: y)
same(repeated(tf.fill([2], rank + 1.0)), [1, 1])
""", preamble=IMPORTED)


def test_a_graph_that_was_saved(ranks):
    ranks(2, """
with tf.Graph().as_default():
    v1.get_variable("first", [2], initializer=v1.random_normal_initializer())
    saved = v1.train.export_meta_graph(f"of_rank_{rank}.meta")
with tf.Graph().as_default():
    v1.train.import_meta_graph(f"of_rank_{rank}.meta")
    variable = v1.get_variable("second", [2], initializer=v1.constant_initializer(rank + 3.0))
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        same(session.run(variable), [3, 3])
""", preamble=IMPORTED)


def test_gradients_of_several_types_keep_one_order(ranks):
    ranks(2, """
with tf.Graph().as_default() as graph:
    pairs = [(tf.ones([250_000], dtype), None) for dtype in 3 * [tf.float32, tf.float64]]
    ddl.grads_reduce(pairs)
    all = [each for each in graph.get_operations() if each.type == "AllReduceN"]
    assert len(all) == 6
    for before, behind in zip(all, all[1:]):
        assert before in behind.control_inputs, (before.name, behind.name)
""", preamble=IMPORTED, variables={"DDL_GROUP_SIZE": "500000"})


def test_an_exported_model_needs_no_operators(ranks):
    ranks(2, """
from tensorflow.core.protobuf import saved_model_pb2
model = net(rank)
model.compile("sgd", "mse")
assert not model.jit_compile, "XLA has none of the operators"
model.fit(inputs, targets, verbose=0)
if rank == 0:  # alone
    (model.export if keras.__version__[0] == "3" else model.save)("exported")
    read = saved_model_pb2.SavedModel.FromString(open("exported/saved_model.pb", "rb").read())
    graph = read.meta_graphs[0].graph_def
    serving = [each.op for each in graph.node] + [each.op for function in graph.library.function
                                                  if "train" not in function.signature.name for each in function.node_def]
    assert "MatMul" in serving and "Bcast" not in serving
same_on_all(model.get_weights())
""", preamble=KERAS)


@pytest.mark.parametrize("first", [True, False], ids=["first", "afterwards"])
def test_scripts_that_load_the_operators_too(ranks, tmp_path, first):
    """By whatever path."""
    folders = os.environ.get("DDL_LIBRARY_PATH", "").split(os.pathsep)
    (tmp_path / "lib").symlink_to(next(each for each in folders if (pathlib.Path(each) / "ddl_MDR.so").exists()))
    by_link = str(tmp_path / "lib" / "ddl_MDR.so")
    ranks(2, f"""
before = tf.load_op_library({by_link!r}) if {first} else None
import ddl
for path in ("/opt/DL/ddl-tensorflow/lib/ddl_MDR.so", {by_link!r}, ddl.operator_library()):
    operators = tf.load_op_library(path)
    assert before in (None, operators)
    same(operators.all_reduce(tf.ones(3), op="sum"), [2, 2, 2])
same(ddl.bcast(tf.ones(3)), [1, 1, 1])
""", preamble=conftest.TENSORFLOW)


# What TensorFlow makes inside the trace of the first step.
BUILT_LATE = KERAS + """
class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.last = keras.layers.Dense(3, activation="tanh"), keras.layers.Dense(1)
    def call(self, given): return self.last(self.first(given))
def sequential(): return keras.Sequential([keras.layers.Dense(3), keras.layers.BatchNormalization(), keras.layers.Dense(1)])
keras.utils.set_random_seed(1 + rank)
"""


def test_models_that_are_built_while_they_train(ranks):
    ranks(2, BUILT_LATE + """
for make in (sequential, Subclassed):
    for callbacks in ([], [ddl.DDLGlobalVariablesCallback()]):
        model = make()
        model.compile("sgd", "mse")
        model.fit(inputs[part], targets[part], verbose=0, callbacks=callbacks)
        same_on_all(model.trainable_variables)
model, optimizer = Subclassed(), keras.optimizers.SGD(0.1)
@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
for _ in range(2): step(inputs[part], targets[part])
same_on_all(model.trainable_variables)
""", preamble="")


def test_variables_that_a_function_makes(ranks):
    """Those of the tensors of its trace stay as they are."""
    ranks(2, """
made = []
eager = tf.fill([2], rank + 2.0)
@tf.function
def step(x):
    if not made:
        made.extend([tf.Variable([rank + 1.0]), tf.Variable(lambda: tf.fill([2], rank + 3.0)), tf.Variable(eager),
                     tf.Variable(rank, dtype=tf.int64), tf.Variable(rank + 1.0, trainable=False),
                     tf.Variable("of rank %d" % rank), tf.Variable(2 * x), tf.Variable(lambda: 3 * x)])
    return made[0] + made[1]
for _ in range(2):
    same(step(tf.constant(rank + 1.0)), [4, 4])
for each, expected in zip(made, ([1], [3, 3], [2, 2], 0, rank + 1, b"of rank %d" % rank, 2 * (rank + 1), 3 * (rank + 1))):
    same(each.numpy(), expected)
""", preamble=IMPORTED)


def test_models_are_compiled_as_they_were_when_they_are_read_or_cloned(ranks):
    ranks(2, KERAS + """
model = net(1)
model.compile("sgd", "mse", None, None, None, False, 1, False)  # the last is jit_compile
model.compile("sgd", "mse", jit_compile=True)  # as a file says of a model that was made where it is compiled by XLA
model.save(f"of_rank_{rank}.keras")
read = keras.models.load_model(f"of_rank_{rank}.keras")
assert read.optimizer is not None and not read.jit_compile
read.fit(inputs[part], targets[part], verbose=0)
same_on_all(read.get_weights())
if keras.__version__[0] == "3":
    assert keras.models.clone_model(model).compiled
""", preamble="")


def test_slices_that_do_not_say_of_what(ranks):
    """Their variable does."""
    ranks(2, """
slices = lambda: tf.IndexedSlices(tf.fill([2, 2], rank + 1.0), [1, 1])
variable = tf.Variable(tf.zeros([3, 2]))
same(ddl.grads_reduce([(slices(), variable)])[0][0], [[0, 0], [3, 3], [0, 0]])
for optimizer in (tf.keras.optimizers.SGD(1.0), v1.train.GradientDescentOptimizer(1.0)):
    before = variable.numpy()
    optimizer.apply_gradients(grads_and_vars=[(slices(), variable)])
    same(before - variable, [[0, 0], [3, 3], [0, 0]])
if hasattr(tf.keras.optimizers.SGD, "apply"):  # of Keras 3
    optimizer = tf.keras.optimizers.SGD(1.0)
    optimizer.build([variable])
    for apply in (lambda: optimizer.apply([slices()]), lambda: optimizer.apply(grads=[slices()], trainable_variables=[variable])):
        before = variable.numpy()
        apply()
        same(before - variable, [[0, 0], [3, 3], [0, 0]])
with refused(ValueError, "dense_shape"):
    ddl.allreduce_n([slices()])
""", preamble=IMPORTED)


def test_gradients_of_complex_variables(ranks):
    ranks(2, """
try:
    ddl.allreduce_n([tf.ones(1, tf.complex64)])
except errors.UnimplementedError:
    sys.exit()  # the libraries of this build hold few rows
for dtype in (tf.complex64, tf.complex128):
    for optimizer in (tf.keras.optimizers.SGD(1.0), v1.train.GradientDescentOptimizer(1.0)):
        variable = tf.Variable(tf.constant([1 + 2j], dtype))
        optimizer.apply_gradients([(tf.constant([complex(rank, 2)], dtype), variable)])
        same(variable, [0.5])
""", preamble=IMPORTED)


def test_a_keras_that_does_not_work_is_left_out(ranks):
    ranks(2, """
sys.modules["tf_keras"] = None
import ddl
same(ddl.bcast(tf.fill([2], ddl.rank() + 1.0)), [1, 1])
""", preamble=conftest.TENSORFLOW, variables={"TF_USE_LEGACY_KERAS": "1"})


def test_callbacks_without_a_launcher(python):
    python("""
import ddl, keras
model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0, callbacks=[ddl.DDLCallback(), ddl.DDLGlobalVariablesCallback()])
""", preamble=conftest.TENSORFLOW)


OF_A_SESSION = """
graph = tf.Graph()
with graph.as_default():
    weights = v1.get_variable("weights", [2], initializer=v1.random_normal_initializer(seed=1 + rank))
    bias = v1.Variable([1.0 + rank], use_resource=False)
    counter = v1.Variable(rank, trainable=False)
    inputs = v1.placeholder(tf.float32, [None, 2])
    loss = tf.reduce_sum(inputs @ tf.reshape(weights, [2, 1]) + bias)
    optimizer = v1.train.MomentumOptimizer(0.5, 0.9)
    train = optimizer.minimize(loss, global_step=v1.train.get_or_create_global_step())
    with v1.train.MonitoredTrainingSession(hooks=[v1.train.StopAtStepHook(4)]) as session:
        before = session.run([weights, bias, counter])
        while not session.should_stop():
            last = session.run([train, weights, bias], {inputs: [[1.0, float(rank)]]})
        assert before[2] == rank
"""


@pytest.mark.parametrize("behavior", ["", "v1.disable_v2_behavior()\n"], ids=["version 2", "version 1"])
def test_a_session(ranks, behavior):
    said = ranks(2, behavior + OF_A_SESSION + """
if not tf.executing_eagerly():  # what follows is in eager code
    logs = {"loss": float(rank)}
    ddl.DDLCallback().on_epoch_end(0, logs)
    say("averaged", logs["loss"])
    os._exit(0)
same_on_all(before[:2])
found = same_on_all(last[1:])
assert found[0] < before[0][0] and found[2] < before[1][0], "it has learned"
assert np.allclose(before[0][0] - found[0], 2 * (before[0][1] - found[1])), "gradients are averages: 1 and (0 + 1) / 2"
""", preamble=IMPORTED)
    assert "DDL: rank 1 of 2, gpuid 1, hosts 1" in said
    assert said.count("averaged 0.5") == (2 if behavior else 0)


def test_a_session_in_groups(ranks):
    """The gradients of a graph go in several operators, which all ranks run in one order."""
    ranks(2, """
with tf.Graph().as_default():
    variables = [v1.get_variable(f"v{i}", [250_000], initializer=v1.zeros_initializer()) for i in range(6)]
    loss = tf.add_n([tf.reduce_sum(each) * (i + 1.0) for i, each in enumerate(variables)]) * (rank + 1.0)
    train = v1.train.GradientDescentOptimizer(1.0).minimize(loss)
    assert len([each for each in v1.get_default_graph().get_operations() if each.type == "AllReduceN"]) == 3
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for _ in range(5):
            session.run(train)
        for i, each in enumerate(session.run(variables)):
            same(each[:3], [-7.5 * (i + 1)] * 3)
""", preamble=IMPORTED, variables={"DDL_GROUP_SIZE": "500000"})


def test_a_script_that_does_it_by_hand(ddlrun, program):
    """Without DDL_OPTIONS: init, bcast and grads_reduce are the script's."""
    done = ddlrun("--no_ddloptions", "--accelerators", 2, sys.executable, program(IMPORTED + """
with refused(RuntimeError, f"ddl.bcast, rank {rank}: DDL is not started; call ddl.init(options) first"):
    ddl.bcast(tf.ones(3))
ddl.init("-mode b:2x1")
own = tf.Variable(tf.fill([2], float(rank)))
same(own, [rank] * 2)  # nothing is changed
own.assign(ddl.bcast(own))
same(own, [0, 0])
with tf.Graph().as_default():
    first = v1.get_variable("first", initializer=tf.fill([2], rank + 1.0))
    second = v1.get_variable("second", initializer=tf.fill([3], rank + 2.0))
    begin = [each.assign(ddl.bcast(each)) for each in (first, second)]
    optimizer = v1.train.GradientDescentOptimizer(1.0)
    pairs = optimizer.compute_gradients(tf.reduce_sum(first) * rank + tf.reduce_sum(second) * 4.0 * rank)
    train = optimizer.apply_gradients(ddl.grads_reduce(pairs, average=False))
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(begin)
        for found, expected in zip(session.run([first, second]), ([1, 1], [2, 2, 2])): same(found, expected)
        session.run(train)
        for found, expected in zip(session.run([first, second]), ([0, 0], [-2, -2, -2])): same(found, expected)
say("done")
"""))
    assert done.returncode == 0 and done.stdout.splitlines().count("done") == 2, done.stdout + done.stderr
    assert done.stdout.count("DDL_OPTIONS is not set") == 1


@pytest.mark.skipif(not conftest.IS_OPEN_MPI, reason="the module reads the variables of Open MPI")
def test_under_mpirun(mpirun):
    done = mpirun(2, OF_A_SESSION + "print('sum %.6f' % same_on_all(last[1:]).sum())\n", preamble=IMPORTED,
                  variables={"DDL_OPTIONS": "-mode r"})
    sums = re.findall(r"sum (-?\d+\.\d{6})", done.stdout)
    assert done.returncode == 0 and len(sums) == 2 and len(set(sums)) == 1, done.stdout + done.stderr


def test_an_exception_on_one_rank_is_told_to_the_others(ddlrun, program):
    done = ddlrun("--accelerators", 2, sys.executable, program(IMPORTED + """
if rank == 1:
    raise ValueError("on purpose")
with refused(errors.OpError, "rank 1"):
    ddl.bcast(tf.ones(3))
"""))
    assert done.returncode != 0 and "on purpose" in done.stderr


@pytest.mark.skipif(not conftest.IS_OPEN_MPI, reason="the module reads the variables of Open MPI")
def test_an_exception_on_one_rank_of_mpi_is_told_to_the_others(mpirun):
    done = mpirun(2, """
if rank == 1:
    raise ValueError("on purpose")
with refused(errors.FailedPreconditionError, "rank 1 gave up: ValueError: on purpose"):
    ddl.bcast(tf.ones(3))
say("told")
""", preamble=IMPORTED, variables={"DDL_OPTIONS": "-mode r"})
    assert done.returncode != 0 and "told" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("way", ["eager", "session"])
def test_ctrl_c(environment, program, way):
    """One process of two is interrupted in its wait for the other."""
    wait = "ddl.bcast(tf.ones(3))" if way == "eager" else "session.run(fetched)"
    path = program(IMPORTED + f"""
with tf.Graph().as_default() if {way == "session"} else tf.device(None):
    if {way == "session"}: session, fetched = v1.Session(), ddl.bcast(tf.ones(3))
    if rank == 0:
        try:
            say("waits")
            {wait}
        except (KeyboardInterrupt, RuntimeError) as why:  # pybind11 makes the latter of it where TensorFlow converts an error
            assert "KeyboardInterrupt" in repr(why), why
            say("interrupted")
    else:
        import time
        time.sleep(600)
os._exit(0)
""")
    both = [subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, text=True, env={
        **environment, "DDL_OPTIONS": "", "DDL_TIMEOUT": "5000", "DDL_JOB": f"test-{path.parent.name}", "DDL_TRANSPORT": "shared_memory",
        **{name: str(rank) for name in ("RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")},
        **dict.fromkeys(("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"), "2")}) for rank in range(2)]
    try:
        assert "waits\n" in both[0].stdout
        both[0].send_signal(signal.SIGINT)
        assert "interrupted\n" in both[0].stdout
    finally:
        for each in both:
            each.kill()
            each.communicate()
