# SPDX-License-Identifier: Apache-2.0
"""Callbacks of Keras."""

import numbers

import tensorflow as tf

from . import launcher, operators


class DDLCallback(tf.keras.callbacks.Callback):
    """The metrics of an epoch become their averages over all ranks, for the callbacks behind this one too. Without a launcher it does
    nothing."""

    def on_epoch_end(self, epoch, logs=None):
        del epoch
        if not launcher.is_launched():
            return
        logs = {} if logs is None else logs
        names = sorted(name for name, value in logs.items() if isinstance(value, numbers.Real))
        operators.require_init(type(self).__name__)
        values = [float(logs[name]) for name in names]
        averages = operators.now(lambda: operators.loaded().all_reduce(tf.constant(values, tf.float64), op="avg"))
        logs.update(zip(names, averages.tolist()))


class DDLGlobalVariablesCallback(tf.keras.callbacks.Callback):
    """The weights of the model, and the variables of its optimizer, take the values of rank 0 when training begins. Without a launcher
    it does nothing."""

    def on_train_begin(self, logs=None):
        del logs
        if not launcher.is_launched():
            return
        operators.require_init(type(self).__name__)
        if not self.model.built:  # its variables are made in the first step, and begin with the values of rank 0
            return
        self.model.set_weights([_of_rank_0(each) for each in self.model.get_weights()])
        optimizer = getattr(self.model, "optimizer", None)
        if not getattr(optimizer, "built", True):  # a rank that has trained before has one that is
            optimizer.build(self.model.trainable_variables)
        variables = getattr(optimizer, "variables", ())
        for each in variables() if callable(variables) else variables:  # a function in Keras 2
            each.assign(_of_rank_0(each.numpy()))


def _of_rank_0(array):
    return operators.now(lambda: operators.loaded().bcast(tf.constant(array)))
