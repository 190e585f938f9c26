"""Lazy weights: the distribution of transcripts, exact audits, mutants, parameters, and the limit without privacy."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.audit import exact_epsilon, exact_rho, g_test
from jaxdp.experts import classes, lazy_weights, lazy_weights_parameters
from jaxdp.experts._lazy_weights import decisions as _lazy_decisions
from jaxdp.mechanisms.tape import recording
from jaxdp.numerics import fixed_point
from tests.algorithms.experts import enumerated
from tests.algorithms.experts.lazy_weights.lazy_mutants import unlimited, without_fake_switches

DRAWS = 40_000
GIVEN = {"epsilon": 30.0, "delta": 1e-6}
CLASSES = {
    "static": (classes.static(), {}),
    "switching": (classes.switching(num_switches=1), {"num_switches": 1}),
    "markov": (classes.markov(switch_rate=0.3), {"rate": 0.3}),
    "mixture": (classes.markov(), {}),
}


def made(name, *, num_experts=2, horizon=3, accounting="zcdp"):
    sequences, _ = CLASSES[name]
    return lazy_weights(
        num_experts=num_experts, horizon=horizon, sequences=sequences, num_switches=0, accounting=accounting
    )


def prior_of(name, num_experts, num_batches):
    return enumerated.members(name, num_experts, num_batches, **CLASSES[name][1])


def enumerated_distribution(name, params, losses):
    batch = int(params.batch)
    prior = prior_of(name, losses.shape[1], -(-len(losses) // batch))
    rate, fake = float(params.learning_rate), float(params.fake_switch_prob)
    return enumerated.transcript_distribution(
        prior, losses, rate=rate, fake=fake, batch=batch, budget=int(params.budget)
    )


# ---- distribution ----------------------------------------------------------------------------------------------------
def transcripts(learner, params, losses, draws=DRAWS):
    """Returns (row, expert, resamples so far) at the start of each batch."""
    params = jax.tree.map(jnp.asarray, params)

    def play(key):
        key, of_init = jax.random.split(key)

        def step(state, now):
            round, each = now
            of_round = jax.random.split(jax.random.fold_in(key, round))
            action = learner.act(of_round[0], params, state.public, None)
            seen = jnp.stack([state.public.label.row, action, state.public.resamples.astype(jnp.int32)])
            report = learner.privatize(of_round[1], params, state.public, None, action, each)
            return learner.update(jax.random.fold_in(of_round[1], 1), params, state, report), seen

        rounds = jnp.arange(len(losses)), jnp.asarray(losses, jnp.result_type(float))
        return jax.lax.scan(step, learner.init(of_init, params), rounds)[1]

    found = np.asarray(jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(5), draws)))
    for first in range(0, len(losses), int(params.batch)):  # nothing changes within a batch
        assert (found[:, first : first + int(params.batch)] == found[:, first : first + 1]).all()
    return [tuple(map(tuple, each)) for each in found[:, :: int(params.batch)].tolist()]


@pytest.mark.parametrize(
    ("name", "num_experts", "horizon", "batch", "budget"),
    [
        ("switching", 2, 3, 1, 2),
        ("switching", 2, 3, 1, 1),
        ("switching", 3, 5, 2, 2),
        ("mixture", 2, 3, 1, 2),
        ("static", 2, 4, 1, 2),
        ("markov", 3, 4, 1, 3),
    ],
)
def test_the_distribution_of_transcripts(name, num_experts, horizon, batch, budget):
    learner = made(name, num_experts=num_experts, horizon=horizon)
    values = {"learning_rate": 0.9, "fake_switch_prob": 0.25, "batch": batch, "budget": budget}
    params = learner.params(**GIVEN, **values)
    losses = np.random.default_rng(horizon).uniform(0, 1, (horizon, num_experts))
    found = transcripts(learner, params, losses)
    assert g_test(found, enumerated.seen(enumerated_distribution(name, params, losses))) > 1e-4
    other = learner.params(**GIVEN, **{**values, "learning_rate": 1.3})  # planted
    assert g_test(found, enumerated.seen(enumerated_distribution(name, other, losses))) < 1e-4


def test_without_privacy_plays_follow_exponential_weights():
    horizon, num_experts = 4, 3
    learner = made("static", num_experts=num_experts, horizon=horizon)
    params = learner.params(epsilon=math.inf, delta=1e-6)
    assert float(params.fake_switch_prob) == 0
    assert int(params.batch) == 1
    rate = float(params.learning_rate)
    assert rate == pytest.approx(math.sqrt(8 * math.log(num_experts) / horizon))
    losses = np.random.default_rng(1).uniform(0, 1, (horizon, num_experts))
    found = np.asarray([[place[1] for place in each] for each in transcripts(learner, params, losses)])
    for round in range(horizon):
        weights = np.exp(-rate * losses[:round].sum(0))
        assert g_test(found[:, round].tolist(), dict(enumerate(weights / weights.sum()))) > 1e-4
    # Most plays stay where exponential weights draws each one again.
    assert (found[:, 0] == found[:, 1]).mean() > 0.6


# ---- audits ----------------------------------------------------------------------------------------------------------
@functools.cache
def budgets(learner_of, name, horizon, **values):
    """Returns the true rho and epsilon of the learner's parameters, and its claim in either currency."""
    values = dict(itertools.chain(GIVEN.items(), values.items()))
    concentrated, pure = (learner_of(made(name, horizon=horizon, accounting=each)) for each in ("zcdp", "pure"))
    params = concentrated.params(**values)
    every = [np.reshape(bits, (horizon, 2)) for bits in itertools.product((0.0, 1.0), repeat=2 * horizon)]
    distributions = {losses.tobytes(): enumerated_distribution(name, params, losses) for losses in every}
    rho = epsilon = 0.0
    for losses, round in itertools.product(every, range(horizon)):
        for row in itertools.product((0.0, 1.0), repeat=2):
            if row > tuple(losses[round]):  # both directions are looked at
                other = losses.copy()
                other[round] = row
                pair = distributions[losses.tobytes()], distributions[other.tobytes()]
                rho, epsilon = max(rho, exact_rho(*pair)), max(epsilon, exact_epsilon(*pair))
    of_pure = pure.guarantee(**{each: value for each, value in values.items() if each != "delta"})
    return rho, concentrated.guarantee(**values).rho, epsilon, of_pure.epsilon


