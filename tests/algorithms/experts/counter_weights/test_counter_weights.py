"""Counter weights: bounds, privacy by the grey box, mutants, distribution, and the limit without privacy."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.audit import UserData, full_information, grey_box
from jaxdp.experts import (
    classes,
    counter_weights,
    counter_weights_parameters,
    fixed_share,
    hedge,
    lazy_weights,
    mirror_descent,
)
from jaxdp.experts._counter_parameters import static_bound
from jaxdp.experts._lazy_weights.decisions import weigh_experts
from tests.algorithms.experts.counted_mutants import for_one_expert, too_little_noise

VALUES: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
FREE: dict[str, Any] = {"epsilon": math.inf, "delta": 1e-6}


# ---- bounds ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("num_experts", "horizon", "bound"),
    [(10, 10**5, 369), (10, 10**6, 1086), (100, 10**5, 808), (100, 10**6, 1693), (1000, 10**5, 2587)],
)
def test_static_bounds(num_experts, horizon, bound):
    best = counter_weights_parameters(**VALUES, num_experts=num_experts, horizon=horizon)
    assert best.regret_bound == pytest.approx(bound, rel=3e-3)  # of the exact square root's, which has 1% less variance
    about: dict[str, Any] = {"variance": best.noise_stddev**2, "num_experts": num_experts, "horizon": horizon}
    assert best.regret_bound is not None
    assert static_bound(best.learning_rate, **about) == pytest.approx(best.regret_bound)
    for factor in (0.8, 1.25):
        assert static_bound(factor * best.learning_rate, **about) > best.regret_bound


def test_parameters_of_other_classes_and_ends():
    about: dict[str, Any] = {"num_experts": 10, "horizon": 10**5}
    switching = {**about, "num_switches": 5, "sequences": classes.switching(num_switches=5)}
    private, free = (counter_weights_parameters(**values, **switching) for values in (VALUES, FREE))
    assert private.regret_bound is None
    assert private.learning_rate == pytest.approx(1 / private.noise_stddev)
    assert (free.noise_stddev, free.rho) == (0, math.inf)
    nats = classes.switching(num_switches=5)(**about).log_inverse_prior(5)
    assert free.learning_rate == pytest.approx(math.sqrt(8 * nats / 10**5))
    assert free.regret_bound == pytest.approx(math.sqrt(nats * 10**5 / 2))
    bounds: list[Any] = [
        counter_weights_parameters(epsilon=e, delta=1e-6, **about).regret_bound for e in (0.2, 1, 4, math.inf)
    ]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == pytest.approx(math.sqrt(math.log(10) * 10**5 / 2))


# ---- privacy ---------------------------------------------------------------------------------------------------------
def draw_user(key):
    """Draws users; many change all losses at once, as far as possible and beyond."""
    key_all, key_each = jax.random.split(key)
    same = jnp.broadcast_to(jax.random.bernoulli(key_all), (5,))
    each = jax.random.choice(key_each, jnp.array([-1.0, 0.3, 1.0, 2.0, jnp.nan], float), (5,))
    return UserData(jnp.where(jax.random.bernoulli(key), same.astype(float), each))


def audited(learner):
    return grey_box(
        jax.random.key(0), learner, VALUES, draw_user, rounds=4, answer=full_information, num_bases=2, num_neighbours=64
    )


def test_grey_box_finds_the_claim():
    learner = counter_weights(num_experts=5, horizon=6)  # of another class the rest is post-processing, too
    claim: Any = learner.guarantee(**VALUES)
    found = audited(learner)
    assert claim.epsilon_at(1e-6) == pytest.approx(1)
    assert found.verdict == "consistent"
    (site,) = found.sites
    assert site.measured == pytest.approx(math.sqrt(5))
    counter = learner.params(**VALUES).counter
    spent = (site.measured / (site.declared or 0) * counter.l2_sensitivity / counter.noise_stddev) ** 2 / 2
    assert 0.9 * claim.rho <= spent <= claim.rho * (1 + 1e-6)
    assert not learner.guarantee(**FREE).is_private


@pytest.mark.parametrize("mutant", [for_one_expert, too_little_noise])
def test_mutants_are_flagged(mutant):
    found = audited(mutant(counter_weights(num_experts=5, horizon=6)))
    assert found.verdict == "violated"
    assert any("cost" in fault or "declared" in fault for fault in found.faults)


# ---- distribution ----------------------------------------------------------------------------------------------------
def before_each_round(learner, params, losses, read):
    """Returns `read` of the states before each round, by one compiled program."""

    @jax.jit
    def play(params, losses):
        key = jax.random.key(1)

        def step(state, now):
            round, each = now
            report = learner.privatize(key, params, state.public, None, jnp.int32(0), each)
            return learner.update(jax.random.fold_in(key, round), params, state, report), read(state)

        return jax.lax.scan(step, learner.init(key, params), (jnp.arange(len(losses)), losses))[1]

    return np.asarray(play(jax.tree.map(jnp.asarray, params), jnp.asarray(losses, jnp.result_type(float))))


def test_without_privacy_all_learners_have_the_same_weights():
    num_experts, horizon = 3, 9
    losses = np.random.default_rng(0).uniform(0, 1, (horizon, num_experts))
    sizes: dict[str, Any] = {"num_experts": num_experts, "horizon": horizon}
    rate = 0.7

    def weights_of(learner, values, distribution):
        return before_each_round(learner, learner.params(**values, learning_rate=rate), losses, distribution)

    def of_class(sequences):
        made = sequences(**sizes)
        counted = counter_weights(**sizes, sequences=sequences, num_switches=1)
        lazy = lazy_weights(**sizes, sequences=sequences, num_switches=1 if sequences != classes.static() else 0)
        yield weights_of(counted, FREE, lambda state: made.marginal(state.public.weights, state.public.round))
        given = {**FREE, "batch": 1}
        yield weights_of(lazy, given, lambda state: made.marginal(state.private.weights, state.public.round))

    totals = np.concatenate([np.zeros((1, num_experts)), losses.cumsum(0)[:-1]])
    plain = np.exp(-rate * totals)
    plain /= plain.sum(1, keepdims=True)

    def shares(odds):
        odds = odds.astype(float)
        return odds / odds.sum()

    def softmax(state):
        return jax.nn.softmax(-rate * (state.public.total - state.public.excess))

    static = counter_weights(**sizes)
    made = classes.static()(**sizes)
    alike = [
        weights_of(hedge(**sizes), {}, softmax),
        weights_of(static, FREE, lambda state: made.marginal(state.public.weights, state.public.round)),
        weights_of(
            lazy_weights(**sizes),
            {**FREE, "batch": 1},
            lambda state: shares(weigh_experts(num_experts).odds(rate, state.private.weights, jnp.int32(0))[0]),
        ),
    ]
    for found in alike:
        np.testing.assert_allclose(found, plain, rtol=1e-5)

    share = 1 / (horizon - 1)
    tracked = [np.full(num_experts, 1 / num_experts)]
    for each in losses[:-1]:
        kept = tracked[-1] * np.exp(-rate * each)
        kept /= kept.sum()
        tracked.append((1 - share) * kept + share / (num_experts - 1) * (1 - kept))
    mirrors = {
        form: mirror_descent(**sizes, num_switches=1, form=form, noise=None) for form in ("sampling", "noisy_losses")
    }
    alike = [
        weights_of(fixed_share(**sizes, num_switches=1), {}, lambda state: state.public),
        weights_of(mirrors["sampling"], FREE, lambda state: state.private.total - state.private.excess),
        weights_of(mirrors["noisy_losses"], FREE, lambda state: state.public),
        *of_class(classes.markov(switch_rate=share)),
    ]
    for found in alike:
        np.testing.assert_allclose(found, tracked, rtol=1e-5)
    assert np.abs(np.asarray(tracked) - plain).max() > 0.01  # planted


def numpy_losses_of_play(rng, losses, rate, rho, lanes):
    """sum <w_t, l_t> of an independent version over single experts, with the exact square root: [lanes]."""
    horizon, num_experts = losses.shape
    square_root = np.cumprod(np.concatenate([[1.0], 1 - 1 / (2 * np.arange(1, horizon))]))
    stddev = math.sqrt((square_root**2).sum() * num_experts / (2 * rho))
    factor = np.asarray([[square_root[t - s] if s <= t else 0.0 for s in range(horizon)] for t in range(horizon)])
    noise = np.einsum("ts,lsi->lti", factor, stddev * rng.standard_normal((lanes, horizon, num_experts)))
    totals = np.concatenate([np.zeros((lanes, 1, num_experts)), losses.cumsum(0) + noise], axis=1)[:, :-1]
    odds = np.exp(-rate * (totals - totals.min(2, keepdims=True)))
    return (odds / odds.sum(2, keepdims=True) * losses).sum((1, 2))


def test_an_independent_version_agrees_and_regret_is_below_the_bound():
    num_experts, horizon, lanes = 4, 150, 1500
    values: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-6}
    learner = counter_weights(num_experts=num_experts, horizon=horizon)
    losses = np.random.default_rng(3).uniform(0, 1, (horizon, num_experts))
    losses[:, 2] *= 0.6
    params = jax.tree.map(jnp.asarray, learner.params(**values))
    made = classes.static()(num_experts=num_experts, horizon=horizon)

    def play(key):
        def step(state, now):
            round, each = now
            mean = (made.marginal(state.public.weights, round) * each).sum()
            return learner.update(jax.random.fold_in(key, round), params, state, each), mean

        given = jnp.arange(horizon), jnp.asarray(losses, jnp.result_type(float))
        return jax.lax.scan(step, learner.init(key, params), given)[1].sum()

    found = np.asarray(jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(2), lanes)), np.float64)
    claim: Any = learner.guarantee(**values)
    rng, rho, rate = np.random.default_rng(4), claim.rho, float(params.learning_rate)

    def standardised(other):
        error = math.hypot(found.std() / math.sqrt(lanes), other.std() / math.sqrt(len(other)))
        return abs(found.mean() - other.mean()) / error

    assert standardised(numpy_losses_of_play(rng, losses, rate, rho, lanes)) < 4
    assert standardised(numpy_losses_of_play(rng, losses, rate, 2 * rho, lanes)) > 4  # planted
    regret, error = found.mean() - losses.sum(0).min(), found.std() / math.sqrt(lanes)
    bound: Any = counter_weights_parameters(**values, num_experts=num_experts, horizon=horizon).regret_bound
    assert regret + 3 * error < bound


# ---- errors ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_experts": 1, "horizon": 5}, "num_experts must be an integer >= 2, got 1"),
        ({"num_experts": 2, "horizon": 0}, "horizon must be an integer >= 1, got 0"),
        ({"num_experts": 2, "horizon": 5, "sequences": classes.switching(num_switches=5)}, "must be < horizon, got 5"),
        ({"num_experts": 2, "horizon": 5, "sequences": classes.markov()}, r"num_switches must be given for markov\(\)"),
    ],
)
def test_factory_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        counter_weights(**arguments)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be > 0, got 0.0"),
        ({"delta": 1.0}, r"delta must be in \(0, 1\), got 1.0"),
        ({"learning_rate": -1.0}, "learning_rate must be > 0, got -1.0"),
        ({"learning_rate": math.inf}, "learning_rate must be finite, got inf"),
    ],
)
def test_value_errors(values, message):
    with pytest.raises(ValueError, match=message):
        counter_weights(num_experts=2, horizon=10).params(**{**VALUES, **values})


def test_a_comparator_outside_the_class_is_refused():
    about: dict[str, Any] = {"num_experts": 2, "horizon": 5}
    for too_many in (1, 5):
        with pytest.raises(ValueError, match=rf"num_switches must be .*, got {too_many}"):
            counter_weights_parameters(**VALUES, **about, num_switches=too_many)
