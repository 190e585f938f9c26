"""Classes of sequences against brute force; weights after many rounds; planted arithmetics that fail."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.audit import g_test
from jaxdp.experts import classes
from jaxdp.experts._filter import _filter
from tests.algorithms.experts import enumerated

X64 = jax.config.read("jax_enable_x64")
TOLERANCE = 1e-12 if X64 else 1e-5
FLOAT = np.float64 if X64 else np.float32


def cases(horizon) -> Iterator[tuple[str, classes.Sequences, dict[str, Any]]]:
    yield "static", classes.static(), {}
    yield "markov", classes.markov(switch_rate=0.3), {"rate": 0.3}
    yield "mixture", classes.markov(), {}
    for most in range(min(4, horizon)):
        yield "switching", classes.switching(num_switches=most), {"num_switches": most}


SIZES = list(itertools.product((2, 3), range(1, 7)))


def merged(members, of):
    result = {}
    for member, weight in members.items():
        key = of(member)
        result[key] = result.get(key, 0.0) + weight
    return result


def check_weights(made, compiled, name, values, horizon):
    """Compares a class with the enumeration of its sequences of the last `horizon` rounds."""
    num_experts, late = made.num_experts, made.horizon - horizon
    scaled = np.random.default_rng(horizon).uniform(-1, 3, (horizon, num_experts)).astype(FLOAT).astype(float)
    prior = enumerated.members(name, num_experts, horizon, **values)
    weights = made.init()
    for round in range(horizon):
        exact = enumerated.weights(prior, scaled, round)
        total = sum(exact.values())
        now = jnp.int32(late + round), jnp.asarray(scaled[round], FLOAT)
        (found, _), after = jax.tree.map(np.asarray, compiled(weights, *now))
        expected = np.zeros_like(found, float)
        for state, weight in merged(exact, lambda member, round=round: enumerated.state(member, round)).items():
            expected[state] = weight / total
        assert np.abs(found - expected).max() < TOLERANCE, (name, values, horizon, round)
        if name == "static":  # the sum over all sequences, of prior 1 each
            logs = np.asarray(weights.evidence.total, float) - np.asarray(weights.evidence.excess, float)
            assert np.exp2(logs).sum() == pytest.approx(total * len(prior), rel=10 * TOLERANCE)
        if name == "switching":  # likewise
            most, left = values.get("num_switches", 0), horizon - 1 - round
            sums = np.asarray(weights.sums.mantissa, float) * 2.0 ** np.asarray(weights.sums.power, float)
            ahead = [
                sum(math.comb(left, k) * (num_experts - 1) ** k for k in range(most - c + 1)) for c in range(most + 1)
            ]
            normaliser = 2.0 ** int(weights.removed) * (sums * np.asarray(ahead)[:, None]).sum()
            assert normaliser == pytest.approx(total * len(prior), rel=10 * TOLERANCE)
        weights = after
    return weights


def compiled(made):
    """Compiles (weights, round, losses) -> the distribution and the marginal before that round, and the weights
    after it.
    """

    def step(weights, round, losses):
        odds = made.odds(weights, round)
        return (odds / odds.sum(), made.marginal(weights, round)), made.forward(weights, round, losses)

    return jax.jit(step)


@pytest.mark.parametrize("num_experts", [2, 3])
def test_weights_equal_enumeration(num_experts):
    """Starts late, so that one compilation serves all horizons."""
    for name, sequences, values in cases(6):
        made = sequences(num_experts=num_experts, horizon=6)
        step = compiled(made)
        for horizon in [] if name == "mixture" else range(1, 6):  # which has other rates at other horizons
            check_weights(made, step, name, values, horizon)
        weights = check_weights(made, step, name, values, 6)
        distribution, marginal = step(weights, jnp.int32(5), jnp.zeros(num_experts, FLOAT))[0]
        assert np.abs(np.asarray(marginal) - np.asarray(distribution).sum(0)).max() < TOLERANCE


@pytest.mark.parametrize(("num_experts", "horizon"), [(3, 1), (3, 2), (2, 3), (3, 4)])
def test_weights_equal_enumeration_at_other_horizons(num_experts, horizon):
    for name, sequences, values in cases(horizon):
        made = sequences(num_experts=num_experts, horizon=horizon)
        check_weights(made, compiled(made), name, values, horizon)


@pytest.mark.parametrize(("num_experts", "horizon"), SIZES)
def test_priors_equal_enumeration(num_experts, horizon):
    for name, sequences, values in cases(horizon):
        made = sequences(num_experts=num_experts, horizon=horizon)
        prior = merged(enumerated.members(name, num_experts, horizon, **values), lambda member: member[1])
        for num_switches in range(horizon):
            chances = {p for sequence, p in prior.items() if enumerated.switches_of(sequence) == num_switches}
            expected = [-math.log(p) for p in chances] or [math.inf]
            assert made.log_inverse_prior(num_switches) == pytest.approx(expected[0])


@pytest.mark.parametrize(
    ("name", "late"), [("static", 0), ("switching", 0), ("switching", 2), ("markov", 0), ("mixture", 0)]
)
def test_a_sequence_is_drawn_by_weight_and_rolled_by_the_prior(name, late):
    """Draws the whole future at once; a class that starts late is the class of the remaining rounds."""
    num_experts, horizon, round = 3, 5, 2
    _, sequences, values = next(case for case in list(cases(2))[::-1] if case[0] == name)
    made = sequences(num_experts=num_experts, horizon=horizon + late)
    scaled = np.random.default_rng(4).uniform(0, 1, (round, num_experts))
    weights = made.init()
    for each in range(round):
        weights = made.forward(weights, jnp.int32(late + each), jnp.asarray(scaled[each], FLOAT))
    prior = enumerated.members(name, num_experts, horizon, **values)
    if name == "mixture" and math.ceil(math.log2(horizon)) != 3:
        raise AssertionError("other rates")

    def future(key):
        keys = jax.random.split(key, horizon - round)
        labels = [made.draw(keys[0], weights, jnp.int32(late + round))]
        for place, at in enumerate(range(round, horizon - 1), 1):
            labels.append(made.roll(keys[place], labels[-1], jnp.int32(late + at)))
        return jnp.stack([part for label in labels for part in label])

    draws = np.asarray(jax.jit(jax.vmap(future))(jax.random.split(jax.random.key(2), 40_000)))
    found = [tuple(each) for each in draws.tolist()]
    exact = enumerated.weights(prior, scaled, round)

    def drawn(member):
        states = [enumerated.state(member, each) for each in range(round, horizon)]
        return tuple(part for row, expert in states for part in (expert, row))

    distribution = merged({member: weight / sum(exact.values()) for member, weight in exact.items()}, drawn)
    assert g_test(found, distribution) > 1e-4
    assert g_test(found, merged(prior, drawn)) < 1e-4  # planted: without the losses


@pytest.mark.always
def test_a_switch_is_to_any_other_expert():
    made = classes.markov(switch_rate=0.3)(num_experts=3, horizon=9)
    label = jax.eval_shape(made.draw, jax.random.key(0), made.init(), jnp.int32(0))
    label = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), label)._replace(expert=jnp.int32(1))
    roll = jax.jit(jax.vmap(lambda key: made.roll(key, label, jnp.int32(0)).expert))
    shares = np.bincount(roll(jax.random.split(jax.random.key(1), 20_000)), minlength=3) / 20_000
    errors = np.sqrt(np.asarray([0.15 * 0.85, 0.3 * 0.7, 0.15 * 0.85]) / 20_000)
    assert (np.abs(shares - [0.15, 0.7, 0.15]) < 5 * errors).all()


# ---- many rounds -----------------------------------------------------------------------------------------------------
def shifting(horizon, num_segments, num_experts, nats, seed=0):
    """Makes scaled losses [horizon, num_experts] float32: each segment's best expert gains so many nats on the
    others.
    """
    generator, length = np.random.default_rng(seed), horizon // num_segments
    best = np.arange(horizon) // length % num_experts
    means = np.where(np.arange(num_experts) == best[:, None], 0.25, 0.75)
    losses = generator.random((horizon, num_experts)) < means
    gains = np.resize(np.asarray(nats, float), num_segments)[np.minimum(np.arange(horizon) // length, num_segments - 1)]
    return (losses * (gains / (0.5 * length))[:, None]).astype(np.float32)


def distributions(made, scaled, every):
    """Returns P_t after each `every` rounds, flat."""

    def several(weights, inputs):
        losses, start = inputs
        weights = jax.lax.fori_loop(0, every, lambda i, w: made.forward(w, start + i, losses[i]), weights)
        odds = made.odds(weights, start + every)
        return weights, (odds / odds.sum()).ravel()

    parts = jnp.asarray(scaled, FLOAT).reshape(-1, every, scaled.shape[1])
    starts = every * jnp.arange(len(parts), dtype=jnp.int32)
    return np.asarray(jax.jit(lambda *inputs: jax.lax.scan(several, made.init(), inputs)[1])(parts, starts), float)


def exclusive(logs):
    """Returns, for each entry of a row, the logarithm of the sum of the others."""
    ahead = np.logaddexp.accumulate(logs, axis=1)
    behind = np.logaddexp.accumulate(logs[:, ::-1], axis=1)[:, ::-1]
    none = np.full((len(logs), 1), -np.inf)
    return np.logaddexp(np.hstack([none, ahead[:, :-1]]), np.hstack([behind[:, 1:], none]))


def exact_distributions(scaled, every, most, dtype: Any = np.float64):
    """Computes the same of `switching` by logarithms, in NumPy."""
    horizon, num_experts = scaled.shape
    logs, found = np.full((most + 1, num_experts), -np.inf, dtype), []
    logs[0] = 0.0
    for round, losses in enumerate(scaled.astype(dtype)):
        logs = logs - losses
        logs[1:] = np.logaddexp(logs[1:], exclusive(logs[:-1]))
        if (round + 1) % every == 0:
            left = max(horizon - 2 - round, 0)
            futures = [
                sum(math.comb(left, k) * (num_experts - 1) ** k for k in range(most - c + 1)) for c in range(most + 1)
            ]
            odds = logs + np.asarray([math.log(each) for each in futures])[:, None]
            odds = np.exp((odds - odds.max()).astype(float))
            found.append((odds / odds.sum()).ravel())
    return np.asarray(found)


def distance(found, exact):
    assert np.isfinite(found).all()
    return np.abs(found - exact).sum(1).max() / 2


def one_power_a_row(made):
    """Plants a shared power of two for the entries of a row, so that entries too small for a float are lost."""

    def forward(weights, round, scaled_losses):
        after = made.forward(weights, round, scaled_losses)
        top = jnp.max(after.sums.power, axis=1, keepdims=True)
        lost = after.sums.power < top + int(np.log2(np.finfo(FLOAT).tiny))
        return after._replace(sums=after.sums._replace(power=jnp.where(lost, -(2**30), after.sums.power)))

    return made._replace(forward=forward)


SHIFTS = [300, 150, 400, 200]
FEW = {"horizon": 20_000, "num_segments": 9, "num_experts": 10, "nats": SHIFTS}


def test_weights_after_many_rounds():
    """Shifts more often than the switches, so that entries that had all but vanished come back."""
    scaled = shifting(**FEW)
    exact = exact_distributions(scaled, 40, 5)
    made = classes.switching(num_switches=5)(num_experts=10, horizon=len(scaled))
    assert distance(distributions(made, scaled, 40), exact) < (1e-9 if X64 else 1e-4)
    if not X64:
        assert distance(exact_distributions(scaled, 40, 5, np.float32), exact) > 1e-4  # planted: logarithms in float32
        assert distance(distributions(one_power_a_row(made), scaled, 40), exact) > 0.1


@pytest.mark.parametrize("horizon", [10**5, 10**6])
def test_weights_after_a_million_rounds(horizon):
    scaled, made = shifting(horizon, 9, 10, SHIFTS), classes.switching(num_switches=5)(num_experts=10, horizon=horizon)
    every = horizon // 500
    assert distance(distributions(made, scaled, every), exact_distributions(scaled, every, 5)) < 1e-4


def exact_distributions_of_rates(scaled, every):
    """Computes the same of `markov()`: fixed share and its evidence for each rate, in NumPy."""
    horizon, num_experts = scaled.shape
    rates = 2.0 ** -np.arange(1, math.ceil(math.log2(horizon)) + 1)[:, None]
    shares, nats, found = np.full((len(rates), num_experts), 1 / num_experts), np.zeros((len(rates), 1)), []
    for round, change in enumerate(np.exp(-scaled.astype(float)), 1):
        shares = shares * change
        left = shares.sum(1, keepdims=True)
        nats, shares = nats + np.log(left), shares / left
        shares = (1 - rates) * shares + rates / (num_experts - 1) * (1 - shares)
        if round % every == 0:
            odds = np.exp(nats - nats.max()) * shares
            found.append((odds / odds.sum()).ravel())
    return np.asarray(found)


def plain_evidence(made):
    """Plants weights of rates that are products, rounded in every round."""

    def forward(weights, round, scaled_losses):
        after = made.forward(weights, round, scaled_losses)
        return after._replace(evidence=after.evidence._replace(excess=jnp.zeros_like(after.evidence.excess)))

    return made._replace(forward=forward)


def drift_of(step, losses, rate):
    """Returns the drift of products of floats, rounded in each step, from exact ones, as a share of a resample's
    range.
    """
    sums = _filter.Scaled(jnp.ones((1, losses.shape[1]), FLOAT), jnp.zeros((1, losses.shape[1]), jnp.int32))
    scaled = jnp.asarray(rate * losses, FLOAT)
    found = jax.lax.scan(lambda sums, losses: (step(sums, losses), None), sums, scaled)[0]
    logs = np.log(np.asarray(found.mantissa, float)) + np.asarray(found.power) * math.log(2)
    return np.ptp(logs + np.asarray(scaled, float).sum(0)) / (2 * rate)


def test_weights_of_experts_do_not_drift_apart():
    """Checks losses that differ in one round: weights differ by that round's loss, to a float's precision."""
    horizon, rate = 20_000, 1e-5
    losses = (np.random.default_rng(2).random((horizon, 3)) < 0.5).astype(float)
    made = classes.static()(num_experts=3, horizon=horizon)
    pair = []
    for first in ([1.0, 0.0, 0.0], [0.0, 1.0, 1.0]):
        losses[0] = first
        pair.append(np.log(distributions(made, (rate * losses).astype(FLOAT), horizon // 20)))
    assert np.abs(np.ptp(pair[0] - pair[1], axis=1) / (2 * rate) - 1).max() < 0.02
    if not X64:  # planted: an added share is rounded in every step
        plain = _filter.Flow(None, 0)
        step = jax.jit(lambda sums, losses: _filter.step(plain, sums, losses)[0])
        assert drift_of(step, losses, rate) > 0.05


def test_rates_after_many_rounds():
    scaled = shifting(**FEW)
    exact = exact_distributions_of_rates(scaled, 40)
    made = classes.markov()(num_experts=10, horizon=len(scaled))
    assert distance(distributions(made, scaled, 40), exact) < (1e-9 if X64 else 1e-5)
    if not X64:
        assert distance(distributions(plain_evidence(made), scaled, 40), exact) > 1e-4


@pytest.mark.parametrize("nats", [SHIFTS, [0]])
def test_rates_after_a_million_rounds(nats):
    """Checks rounds without losses, too, where all rates stay as likely as they were."""
    scaled = shifting(10**6, 9, 10, nats)
    made = classes.markov()(num_experts=10, horizon=len(scaled))
    assert distance(distributions(made, scaled, 2000), exact_distributions_of_rates(scaled, 2000)) < 1e-4


def test_many_experts_and_switches_stay_finite():
    scaled = shifting(400, 25, 1000, [300])
    for sequences in (classes.switching(num_switches=20), classes.markov()):
        found = distributions(sequences(num_experts=1000, horizon=400), scaled, 50)
        assert np.isfinite(found).all()
        assert np.abs(found.sum(1) - 1).max() < 1e-5


def test_many_experts_and_two_rounds():
    """Checks one rate only, and a row too long for the kernels of few experts."""
    found = distributions(classes.markov()(num_experts=40, horizon=2), np.zeros((2, 40)), 1)
    assert found == pytest.approx(1 / 40, rel=1e-5)


@pytest.mark.parametrize("num_experts", [3, 20])  # below and above the limit of unrolled loops
def test_huge_losses_weigh_as_large_ones(num_experts):
    horizon = 40
    best = np.where(np.arange(horizon) < 25, 0, 1)
    best[[5, 30]] = 2
    losses = jnp.asarray(np.arange(num_experts) != best[:, None], FLOAT)
    for sequences in (classes.switching(num_switches=2), classes.markov(switch_rate=0.01)):
        made = sequences(num_experts=num_experts, horizon=horizon)

        def marginals(rate, sign, made=made):
            def play(weights, now):
                round, loss = now
                after = made.forward(weights, round, rate * (loss + sign))
                return after, made.marginal(after, round + 1)

            return jax.lax.scan(play, made.init(), (jnp.arange(horizon - 1, dtype=jnp.int32), losses[:-1]))[1]

        large, *huge = jax.jit(jax.vmap(marginals))(
            jnp.asarray([1e4, 1e9, 1e30, 1e9], FLOAT), jnp.asarray([0, 0, 0, -1], FLOAT)
        )
        assert float(large[28, 1]) > 0.9
        for each in huge:
            np.testing.assert_allclose(each, large, atol=1e-4)


def test_losses_of_any_sign_and_size():
    """Makes losses by noise: the posterior depends on their sums."""
    scaled = np.random.default_rng(3).normal(0, 40, (2_000, 4)).astype(np.float32)
    made = classes.static()(num_experts=4, horizon=2_000)
    for exact, found in zip(
        -np.cumsum(scaled.astype(float), 0)[399::400], distributions(made, scaled, 400), strict=True
    ):
        odds = np.exp(exact - exact.max())
        assert distance(found[None], (odds / odds.sum())[None]) < 1e-2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: classes.switching(num_switches=-1), "num_switches must be an integer >= 0, got -1"),
        (lambda: classes.switching(num_switches=4)(num_experts=3, horizon=4), "num_switches must be < horizon, got 4"),
        (lambda: classes.markov(switch_rate=0.0), r"switch_rate must be in \(0, 1\), got 0.0"),
        (lambda: classes.markov(switch_rate=1.0), r"switch_rate must be in \(0, 1\), got 1.0"),
        (lambda: classes.markov(switch_rate=math.nan), "switch_rate must be finite, got nan"),
        (lambda: classes.markov()(num_experts=3, horizon=2**30), "horizon must be <= 536870912 for the mixture"),
        (lambda: classes.static()(num_experts=1, horizon=4), "num_experts must be an integer >= 2, got 1"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_names():
    every = (classes.static(), classes.switching(num_switches=5), classes.markov(), classes.markov(switch_rate=0.01))
    names = ["static()", "switching(num_switches=5)", "markov()", "markov(switch_rate=0.01)"]
    assert [repr(each) for each in every] == names
    assert [each(num_experts=2, horizon=9).name for each in every] == names