CASES = [
    ("switching", 3, {"learning_rate": 0.5, "fake_switch_prob": 0.1, "batch": 1, "budget": 1}),
    ("switching", 3, {"learning_rate": 1.0, "fake_switch_prob": 0.3, "batch": 1, "budget": 2}),
    ("markov", 3, {"learning_rate": 0.3, "fake_switch_prob": 0.05, "batch": 1, "budget": 2}),
    ("static", 4, {"learning_rate": 0.5, "fake_switch_prob": 0.1, "batch": 2, "budget": 1}),
]


@pytest.mark.parametrize(("name", "horizon", "values"), CASES)
def test_exact_audit(name, horizon, values):
    rho, claimed_rho, epsilon, claimed_epsilon = budgets(lambda learner: learner, name, horizon, **values)
    assert 0.5 * claimed_rho <= rho <= claimed_rho
    assert 0.5 * claimed_epsilon <= epsilon <= claimed_epsilon


@pytest.mark.parametrize(
    ("mutant", "values"),
    [
        (unlimited, {"learning_rate": 1.0, "fake_switch_prob": 0.5, "batch": 1, "budget": 0}),
        (without_fake_switches, {"learning_rate": 0.5, "fake_switch_prob": 0.3, "batch": 1, "budget": 1}),
    ],
)
def test_mutants_exceed_their_claims(mutant, values):
    rho, claimed_rho, epsilon, claimed_epsilon = budgets(mutant, "switching", 3, **values)
    assert rho > 1.5 * claimed_rho
    assert epsilon > 1.5 * claimed_epsilon


