"""Rows of learners that choose among experts; losses are 0 or 1.

Where nothing else is named, the good expert changes five times. The peers get the learner's own rates.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from benchmarks.floors import (
    added,
    added_round,
    asked,
    counted,
    counter_state,
    drawn_twice,
    filtered,
    learner_floor,
    weighted,
)
from benchmarks.peers import numba_experts, numba_lazy, numba_learners
from benchmarks.row import LearnerRow
from benchmarks.settings import BATCH, EVERY, GAP, OTHERS, SHIFTS
from jaxdp import experts
from jaxdp.experts import classes
from jaxdp.mechanisms.continual_counting.buffers import find_buffers

MEANS = np.array([OTHERS - GAP, OTHERS])  # of the good expert and of the others
PRIVATE = {"epsilon": 1.0, "delta": 1e-6}
SIZES = {  # by the number of experts
    10: {"horizon": 2000, "lanes": 4224},
    100: {"horizon": 600, "lanes": 2112},
    1000: {"horizon": 150, "lanes": 192},
}


UPDATES_FLOORS = {
    "rounds": learner_floor(added_round, keys=1, size=10),
    "blocks": learner_floor(added, keys=2, size=10, together=EVERY),
}


def segment(horizon):
    return -(-horizon // (SHIFTS + 1))


def rate(horizon):
    return SHIFTS / (horizon - 1)


def shifting(num):
    return lambda horizon: experts.shifting_losses(num_experts=num, horizon=horizon, num_shifts=SHIFTS, gap=GAP)


def peer(function, num, more):
    """Builds a peer with arguments after the sizes from `more(horizon, the learner's params)`."""

    def make(horizon, params):
        return partial(function, num, MEANS, segment(horizon), horizon, *more(horizon, params["learner"]))

    return make


def counter_arguments(horizon, params):
    weights, gaps = (each.astype(np.float32) for each in find_buffers(horizon))
    return float(params.learning_rate), rate(horizon), float(params.counter.noise_stddev), weights, gaps


def several(name, learner, function, more, values, *, floor, floor_keys, state=None, in_table=False):
    """Returns rows of 10, 100 and 1000 experts; the table has the first."""
    return [
        LearnerRow(
            title=name if num == 10 else f"{name}, {num} experts",
            learner=partial(learner, num),
            world=shifting(num),
            values=values,
            peers={"Numba": peer(function, num, more)},
            floor=learner_floor(floor, keys=floor_keys, size=num, state=None if state is None else partial(state, num)),
            in_table=in_table and num == 10,
            **sizes,
        )
        for num, sizes in SIZES.items()
    ]


def odds_and_futures(num: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns for each step the odds of a switch in each row, and the rows' futures: their ratios."""
    rows = SHIFTS + 1
    left = np.arange(steps)[::-1].astype(float)  # steps to come
    terms = np.ones((steps, rows))
    for k in range(1, rows):
        terms[:, k] = terms[:, k - 1] * np.maximum(left - (k - 1), 0) / k * (num - 1)
    futures = np.cumsum(terms, axis=1)[:, ::-1]
    following = np.vstack([futures[1:], np.ones((1, rows))])
    come = np.hstack([following[:, 1:], np.zeros((steps, 1))])
    odds = (num - 1) * come / futures
    odds[-1] = 0
    return odds.astype(np.float32), (futures / futures[:, :1]).astype(np.float32)


