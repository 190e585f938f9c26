"""Outcomes: their sums over rounds neither wrap nor stall, and a run has those that were asked for."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.bandits import bernoulli_bandit, explore_then_commit
from jaxdp.numerics import compensated
from jaxdp.simulation import simulator
from tests.simulation.worlds import paid

X64 = jax.config.read("jax_enable_x64")
HORIZON = 90
KEY = partial(jax.random.key, 3)


@pytest.mark.parametrize("sign", [1, -1])
def test_integer_sums_stop_at_the_largest(sign):
    integer = np.int64 if X64 else np.int32
    info, large = np.iinfo(integer), sign * 2 ** (60 if X64 else 28)
    run = simulator(explore_then_commit(num_arms=2, explore_rounds=2), paid(integer(large)), 20, checkpoints=20)
    sums = run(KEY(), run.params(epsilon=1.0))["paid"].tolist()
    exact = [large * t for t in range(1, 21)]
    bound = info.max if sign > 0 else info.min
    assert sums == [max(min(value, info.max), info.min) for value in exact]
    assert sums[-1] == bound != exact[-1]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "uint32", "bool"])
def test_integer_sums_hold_what_their_addends_do_not(dtype):
    """Checks that outcomes of small types are added in the default integer type; unsigned ones do not turn negative."""
    value = np.asarray(True) if dtype == "bool" else np.asarray(np.iinfo(dtype).max, dtype)
    run = simulator(explore_then_commit(num_arms=2, explore_rounds=2), paid(value), 10, checkpoints=[1, 10])
    sums = run(KEY(), run.params(epsilon=1.0))["paid"]
    assert sums.dtype == jnp.result_type(int)
    largest = np.iinfo(sums.dtype).max
    assert sums.tolist() == [min(int(value), largest), min(10 * int(value), largest)]


def test_float_sums_are_compensated(monkeypatch):
    """Rounds that pay 0.1 in float32: the naive sum is off by 1e-4 of it, ours by rounding its result."""
    value = np.float32(0.1)

    def error():
        run = simulator(explore_then_commit(num_arms=2, explore_rounds=2), paid(value), 200_000)
        total = float(jax.jit(run)(KEY(), run.params(epsilon=1.0))["paid"][0])
        return abs(total / (200_000 * float(value)) - 1)

    assert error() < 2**-23
    monkeypatch.setattr(compensated, "add", lambda running, x: compensated.Sum(running.total + x, running.excess))
    assert error() > 1e-5


def test_outcomes_that_are_python_numbers():
    environment = paid(0)._replace(
        feedback=lambda key, params, world, action: (world, jnp.int32(0), {"one": 1, "half": 0.5, "true": True})
    )
    run = simulator(explore_then_commit(num_arms=2, explore_rounds=2), environment, 10)
    outputs = run(KEY(), run.params(epsilon=1.0))
    assert {name: values.tolist() for name, values in outputs.items()} == {"one": [10], "half": [5.0], "true": [10]}


def test_chosen_outcomes_are_those_of_all():
    learner, environment = explore_then_commit(num_arms=3, explore_rounds=30), bernoulli_bandit([0.2, 0.5, 0.6])
    for engine in ("rounds", "blocks", "counts"):
        everything = simulator(learner, environment, HORIZON, engine=engine)
        one = simulator(learner, environment, HORIZON, engine=engine, outcomes=["pseudo_regret"])
        params = one.params(epsilon=0.5)
        names: Any = iter(["pseudo_regret"])
        consumed = simulator(learner, environment, HORIZON, engine=engine, outcomes=names)
        assert list(jax.eval_shape(consumed, KEY(), params)) == ["pseudo_regret"]
        found, expected = jax.jit(one)(KEY(), params), jax.jit(everything)(KEY(), params)
        assert set(found) == {"pseudo_regret"} < set(expected)
        assert (found["pseudo_regret"] == expected["pseudo_regret"]).all()


@pytest.mark.parametrize("names", [["regret"], "pseudo_regret"])
def test_outcomes_that_there_are_not(names):
    learner, environment = explore_then_commit(num_arms=3, explore_rounds=30), bernoulli_bandit([0.2, 0.5, 0.6])
    run = simulator(learner, environment, HORIZON, outcomes=names)
    with pytest.raises(ValueError, match=r"outcomes must be a list of some of .*pseudo_regret"):
        run(KEY(), run.params(epsilon=0.5))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outcomes": 3}, "outcomes must be a list of names, got 3"),
        ({"record": {"a": 3}}, r"record must be a dict of functions keyed by name, got \{'a': 3\}"),
        ({"record": {1: str}}, "record must have strings as names, got 1"),
        ({"record": ["a"]}, r"record must be a dict of functions keyed by name, got \['a'\]"),
    ],
)
def test_options_of_another_type(options, message):
    learner, environment = explore_then_commit(num_arms=3, explore_rounds=30), bernoulli_bandit([0.2, 0.5, 0.6])
    with pytest.raises(ValueError, match=message):
        simulator(learner, environment, HORIZON, **options)


@pytest.mark.parametrize(("dtype", "total"), [(jnp.bfloat16, 1000.0), (np.float16, 1000.0), (np.float32, 1000.0)])
def test_narrow_floats_are_summed_in_float32(dtype, total):
    run = simulator(explore_then_commit(num_arms=2, explore_rounds=2), paid(np.asarray(1, dtype)), 1000)
    sums = run(KEY(), run.params(epsilon=1.0))["paid"]
    assert sums.dtype == np.float32
    assert sums[-1] == total  # bfloat16 would stop at 256