# ---- parameters ------------------------------------------------------------------------------------------------------
def test_parameters():
    best = lazy_weights_parameters(epsilon=1.0, delta=1e-6, num_experts=10, horizon=10**5)
    assert best.learning_rate == pytest.approx(4.74e-3, rel=0.01)
    assert best.fake_switch_prob == pytest.approx(0.0189, rel=0.02)
    assert (best.batch, round(best.regret_bound)) == (2, 605)
    best = lazy_weights_parameters(epsilon=math.inf, delta=1e-6, num_experts=10, horizon=10**5)
    assert best.regret_bound == pytest.approx(math.sqrt(math.log(10) * 10**5 / 2))
    sequences = classes.switching(num_switches=3)
    about = {"delta": 1e-6, "num_experts": 10, "num_switches": 3, "sequences": sequences}
    bounds = [
        lazy_weights_parameters(epsilon=e, horizon=10**6, **about).regret_bound for e in (0.3, 1.0, 4.0, math.inf)
    ]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[1] == pytest.approx(17_731, rel=0.01)


@pytest.mark.parametrize("horizon", [2, 3, 4, 8, 12])
def test_parameters_are_rounded_to_the_safe_side(horizon):
    """Gives the whole budget to one decision, where nothing is resampled."""
    for accounting, delta in (("zcdp", {"delta": 1e-6}), ("pure", {})):
        learner = lazy_weights(num_experts=2, horizon=horizon, accounting=accounting)
        for epsilon in (0.1, 0.5, 1.0, 3.0):
            claim = learner.guarantee(epsilon=epsilon, **delta)
            assert claim.epsilon_at(delta.get("delta", 0.0)) <= epsilon * (1 + 1e-8)
            best = lazy_weights_parameters(
                epsilon=epsilon, delta=1e-6, num_experts=2, horizon=horizon, accounting=accounting
            )
            params = learner.params(epsilon=epsilon, **delta)
            assert float(params.learning_rate) <= best.learning_rate
            assert float(params.fake_switch_prob) >= best.fake_switch_prob


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_claims_are_within_the_budget_and_use_it(accounting):
    learner = lazy_weights(num_experts=10, horizon=10**5, accounting=accounting)
    values = {"epsilon": 1.0, "delta": 1e-6} if accounting == "zcdp" else {"epsilon": 1.0}
    claim = learner.guarantee(**values)
    assert 0.99 < claim.epsilon_at(1e-6 if accounting == "zcdp" else 0.0) <= 1 + 1e-8  # rounding is paid for
    assert not learner.guarantee(**{**values, "epsilon": math.inf}).is_private
    given = {**values, "learning_rate": 1e-3, "fake_switch_prob": 0.02, "batch": 3}
    assert claim.epsilon_at(1e-6 if accounting == "zcdp" else 0.0) <= 1 + 1e-8
    assert int(learner.params(**given).budget) > 0


def test_a_resample_may_cost_nothing():
    tiny = float(np.sqrt(jnp.finfo(jax.dtypes.canonicalize_dtype(float)).tiny)) / 1e10  # its square is 0 in this type
    params = lazy_weights(num_experts=2, horizon=10).params(epsilon=1.0, delta=1e-6, learning_rate=tiny)
    assert params.budget == -(-10 // int(params.batch)) - 1


@pytest.mark.precision
def test_claims_say_where_weights_drift():
    """Checks for a bound at few rounds; at very many there is none in 32 bits if sequences switch, as is said."""

    def claim(sequences, horizon):
        learner = lazy_weights(num_experts=2, horizon=horizon, sequences=sequences, num_switches=0)
        return learner.guarantee(epsilon=4.0, delta=1e-3)

    coarse = jnp.zeros(()).dtype == jnp.float32
    for sequences in (classes.switching(num_switches=1), classes.markov(switch_rate=0.1)):
        short, long = claim(sequences, 60), claim(sequences, 10**7)
        assert short.numerical_delta is not None
        assert 0 < short.numerical_delta < 0.1
        assert ("not covered" in short.argument, "not covered" in long.argument) == (False, coarse)
        assert (long.numerical_delta is None) == coarse
    alone = claim(None, 10**7)
    assert alone.numerical_delta is not None
    assert alone.numerical_delta < 1e-8  # of thousands of draws
    assert "not covered" not in alone.argument


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_experts": 1, "horizon": 5}, "num_experts must be an integer >= 2, got 1"),
        ({"num_experts": 2, "horizon": 5, "sequences": classes.switching(num_switches=5)}, "must be < horizon, got 5"),
        ({"num_experts": 2, "horizon": 5, "sequences": classes.markov()}, r"num_switches must be given for markov\(\)"),
        ({"num_experts": 2, "horizon": 5, "accounting": "renyi"}, "accounting must be one of zcdp, pure, got 'renyi'"),
    ],
)
def test_factory_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        lazy_weights(**arguments)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be > 0, got 0.0"),
        ({"delta": 0.0}, r"delta must be in \(0, 1\), got 0.0"),
        ({"learning_rate": 0.0}, "learning_rate must be > 0, got 0.0"),
        ({"learning_rate": math.nan}, "learning_rate must be > 0, got nan"),
        ({"fake_switch_prob": 0.0}, "fake_switch_prob must be >= 1e-06 at a finite epsilon, got 0.0"),
        ({"fake_switch_prob": 1.5}, r"fake_switch_prob must be in \[0, 1\], got 1.5"),
        ({"batch": 0}, "batch must be an integer >= 1, got 0"),
        ({"epsilon": [1.0]}, r"epsilon must be a number, got \[1.0\]"),
        ({"batch": 101}, "batch must be <= horizon, got 101 at horizon 100"),
        ({"budget": 99, "learning_rate": 0.1}, "budget must be <= .*, got 99"),
        ({"learning_rate": 10.0, "fake_switch_prob": 0.1}, "epsilon must pay for one decision"),
    ],
)
def test_value_errors(values, message):
    learner = lazy_weights(num_experts=2, horizon=100)
    for function in (learner.params, learner.guarantee):
        with pytest.raises(ValueError, match=message):
            function(**{"epsilon": 1.0, "delta": 1e-6, **values})


