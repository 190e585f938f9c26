"""Rows of fast forms: learners whose steps are laid out for XLA on CPU, beside the same learners with plain steps.

`python benchmarks/run.py --clock processor "fast form of rucb"` measures those of `rucb`.

A fast form stays if the plain steps take at least 1.3 times as long. Both give the same bits.
"""

from functools import partial

import numpy as np

import jaxdp
from benchmarks.measure import CPU, Case, Work
from benchmarks.programs import compile_lanes
from benchmarks.row import Row
from jaxdp.bandits import _means, ucb
from jaxdp.bandits._ucb import Public
from jaxdp.core import State
from jaxdp.dueling import matrix_duels
from jaxdp.dueling._rucb import _rucb
from jaxdp.dueling._rucb import blocks as rucb_blocks


def duels(arms):
    return matrix_duels(jaxdp.preferences.utility_matrix(np.linspace(2, 0, arms)))


def bandit(arms):
    return jaxdp.bandits.bernoulli_bandit(np.linspace(0.2, 0.8, arms))


def ucb_with(arms, update_means):
    """`ucb`; with the plain `_means.update_means` in place of its own, if that is given."""

    def update(key, params, state, report):
        *means, tie_word = state.public
        return State((), Public(*update_means(_means.Means(*means), *report), tie_word))

    learner = ucb(num_arms=arms)
    return learner if update_means is None else learner._replace(update=update)


def fast_and_plain(make, steps, world, arms, horizon, lanes):
    calls = {}
    for name, each in zip(("jaxdp", "plain steps"), steps, strict=True):
        run = jaxdp.simulator(make(arms, each), world(arms), horizon, engine="rounds")
        calls[name] = compile_lanes(run, CPU, lanes, lanes, run.params(epsilon=1.0))

    def check():
        fast, plain = (call() for call, _ in calls.values())
        for output, values in fast.items():
            np.testing.assert_array_equal(values, plain[output])

    works = {name: Work(call, lanes * horizon, 1, compiling) for name, (call, compiling) in calls.items()}
    return Case(works=works, size=f"{lanes} x {horizon:,}", unit="lane-round", check=check)


def rows(name, make, steps, world, horizons):
    return [
        Row(
            name=f"fast form of {name}, {arms} arms",
            make=partial(fast_and_plain, make, steps, world),
            size={"arms": arms, "horizon": horizon, "lanes": 256},
            quick={"horizon": 10, "lanes": 8},
        )
        for arms, horizon in horizons.items()
    ]


ROWS = [
    *rows("rucb", _rucb._learner, (_rucb.KERNELS, _rucb.PLAIN), duels, {3: 2000, 10: 1000}),
    *rows("rucb_blocks", rucb_blocks.learner_of, (rucb_blocks.KERNELS, rucb_blocks.PLAIN), duels, {3: 2000, 10: 1000}),
    *rows("update_means in ucb", ucb_with, (None, _means.update_means), bandit, {3: 2000, 10: 2000}),
]
