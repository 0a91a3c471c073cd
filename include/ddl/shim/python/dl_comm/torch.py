# SPDX-License-Identifier: Apache-2.0
"""PyTorch: an optimizer that steps with the averages of all ranks' gradients.

    import dl_comm.torch as cdl
    optimizer = cdl.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01 * cdl.get_nranks()))

The import meets the other processes, so `get_rank` and `get_nranks` can be called at once. `finalize` is called at exit.
"""

import dl_comm
from dl_comm import finalize, get_nranks, get_rank, localrank  # noqa: F401  # what scripts take from here

dl_comm.init_mpi()
_teams = 0


def DistributedOptimizer(optimizer, nteam=1, nthread_per_team=2):  # pylint: disable=invalid-name  # Cray's name
    """The optimizer, whose `step` first averages all gradients over the ranks.

    Its class becomes one derived from its own. Parameters take rank 0's values here. nteam: how many teams all optimizers of
    the program use; each takes the next. nthread_per_team: threads of its team.
    """
    global _teams
    if nteam < 1:
        raise ValueError(f"DistributedOptimizer: nteam is {nteam}; pass 1 or more")
    dl_comm.init()
    team = _teams % nteam
    if _teams < nteam:
        dl_comm.create_team(team, nthread_per_team, 0)
    _teams += 1
    own = type(optimizer)
    hidden = vars(optimizer).pop("step", None)  # a scheduler puts its own into the object, which hides that of every class
    inner = own.step if hidden is None else lambda _self, *arguments, **more: hidden(*arguments, **more)

    def parameters():
        return [each for group in optimizer.param_groups for each in group["params"]]

    def average():
        dl_comm.gradients([each.grad for each in parameters() if each.grad is not None], team)

    def step(self, closure=None, *arguments, **more):
        if closure is None:
            average()
            return inner(self, *arguments, **more)

        def averaged():  # it computes the gradients, perhaps more than once
            loss = closure()
            average()
            return loss
        return inner(self, averaged, *arguments, **more)

    for mark in ("_wrapped_by_lr_sched", "_with_counter"):  # by which schedulers, new and old, know their own
        if hasattr(hidden, mark):
            setattr(step, mark, True)

    optimizer.__class__ = type("Distributed" + own.__name__, (own,), {"step": step})
    dl_comm.broadcast([each.detach() for each in parameters()], 0)
    return optimizer