def test_values_may_be_scalar_arrays():
    learner, values = lazy_weights(num_experts=2, horizon=100), {"epsilon": 1.0, "delta": 1e-6, "batch": 10}
    for function in (learner.params, learner.guarantee):
        assert function(**{name: np.array(value) for name, value in values.items()}) == function(**values)


@pytest.mark.parametrize("fake", [1e-3, 0.3])
def test_fake_switches_are_as_often_as_they_should_be(fake):
    params, count = decision(fake), 400_000
    keys = jax.random.key_data(jax.random.split(jax.random.key(0), count))

    def decide(words):
        return wanted(jax.random.wrap_key_data(words), params)

    share = float(jnp.mean(jax.jit(lambda: jax.lax.map(decide, keys, batch_size=50_000))()))
    assert abs(share - fake) <= 5 * np.sqrt(fake / count)


@pytest.mark.skipif(jax.config.read("jax_enable_x64"), reason="of float32")
@pytest.mark.parametrize(("fine", "expected"), [(0.2, True), (0.6, False)])
def test_rare_fake_switches_are_drawn_with_more_digits_than_one_float_has(fine, expected, monkeypatch):
    """Uses the threshold 1e-6, between two values of a uniform float32 variate."""
    monkeypatch.setattr(_lazy_decisions, "two_uniforms", lambda key: jnp.asarray([8 * 2.0**-23, fine], jnp.float32))
    assert bool(wanted(jax.random.key(0), decision(1e-6))) is expected


def decision(fake):
    given = {"learning_rate": 1e-3, "fake_switch_prob": fake, "batch": 1}
    return jax.tree.map(jnp.asarray, lazy_weights(num_experts=2, horizon=4).params(epsilon=1e3, delta=1e-6, **given))


def wanted(key, params):
    return _lazy_decisions.rejects_sequence(key, params, fixed_point.zero(), jnp.asarray(True), False)


def test_a_tape_has_the_log_probability_of_keeping_after_large_losses():
    """Checks that a loss moves it by the scaled loss: a probability rounded to 0 would show an unbounded change."""
    params = decision(0.1)
    scores = []
    for loss in (50_000, 50_001):  # scaled by the rate 1e-3
        own_loss = fixed_point.Sum(jnp.asarray(loss, jnp.result_type(int)), jnp.zeros((), jnp.result_type(int)))
        with recording() as entries:
            _lazy_decisions.rejects_sequence(jax.random.key(0), params, own_loss, jnp.asarray(True), False)
        scores.append(entries[0].value)
    assert float(scores[0][0]) == pytest.approx(-50 + math.log(0.9), rel=1e-5)
    assert float(scores[1][0] - scores[0][0]) == pytest.approx(-1e-3, abs=1e-5)
