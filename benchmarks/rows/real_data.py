"""Rows of learners with a curator who sees real-valued data, without a peer."""

import numpy as np

import jaxdp
from benchmarks.real_worlds import counting, real_losses, real_rewards
from benchmarks.row import LearnerRow

SIZES = {"lanes": 1056, "in_table": True}
EXPERTS = np.full(10, 0.5) - 0.2 * (np.arange(10) == 5)
ARMS = np.linspace(0.2, 0.8, 8)


def losses(horizon):
    return real_losses(EXPERTS)


def counter(name, make, **values):
    """Builds a counter that is fed with ten losses a round, and read."""
    return LearnerRow(
        title=f"{name}, real data",
        learner=lambda horizon: counting(make(horizon), len(EXPERTS)),
        world=losses,
        values=values,
        horizon=1000,
        **SIZES,
    )


ROWS = [
    *(
        LearnerRow(
            title="limited_updates, real losses",
            learner=lambda horizon: jaxdp.experts.limited_updates(num_experts=len(EXPERTS)),
            world=losses,
            values={"epsilon": 1.0},
            engine=engine,
            horizon=4000,
            **SIZES,
        )
        for engine in ("rounds", "blocks")
    ),
    *(
        LearnerRow(
            title="explore_then_commit, real rewards",
            learner=lambda horizon: jaxdp.bandits.explore_then_commit(
                num_arms=len(ARMS), explore_rounds=horizon // 2, rewards="bounded"
            ),
            world=lambda horizon: real_rewards(ARMS),
            values={"epsilon": 1.0},
            engine=engine,
            horizon=20_000,
            **SIZES,
        )
        for engine in ("rounds", "blocks")
    ),
    LearnerRow(
        title="svt_lazy, real losses",
        learner=lambda horizon: jaxdp.experts.svt_lazy(num_experts=len(EXPERTS), horizon=horizon),
        world=losses,
        values={"epsilon": 4.0, "best_loss": 100.0},
        horizon=2000,
        **SIZES,
    ),
    counter(
        "tree_counter",
        lambda horizon: jaxdp.mechanisms.tree_counter(horizon=horizon),
        epsilon=1.0,
        l1_sensitivity=10.0,
    ),
    counter(
        "tree_counter, Gaussian noise",
        lambda horizon: jaxdp.mechanisms.tree_counter(horizon=horizon, noise="gaussian"),
        rho=1.0,
        l2_sensitivity=10.0**0.5,
    ),
    counter(
        "toeplitz_counter",
        lambda horizon: jaxdp.mechanisms.toeplitz_counter(horizon=horizon),
        rho=1.0,
        l2_sensitivity=10.0**0.5,
    ),
]
