"""Rows of fast forms: learners whose steps are laid out for XLA on CPU, beside the same learners with plain steps.

`python benchmarks/run.py --clock processor "fast form of rucb"` measures those of `rucb`.

A fast form stays if the plain steps take at least 1.3 times as long. Both give the same bits.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from benchmarks.measure import CPU, Case, Work
from benchmarks.programs import compile_call, compile_lanes
from benchmarks.row import Row
from jaxdp.bandits import _means, ucb
from jaxdp.bandits._ucb import Public
from jaxdp.core import State
from jaxdp.dueling import matrix_duels
from jaxdp.dueling._rucb import _rucb
from jaxdp.dueling._rucb import blocks as rucb_blocks
from jaxdp.experts import _shares
from jaxdp.numerics.sorting import sort_values
from jaxdp.simulation.sweeps.lanes import compiler_options


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


def clipped_steps(experts, horizon, lanes):
    """Steps of clipped shares, whose values a network sorts; and the same steps with `jnp.sort`."""
    rates = np.linspace(0.1, 1, lanes, dtype=np.float32)

    def run(sort, rate):
        def step(shares, round_):
            losses = rate * jnp.sin(round_ * jnp.arange(1, experts + 1))
            shares = _shares.exponential_step(shares, losses)
            return _shares.project(shares, 1e-3 / experts, sort), None

        start = jnp.full(experts, 1 / experts)
        return jax.lax.scan(step, start, jnp.arange(horizon, dtype=jnp.float32))[0]

    options, calls = compiler_options("cpu"), {}
    for name, sort in {"jaxdp": sort_values, "plain steps": jnp.sort}.items():
        program, compiling = compile_call(jax.vmap(partial(run, sort)), (rates,), options)
        calls[name] = (partial(lambda program: jax.block_until_ready(program(rates)), program), compiling)

    def check():
        np.testing.assert_array_equal(*(call() for call, _ in calls.values()))

    works = {name: Work(call, lanes * horizon, 1, compiling) for name, (call, compiling) in calls.items()}
    return Case(works=works, size=f"{lanes} x {horizon:,}", unit="lane-round", check=check)


ROWS = [
    *rows("rucb", _rucb._learner, (_rucb.KERNELS, _rucb.PLAIN), duels, {3: 2000, 10: 1000}),
    *rows("rucb_blocks", rucb_blocks.learner_of, (rucb_blocks.KERNELS, rucb_blocks.PLAIN), duels, {3: 2000, 10: 1000}),
    *rows("update_means in ucb", ucb_with, (None, _means.update_means), bandit, {3: 2000, 10: 2000}),
    *(
        Row(
            name=f"fast form of clipped shares, {experts} experts",
            make=clipped_steps,
            size={"experts": experts, "horizon": 500, "lanes": 256},
            quick={"horizon": 10, "lanes": 8},
        )
        for experts in (3, 10, 64)
    ),
]
