"""Mirror descent: its steps, exact and grey-box audits, the published form, mutants and distribution."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

from jaxdp.audit import UserData, exact_rho, full_information, g_test, grey_box
from jaxdp.experts import mirror_descent
from jaxdp.experts._mirror_descent.sampling import step_of
from jaxdp.experts._shares import project
from jaxdp.mechanisms.tape import recording
from jaxdp.numerics import fixed_point
from tests.algorithms.experts.counted_mutants import claimed_as_published, overspent

DTYPE = jnp.result_type(float)
X64 = bool(jax.config.read("jax_enable_x64"))

VALUES = {"epsilon": 1.0, "delta": 1e-6}
FORMS = {
    "sampling": ({"form": "sampling"}, VALUES),
    "clipped": ({"mixing": "clipped"}, VALUES),
    "gaussian": ({"form": "noisy_losses"}, VALUES),
    "laplace": ({"form": "noisy_losses", "noise": "laplace"}, {"epsilon": 1.0}),
    "intervals": ({"form": "intervals"}, VALUES),
    "paper": ({"constants": "paper"}, {"epsilon": 1.0}),
}


# ---- steps -----------------------------------------------------------------------------------------------------------
def numpy_projection(shares, floor):
    """Projects by root search: projections in relative entropy are max(floor, scale * shares)."""
    return np.maximum(floor, shares * brentq(lambda c: np.maximum(floor, c * shares).sum() - 1, 0, 2, xtol=1e-15))


@pytest.mark.parametrize("num_experts", [2, 3, 7])
def test_the_projection(num_experts):
    rng = np.random.default_rng(num_experts)
    projection = jax.jit(project)
    for spread, part in itertools.product((0.1, 3.0, 40.0), (0.01, 0.5, 0.99)):
        shares = np.exp(spread * rng.standard_normal(num_experts))
        shares, floor = shares / shares.sum(), part / num_experts
        found = np.asarray(projection(jnp.asarray(shares, float), floor))
        assert found.min() >= floor * (1 - 1e-6)
        np.testing.assert_allclose(found, numpy_projection(shares, floor), rtol=2e-5)
    rest = np.asarray(projection(jnp.full(num_experts, 1 / num_experts, float), 1 / num_experts))
    np.testing.assert_allclose(rest, 1 / num_experts, rtol=1e-6)


@pytest.mark.parametrize("mixing", ["fixed_share", "clipped"])
def test_steps_never_widen_the_range_of_log_ratios(mixing):
    rng = np.random.default_rng(0)
    step = jax.vmap(step_of(mixing, 4, 10, 3))
    pair = rng.dirichlet(np.full(4, 0.5), (2, 500)) * 0.7 + 0.075
    losses = rng.uniform(-1, 1, (500, 4))

    def ranges(first, second):
        logs = np.log(np.asarray(first, np.float64)) - np.log(np.asarray(second, np.float64))
        return logs.max(1) - logs.min(1)

    after = [step(jnp.asarray(each, float), jnp.asarray(losses, float)) for each in pair]
    assert (ranges(*after) <= ranges(*pair) + 1e-5).all()
    moved = step(jnp.asarray(pair[1], float), jnp.asarray(losses + 0.5 * (np.arange(4) == 0), float))  # planted
    assert (ranges(after[0], moved) > ranges(*pair) + 1e-5).any()


# ---- audits ----------------------------------------------------------------------------------------------------------
def draw_user(key):
    key_all, key_each = jax.random.split(key)
    same = jnp.broadcast_to(jax.random.bernoulli(key_all), (4,)).astype(float)
    return UserData(
        jnp.where(jax.random.bernoulli(key), same, jax.random.bernoulli(key_each, shape=(4,)).astype(float))
    )


def audited(learner, values, rounds=4):
    return grey_box(
        jax.random.key(0),
        learner,
        values,
        draw_user,
        rounds=rounds,
        answer=full_information,
        num_bases=2,
        num_neighbours=64,
    )


@pytest.mark.parametrize("name", FORMS)
def test_grey_box(name):
    arguments, values = FORMS[name]
    learner = mirror_descent(num_experts=4, horizon=40, num_switches=1, **arguments)
    found, claim = audited(learner, values), learner.guarantee(**values)
    assert found.verdict == "consistent"
    if name in ("gaussian", "laplace", "paper"):
        (site,) = found.sites
        assert site.measured == pytest.approx(site.declared)
    if name in ("laplace", "paper"):
        assert found.spent == pytest.approx(claim.epsilon)
        assert claim.epsilon == (4 if name == "paper" else 1)
    else:
        assert 0.99 < claim.epsilon_at(1e-6) <= 1 + 1e-9


def test_the_published_claim_is_flagged():
    learner = claimed_as_published(mirror_descent(num_experts=4, horizon=40, num_switches=1, constants="paper"))
    found = audited(learner, {"epsilon": 1.0}, rounds=2)
    assert found.verdict == "violated"
    assert "epsilon = 4" in " ".join(found.faults)


@functools.cache
def compiled_step(horizon, mixing):
    return jax.jit(step_of(mixing, 2, horizon, 1))


def distribution_of_draws(params, losses, mixing="clipped"):
    """Returns the exact distribution of all draws after the first, which are independent where losses are given."""
    step, shares, distribution = compiled_step(len(losses), mixing), jnp.full(2, 0.5, float), {(): 1.0}
    for each in losses:
        shares = step(shares, params.learning_rate * jnp.asarray(each, float))
        distribution = {
            (*history, i): p * chance
            for history, p in distribution.items()
            for i, chance in enumerate(np.asarray(shares).tolist())
        }
    return distribution


@functools.cache
def exact_cost(learner_of, mixing="clipped"):
    """Returns the true rho over all 0/1 losses of 2 experts and 4 rounds, and the claim."""
    horizon, values = 4, {**VALUES, "epsilon": 1.0}
    learner = learner_of(mirror_descent(num_experts=2, horizon=horizon, num_switches=1, mixing=mixing))
    params, found = learner.params(**values), 0.0
    rows = list(itertools.product((0.0, 1.0), repeat=2))
    distributions = {
        losses: distribution_of_draws(params, losses, mixing) for losses in itertools.product(rows, repeat=horizon)
    }
    for losses in distributions:
        for row in rows:
            if row > losses[0]:  # the loss that is replaced first moves most
                found = max(found, exact_rho(distributions[losses], distributions[(row, *losses[1:])]))
    return found, learner.guarantee(**values).rho


@pytest.mark.parametrize("mixing", ["clipped", "fixed_share"])
def test_exact_audit_of_sampling(mixing):
    found, claimed = exact_cost(lambda learner: learner, mixing)
    assert 0.9 * claimed <= found <= claimed


def test_a_draw_is_recorded_with_its_cost():
    """Checks that an exponential mechanism of a budget e costs rho = e^2 / 8; scores move within twice the rate."""
    learner = mirror_descent(num_experts=3, horizon=5, num_switches=1)
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=1.0, delta=1e-6, learning_rate=0.01))
    state = learner.init(jax.random.key(0), params)
    with recording() as entries:
        learner.update(jax.random.key(1), params, state, jnp.asarray([1.0, 0.0, 0.5]))
    (entry,) = entries
    budget = 2 * float(params.learning_rate)
    assert (entry.name, float(entry.epsilon)) == ("play", pytest.approx(budget))
    assert float(jnp.asarray(entry.rho)) == pytest.approx(budget**2 / 8)


def test_losses_of_intervals_are_at_most_1():
    """Checks losses of 1 for distributions whose sums are rounded above 1: their noise is for losses in [0, 1]."""
    num_experts = 1000
    learner = mirror_descent(num_experts=num_experts, horizon=4, num_switches=1, form="intervals")
    params = jax.tree.map(jnp.asarray, learner.params(**VALUES))
    state = learner.init(jax.random.key(0), params)
    tried = jax.nn.softmax(jax.random.normal(jax.random.key(2), (200, num_experts), DTYPE), axis=1)
    highest = tried[tried.sum(1).argmax()]
    assert float(highest.sum()) > 1
    same = jnp.broadcast_to(highest, state.public.distributions.shape)
    state = state._replace(public=state.public._replace(distributions=same))
    with recording() as entries:
        learner.update(jax.random.key(1), params, state, jnp.full(num_experts, fixed_point.UNITS, jnp.result_type(int)))
    released = next(entry for entry in entries if entry.name == "gaussian")
    assert np.all(np.asarray(released.value) == 1)


def test_a_rate_beyond_the_budget_is_flagged():
    for mixing in ("clipped", "fixed_share"):
        found, claimed = exact_cost(overspent, mixing)
        assert found > 3 * claimed


def test_draws_have_the_distribution_of_weights():
    learner = mirror_descent(num_experts=2, horizon=3, num_switches=1, mixing="clipped")
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=30.0, delta=1e-6, learning_rate=0.8))
    losses = [(1.0, 0.0), (1.0, 0.0), (0.2, 0.9)]

    def play(key):
        state, seen = learner.init(key, params), []
        for round, each in enumerate(losses):
            state = learner.update(jax.random.fold_in(key, round), params, state, jnp.asarray(each, float))
            seen.append(jnp.argmax(state.public))
        return jnp.stack(seen)

    drawn = np.asarray(jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(7), 20_000)))
    distribution = distribution_of_draws(params, losses)
    found = [tuple(each) for each in drawn.tolist()]
    assert g_test(found, distribution) > 1e-4
    assert g_test(found, distribution_of_draws(params, losses[::-1])) < 1e-4  # planted


def log_chances(num_experts, horizon, num_switches, epsilon, lanes):
    """Returns ln P(all plays after the first are among half of the experts | noise), [2, lanes].

    That half has no loss in the first round and the other half has 1, or the other way round; later nobody has any.
    """
    learner = mirror_descent(num_experts=num_experts, horizon=horizon, num_switches=num_switches, constants="paper")
    params = jax.tree.map(jnp.asarray, learner.params(epsilon=epsilon))
    half = jnp.arange(num_experts) < num_experts // 2

    def lane(key, first):
        def step(state, round):
            losses = (first & (round == 0)).astype(float)
            report = learner.privatize(jax.random.fold_in(key, round), params, state.public, None, jnp.int32(0), losses)
            state = learner.update(key, params, state, report)
            return state, jnp.log(jnp.sum(jnp.where(half, 0, state.public)))

        _, logs = jax.lax.scan(step, learner.init(key, params), jnp.arange(horizon - 1))
        return logs.sum()

    keys = jax.random.split(jax.random.key(11), lanes)
    # The same noise for both: only the ratio matters.
    run = jax.jit(jax.vmap(lane, (0, None)))
    return np.stack([np.asarray(run(keys, first), np.float64) for first in (half, ~half)]), learner


def log_ratio(logs):
    return np.logaddexp.reduce(logs[0]) - np.logaddexp.reduce(logs[1])


@pytest.mark.parametrize(("num_experts", "lanes", "about"), [(2000, 32, 4.3), (2000, 200, 4.3)])
def test_plays_of_the_published_form_exceed_epsilon(num_experts, lanes, about):
    epsilon = 0.5
    logs, learner = log_chances(num_experts, 100, 10, epsilon, lanes)
    rng = np.random.default_rng(0)
    boots = [log_ratio(logs[:, rng.integers(lanes, size=lanes)]) for _ in range(1000)]
    low, high = np.quantile(boots, [0.005, 0.995])
    assert low > 4 * epsilon
    assert low - 0.3 < about < high + 0.3
    assert high < learner.guarantee(epsilon=epsilon).epsilon == num_experts * epsilon


# ---- independent versions --------------------------------------------------------------------------------------------
def numpy_intervals(rng, losses, params, moves, lanes):
    """Returns the total loss of "intervals" by an independent version, [lanes]."""
    horizon, num_experts = losses.shape
    rates = np.asarray(params.interval_rates, np.float64)
    levels, share = len(rates), moves / (horizon - 1)
    weights, total = np.full((lanes, levels), 1 / levels), np.zeros(lanes)
    for t in range(horizon):
        drawn = np.empty((lanes, levels), int)
        for level in range(levels):
            start = t - t % 2**level
            odds = np.exp(-rates[level] * losses[start:t].sum(0))
            drawn[:, level] = rng.choice(num_experts, size=lanes, p=odds / odds.sum())
        own = losses[t][drawn]
        total += (weights * own).sum(1)
        noisy = own + float(params.noise_stddev) * rng.standard_normal(own.shape)
        kept = weights * np.exp(-float(params.learning_rate) * noisy)
        kept /= kept.sum(1, keepdims=True)
        weights = (1 - share) * kept + share / (levels - 1) * (1 - kept)
    return total


def numpy_noisy(rng, losses, params, share, lanes):
    """Returns the total loss of "noisy_losses" with Gaussian noise by an independent version, [lanes]."""
    num_experts = losses.shape[1]
    weights, total = np.full((lanes, num_experts), 1 / num_experts), np.zeros(lanes)
    for each in losses:
        total += weights @ each
        noisy = each + float(params.noise_stddev) * rng.standard_normal(weights.shape)
        kept = weights * np.exp(-float(params.learning_rate) * noisy)
        kept /= kept.sum(1, keepdims=True)
        weights = (1 - share) * kept + share / (num_experts - 1) * (1 - kept)
    return total


@pytest.mark.parametrize("form", ["noisy_losses", "intervals"])
def test_an_independent_version_agrees(form):
    num_experts, horizon, lanes, values = 3, 40, 3000, {"epsilon": 50.0, "delta": 1e-6}
    learner = mirror_descent(num_experts=num_experts, horizon=horizon, num_switches=2, form=form)
    params = learner.params(**values)
    traced = jax.tree.map(jnp.asarray, params)
    losses = np.random.default_rng(3).uniform(0, 1, (horizon, num_experts))
    losses[:20, 0] *= 0.3
    losses[20:, 1] *= 0.3

    def play(key):
        def step(state, now):
            round, each = now
            keys = jax.random.split(jax.random.fold_in(key, round), 3)
            action = learner.act(keys[0], traced, state.public, None)
            report = learner.privatize(keys[1], traced, state.public, None, action, each)
            return learner.update(keys[2], traced, state, report), each[action]

        given = jnp.arange(horizon), jnp.asarray(losses, float)
        return jax.lax.scan(step, learner.init(jax.random.fold_in(key, horizon), traced), given)[1].sum()

    found = np.asarray(jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(2), lanes)), np.float64)
    rng = np.random.default_rng(5)

    def other(losses):
        if form == "intervals":
            return numpy_intervals(rng, losses, params, min(horizon - 1, math.ceil(6 * math.log2(horizon))), lanes)
        return numpy_noisy(rng, losses, params, 2 / (horizon - 1), lanes)

    def standardised(values):
        return abs(found.mean() - values.mean()) / math.hypot(found.std(), values.std()) * math.sqrt(lanes)

    assert standardised(other(losses)) < 4
    assert standardised(other(losses[:, ::-1] * 1.05)) > 4  # planted
