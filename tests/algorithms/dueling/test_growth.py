"""How regret grows: like 1 / epsilon where privacy dominates, and like log T without privacy."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdp
from jaxdp.core import Interface, Learner, Space, State, pairs
from jaxdp.dueling import double_thompson, ebs_elimination, ebs_phased, rucb, utility_duels, versatile_sparring
from jaxdp.stats import power_law

KEY = partial(jaxdp.random.key, 101)


def until_best(learner: Learner) -> Learner:
    """Builds an elimination whose run ends when only the best arm, the first one, is left: later rounds cost
    nothing.
    """

    def done(params, public):
        del params
        return public.active[0] & (jnp.sum(public.active, dtype=jnp.int32) == 1)

    return learner._replace(done=done)


# ---- 1 / epsilon -----------------------------------------------------------------------------------------------------
class Dominated(NamedTuple):
    """A learner, and budgets at which privacy costs at least ten times as much as learning does.

    Regret is then at least `ratio` times that without privacy: 11 where both costs are numbers of rounds. Where they
    are parts of a confidence radius, a / n and b / sqrt(n) after n duels, the first is ten times the second only from
    121 times as many duels on; at 11 times as many the exponent would still be 0.82.

    A tree counter makes regret 1 / epsilon times a function of log(1 / epsilon) with the period log(arity): see
    `test_mean_path`. So exponents are fitted to budgets that differ by powers of the arity, and their mean is taken
    over `phases`, multiples of these budgets, that divide a period evenly.
    """

    make: Callable[[int], Learner]
    horizon: int
    epsilons: tuple[float, ...]
    engine: str
    lanes: int
    ratio: float = 11.0
    phases: tuple[float, ...] = (1.0,)
    utilities: tuple[float, ...] = (2.0, 1.0, 0.0)


DOMINATED = {
    "ebs_phased": Dominated(lambda _: ebs_phased(num_arms=3), 2**31 - 1, (1e-5, 1e-4, 3e-3), "counts", 100),
    # The tree of this horizon has arity 15.
    "ebs_elimination": Dominated(
        lambda horizon: until_best(ebs_elimination(num_arms=2, horizon=horizon)),
        10**7,
        (0.16, 0.16 / 15),
        "blocks",
        48,
        ratio=121.0,
        phases=(1.0, 15 ** (-1 / 3), 15 ** (-2 / 3)),
        utilities=(4.0, 0.0),
    ),
}


def regrets_by_epsilon(case, distort=1.0):
    """Returns regret by (phase, epsilon, seed), and its mean without privacy; the learner gets epsilon to a power."""
    run = jaxdp.simulator(
        case.make(case.horizon),
        utility_duels(case.utilities),
        case.horizon,
        engine=case.engine,
        outcomes=["pseudo_regret"],
    )
    go = jax.jit(jax.vmap(run, (0, None)))
    found = []
    budgets = [phase * epsilon for phase in case.phases for epsilon in case.epsilons]
    for place, epsilon in enumerate((*budgets, math.inf)):  # each with keys of its own
        keys = jax.random.split(jax.random.fold_in(KEY(), place), case.lanes)
        found.append(np.asarray(go(keys, run.params(epsilon=epsilon**distort))["pseudo_regret"], float)[:, -1])
    values = np.reshape(found[:-1], (len(case.phases), len(case.epsilons), case.lanes))
    return xr.DataArray(values, {"epsilon": list(case.epsilons)}, ("phase", "epsilon", "seed")), found[-1].mean()


def check_inverse(regret):
    """Checks that the exponent is -1 +- 0.05, with 95% confidence.

    A mean's interval is within the mean of intervals.
    """
    fit = power_law(regret, "epsilon").mean("phase")
    print({name: round(float(each), 3) for name, each in fit.items()})
    assert float(fit.low) >= -1.05
    assert float(fit.high) <= -0.95


@pytest.mark.parametrize("name", DOMINATED)
def test_regret_is_inverse_in_epsilon_where_privacy_dominates(name):
    regret, without = regrets_by_epsilon(DOMINATED[name])
    assert float(regret.mean("seed").min()) >= DOMINATED[name].ratio * without
    check_inverse(regret)
    distorted, _ = regrets_by_epsilon(DOMINATED[name], distort=0.9)  # planted
    with pytest.raises(AssertionError):
        check_inverse(distorted)


# ---- log T -----------------------------------------------------------------------------------------------------------
class Growing(NamedTuple):
    """A learner without privacy, over the last two decades before a horizon.

    An elimination with a fixed failure_prob costs nothing once all arms except one are gone, and its cost until then
    does not grow with T. It gets the horizon as 1 / failure_prob, as in the analysis.
    """

    make: Callable[[int], Learner]
    horizon: int
    lanes: int
    values: Callable[[int], dict[str, Any]] | None = None
    engine: str = "auto"


STOPPED = Growing(
    lambda horizon: until_best(ebs_elimination(num_arms=3, horizon=horizon)),
    10**6,
    100,
    lambda horizon: {"failure_prob": 1 / horizon},
    "rounds",
)
GROWING = {
    "rucb": Growing(lambda _: rucb(num_arms=3), 10_000, 50),
    "versatile_sparring": Growing(lambda _: versatile_sparring(num_arms=3), 10_000, 40),
    "ebs_phased": Growing(
        lambda _: ebs_phased(num_arms=3), 10**9, 20, lambda horizon: {"failure_prob": 1 / horizon}, "counts"
    ),
    # One tree, and one set of epochs, for all horizons: compiled once.
    "ebs_elimination": STOPPED._replace(make=lambda horizon: STOPPED.make(horizon)._replace(horizon=None), lanes=30),
}
LONG = {
    "ebs_elimination": STOPPED,
    "rucb": GROWING["rucb"]._replace(horizon=10**5, lanes=100),
    "versatile_sparring": GROWING["versatile_sparring"]._replace(horizon=10**5, lanes=100),
    "double_thompson": Growing(lambda _: double_thompson(num_arms=3), 10_000, 50),
}


def regrets_by_round(case):
    """Returns regret by (round, seed) after T / 100, T / 10 and T rounds."""
    rounds = [case.horizon // 100, case.horizon // 10, case.horizon]
    keys = jax.random.split(KEY(), case.lanes)

    def play(learner, horizon, ask_for):
        run = jaxdp.simulator(
            learner,
            utility_duels([2.0, 0.0, 0.0]),
            horizon,
            checkpoints=ask_for,
            engine=case.engine,
            outcomes=["pseudo_regret"],
        )
        go = jax.jit(jax.vmap(run, (0, None)))
        return lambda **values: np.asarray(go(keys, run.params(epsilon=math.inf, **values))["pseudo_regret"], float).T

    learner = case.make(case.horizon)
    if case.values is None:  # the same algorithm at every horizon
        found = list(play(learner, case.horizon, rounds)())
    elif learner.horizon is None:  # the horizon is a value
        every = play(learner, case.horizon, rounds)
        found = [every(**case.values(horizon))[place] for place, horizon in enumerate(rounds)]
    else:
        found = [play(case.make(horizon), horizon, [horizon])(**case.values(horizon))[0] for horizon in rounds]
    return xr.DataArray(np.stack(found), {"round": rounds}, ("round", "seed"))


def check_logarithmic(regret):
    """Checks that regret is linear in log T over two decades: the middle is half way, within 5% and 5 standard errors.

    For the square root of T it would be a quarter of the way too low, for T itself 0.41. And over the last decade the
    exponent of T, which would be 1/2 or 1, is small.
    """
    first, middle, last = regret.values
    added = last.mean() - first.mean()
    assert added > 0
    bend = (first + last) / 2 - middle
    error = bend.std(ddof=1) / math.sqrt(len(bend))
    assert abs(bend.mean()) <= 0.05 * added + 5 * error
    assert float(power_law(regret.isel(round=[1, 2]), "round").high) < 0.35


@pytest.mark.parametrize("name", GROWING)
def test_regret_grows_like_the_logarithm_of_the_horizon(name):
    check_logarithmic(regrets_by_round(GROWING[name]))


@pytest.mark.parametrize("name", LONG)
def test_regret_grows_like_the_logarithm_of_long_horizons(name):
    check_logarithmic(regrets_by_round(LONG[name]))


def careless():
    """Plays a learner that knows the best arm, and plays another pair with probability t^-rate nevertheless."""

    def act(key, params, public, context):
        del context
        wrong = jax.random.uniform(key) < (public + 1).astype(jnp.result_type(float)) ** -params
        return jnp.where(wrong, jnp.array([1, 2], jnp.int32), 0)

    return Learner(
        params=lambda *, epsilon, rate: jnp.asarray(rate),
        guarantee=lambda *, epsilon, rate: rucb(num_arms=3).guarantee(epsilon=epsilon),
        init=lambda key, params: State((), jnp.zeros((), jnp.result_type(int))),
        act=act,
        privatize=lambda key, params, public, context, action, feedback: action,
        update=lambda key, params, state, report: State((), state.public + 1),
        interface=Interface(pairs(3), Space("integers", (), 0, 1)),
    )


def test_other_growth_is_noticed():
    """Plants growth like the square root of T and like T, which are no logarithm; the sum of 1 / t is one."""
    learner, grown = careless(), {}
    for rate in (1.0, 0.5, 0.0):
        grown[rate] = regrets_by_round(Growing(lambda _: learner, 10_000, 50, lambda _, rate=rate: {"rate": rate}))
    check_logarithmic(grown[1.0])
    for rate in (0.5, 0.0):
        with pytest.raises(AssertionError):
            check_logarithmic(grown[rate])