def lazy(batch):
    def arguments(horizon, params):
        tables = odds_and_futures(10, -(-horizon // batch))
        return float(params.learning_rate), float(params.fake_switch_prob), batch, int(params.budget), *tables

    return LearnerRow(
        title="lazy_weights" if batch == 1 else f"lazy_weights, batches of {batch}",
        learner=lambda horizon: experts.lazy_weights(
            num_experts=10, horizon=horizon, sequences=classes.switching(num_switches=SHIFTS), rounds_per_step=batch
        ),
        world=shifting(10),
        values={"epsilon": 4.0, "delta": 1e-6, "batch": batch},
        engine="rounds" if batch == 1 else "blocks",
        horizon=2000,
        lanes=2112,
        peers={
            "Numba": peer(numba_lazy.lazy_switching, 10, arguments),
            "Numba, plain float64": peer(numba_lazy.lazy_doubles, 10, arguments),
        },
        floor=None if batch == 1 else learner_floor(filtered, keys=2, size=10, state=lazy_rows, together=BATCH),
        in_table=batch == 1,
    )


def lazy_rows(horizon):
    del horizon
    return jnp.ones((SHIFTS + 1, 10), jnp.float32)


def restarts(every):
    def make_peer(horizon, params):
        learner = params["learner"]
        slack = learner.block_slack, learner.slack_before, float(learner.window_slack), np.float32(learner.margin)
        arguments = 10, MEANS, segment(horizon), horizon, 8.0, every, *slack, (-(-horizon // every)).bit_length()
        return lambda regret: numba_experts.svt_restarts(*arguments, regret, np.zeros(len(regret)))

    return LearnerRow(
        title="svt_restarts" if every == 1 else f"svt_restarts, a question every {every}",
        learner=lambda horizon: experts.svt_restarts(num_experts=10, horizon=horizon, check_every=every),
        world=shifting(10),
        values={"epsilon": 8.0},
        engine="rounds" if every == 1 else "blocks",
        horizon=20_000,
        lanes=1056,
        peers={"Numba": make_peer},
        floor=None if every == 1 else learner_floor(asked, keys=3, size=10, state=windows, together=EVERY),
        in_table=every == 1,
    )


def windows(horizon):
    return jnp.ones((10, (-(-horizon // EVERY)).bit_length()), jnp.float32)


def one_good(horizon):
    means = np.full(10, OTHERS)
    means[5] -= GAP
    return experts.stochastic_losses(means)


def noisy_weights(num):
    means = np.linspace(0.2, 0.8, num)

    def make_peer(horizon, params):
        learning_rate = float(params["learner"].learning_rate)
        return partial(numba_learners.exponential_weights, means.astype(np.float32), 1.0, learning_rate, horizon)

    return LearnerRow(
        title=f"exponential_weights, {num} experts",
        learner=lambda horizon: experts.exponential_weights(num_experts=num, horizon=horizon),
        world=lambda horizon: experts.stochastic_losses(means),
        values={"epsilon": 1.0},
        outcomes=None,
        horizon=1000,
        lanes=1024,
        peers={"Numba": make_peer},
        in_table=num == 64,
    )


ROWS = [
    noisy_weights(64),
    noisy_weights(37),
    lazy(1),
    lazy(BATCH),
    restarts(1),
    restarts(EVERY),
    *several(
        "mirror_descent",
        lambda num, horizon: experts.mirror_descent(num_experts=num, horizon=horizon, num_switches=SHIFTS),
        numba_experts.fixed_share,
        lambda horizon, params: (float(params.learning_rate), rate(horizon)),
        PRIVATE,
        floor=drawn_twice,
        floor_keys=3,
        state=lambda num, horizon: jnp.ones(num, jnp.float32),
        in_table=True,
    ),
    *several(
        "counter_weights",
        lambda num, horizon: experts.counter_weights(
            num_experts=num,
            horizon=horizon,
            sequences=classes.markov(switch_rate=rate(horizon)),
            num_switches=SHIFTS,
        ),
        numba_experts.counter_weights,
        counter_arguments,
        PRIVATE,
        floor=counted,
        floor_keys=3,
        state=lambda num, horizon: counter_state(num, len(find_buffers(horizon)[0])),
        in_table=True,
    ),
    *several(
        "hedge",
        lambda num, horizon: experts.hedge(num_experts=num, horizon=horizon),
        numba_experts.hedge,
        lambda horizon, params: (float(params.learning_rate),),
        {},
        floor=weighted,
        floor_keys=2,
    ),
    *several(
        "fixed_share",
        lambda num, horizon: experts.fixed_share(num_experts=num, horizon=horizon, num_switches=SHIFTS),
        numba_experts.fixed_share,
        lambda horizon, params: (float(params.learning_rate), float(params.switch_rate)),
        {},
        floor=weighted,
        floor_keys=2,
    ),
    *(
        LearnerRow(
            title="limited_updates",
            learner=lambda horizon: experts.limited_updates(num_experts=10, losses="binary"),
            world=one_good,
            values={"epsilon": 1.0},
            engine=engine,
            horizon=horizon,
            lanes=lanes,
            tile=64 if engine == "counts" else None,
            peers={
                "Numba": lambda horizon, params: partial(
                    numba_experts.limited_updates, 10, MEANS, horizon, horizon, 1.0
                )
            },
            floor=UPDATES_FLOORS.get(engine),
            in_table=engine == "rounds",
        )
        for engine, horizon, lanes in (("rounds", 20_000, 1056), ("blocks", 20_000, 1056), ("counts", 1_000_000, 128))
    ),
]
