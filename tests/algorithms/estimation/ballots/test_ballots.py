"""Estimators of whole ballots: the sensitivity by brute force, their objectives, and the contract."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.estimation import (
    ballot_election,
    ballot_mle,
    ballot_objective_perturbation,
    ballot_rr,
    ballot_sensitivity,
    estimate,
    mle,
)
from jaxdp.preferences import Ballots, pair_features

DTYPE = jax.dtypes.canonicalize_dtype(float)
ORDERS = (((0,), (1, 2)), ((2,), (3,)), ((3,), (0,), (1,), (2,)), ((1, 3), (0, 2)), ((1,),), ((1,), (2,), (0,), (3,)))
BALLOTS = Ballots(("a", "b", "c", "d"), ORDERS, (8, 3, 4, 5, 2, 9))
POINTS = [
    (ballot_mle, {"radius": 5.0}),
    (ballot_objective_perturbation, {"epsilon": 1.0, "delta": 1e-3, "radius": 5.0}),
    (ballot_rr, {"epsilon": 1.0, "radius": 5.0}),
]


def design(ballots: Ballots = BALLOTS, unranked: str = "unknown"):
    features, labels = ballots.design(unranked=unranked)
    return jnp.asarray(features, DTYPE), jnp.asarray(labels)


def weak_orders(items):
    """Yields every sequence of groups that ranks all of these items."""
    if not items:
        yield ()
    for size in range(1, len(items) + 1):
        for group in itertools.combinations(items, size):
            for rest in weak_orders([item for item in items if item not in group]):
                yield (group, *rest)


@pytest.mark.parametrize("unranked", ["unknown", "last"])
@pytest.mark.parametrize("num_items", [2, 3, 4])
def test_sensitivity_by_brute_force(num_items, unranked):
    """Tries all pairs of ballots, with every tie and every set of ranked items."""
    sets = [s for size in range(1, num_items + 1) for s in itertools.combinations(range(num_items), size)]
    orders = tuple(order for ranked in sets for order in weak_orders(list(ranked)))
    assert len(orders) == {2: 5, 3: 25, 4: 149}[num_items]
    every = Ballots(tuple(map(str, range(num_items))), orders, (1,) * len(orders))
    statistics = every.answers(unranked=unranked) / 2 @ pair_features(num_items).astype(float)
    largest = np.linalg.norm(statistics[:, None] - statistics[None], axis=-1).max()
    assert largest == pytest.approx(ballot_sensitivity(num_items), rel=1e-12)
    assert ballot_sensitivity(num_items) > math.sqrt(2) * (1 if num_items > 2 else 0.99)  # one pair's


@pytest.mark.parametrize("num_items", [3, 4])
def test_sensitivity_of_intransitive_answers(num_items):
    """Tries any answers at all, not only those that rankings give."""
    pairs = num_items * (num_items - 1) // 2
    differences = np.array(list(itertools.product((-1.0, -0.5, 0.0, 0.5, 1.0), repeat=pairs)))
    largest = np.linalg.norm(differences @ pair_features(num_items).astype(float), axis=1).max()
    assert largest == pytest.approx(ballot_sensitivity(num_items), rel=1e-12)


def test_sensitivity_of_strict_rankings_of_many():
    for num_items in (1, 5, 6):
        scores = np.array(list(itertools.permutations(range(1 - num_items, num_items, 2))), float)
        largest = np.linalg.norm(scores - scores[0], axis=1).max() / 2
        assert largest == pytest.approx(ballot_sensitivity(num_items), rel=1e-12)
    with pytest.raises(ValueError, match="num_items must be an integer >= 1, got 0"):
        ballot_sensitivity(0)


@pytest.mark.parametrize("unranked", ["unknown", "last"])
def test_ballot_mle_is_mle_of_all_stated_preferences(unranked):
    features, labels = design(unranked=unranked)
    estimator = ballot_mle()
    params = estimator.params(radius=5.0, tolerance=3e-6)
    mine = estimator.fit(jax.random.key(0), params, features, labels)
    x, y = BALLOTS.comparisons(unranked=unranked).design()
    plain = mle(zero_sum=True)
    params = plain.params(radius=5.0, tolerance=3e-6)
    theirs = plain.fit(jax.random.key(0), params, jnp.asarray(x, DTYPE), jnp.asarray(y))
    assert mine.converged
    assert theirs.converged
    np.testing.assert_allclose(mine.theta, theirs.theta, atol=1e-4)


def test_without_noise_items_are_in_the_order_of_their_borda_scores():
    features, labels = design()
    scores = np.asarray(labels - 1, float).sum(axis=0) @ np.asarray(features, float)
    thetas = []
    for make in (ballot_objective_perturbation, ballot_rr):
        estimator = make()
        values = {"delta": 1e-3} if make is ballot_objective_perturbation else {}
        params = estimator.params(epsilon=np.inf, radius=5.0, **values)
        report = estimator.privatize(jax.random.key(0), params, features, labels)
        thetas.append(np.asarray(estimator.fit(jax.random.key(1), params, features, report).theta))
    np.testing.assert_array_equal(np.argsort(thetas[0]), np.argsort(scores))
    np.testing.assert_allclose(*thetas, atol=2e-4)


def test_the_central_report_does_not_trust_the_features():
    estimator = ballot_objective_perturbation()
    params = estimator.params(epsilon=1.0, delta=1e-3)
    features, labels = design()
    reports = [estimator.privatize(jax.random.key(0), params, scale * features, labels) for scale in (1, 100)]
    np.testing.assert_array_equal(*reports)


def test_who_claims_what():
    for make, values in POINTS:
        claim = make().guarantee(**values)
        assert claim.privacy_unit == "one ballot"
        assert claim.is_private == ("epsilon" in values)
    with pytest.raises(ValueError, match="epsilon must be > 0, got nan"):
        ballot_rr().guarantee(epsilon=float("nan"))
    with pytest.raises(ValueError, match=r"epsilon must be >= 2\.33e-09, as larger noise would overflow integers"):
        ballot_objective_perturbation(noise="k_norm").params(epsilon=1e-12)
    with pytest.raises(ValueError, match=r"delta must be in \(0, 1\), got 1"):
        ballot_objective_perturbation().params(epsilon=1.0, delta=1.0)
    answers = [int(ballot_rr().params(epsilon=epsilon).num_answers) for epsilon in (1e-6, 3.2, 3.3, 8.0, 1e30, np.inf)]
    assert answers[:4] == [1, 1, 2, 4]
    assert min(answers[4:]) > 10**9


def test_refusals():
    features, labels = design()
    for make, values in POINTS:
        estimator = make()
        with pytest.raises(ValueError, match=r"with all pairs of at least two items, got \(6, 4\) and \(31, 5\)"):
            estimator.privatize(jax.random.key(0), estimator.params(**values), features, labels[:, :5])
        with pytest.raises(ValueError, match="max_steps must be an integer >= 1, got 0"):
            make(max_steps=0)
    with pytest.raises(ValueError, match="ballots must rank an item above another, got no ballot that does"):
        ballot_election(Ballots(("a", "b"), (((0,),),), (3,)))


def check_drawn_pairs(privatize, params):
    """Checks how often each pair is asked about, for any ballots: evenly within 5 standard errors.

    K pairs for each voter.
    """
    features, labels = design()
    reports = jax.jit(jax.vmap(privatize, (0, None, None, None)))(
        jax.random.split(jax.random.key(3), 400), params, features, labels
    )
    asked = np.asarray(reports).reshape(-1, 6) >= 0
    share = int(params.num_answers) / 6
    assert np.all(asked.sum(axis=1) == params.num_answers)
    assert np.all(np.abs(asked.mean(axis=0) - share) < 5 * math.sqrt(share * (1 - share) / len(asked)))
    by_ballot = asked.reshape(400, -1, 6).mean(axis=0)
    assert np.all(np.abs(by_ballot - share) < 5.5 * math.sqrt(share * (1 - share) / 400))


def test_pairs_are_drawn_without_looking_at_the_ballot():
    estimator = ballot_rr()

    def looks(key, params, features, labels):
        """Asks about a pair on which the voter has an opinion (planted)."""
        report = estimator.privatize(key, params, features, labels)
        stated = jnp.argmax(labels != 1, axis=1)
        return jnp.where(jnp.arange(6, dtype=stated.dtype)[None] == stated[:, None], 2, -1 + 0 * report)

    for epsilon in (1.0, 6.0):
        check_drawn_pairs(estimator.privatize, estimator.params(epsilon=epsilon))
    with pytest.raises(AssertionError):
        check_drawn_pairs(looks, estimator.params(epsilon=1.0))


def test_estimate_takes_ballots():
    for make, values in POINTS:
        features, labels = BALLOTS.design()
        found = estimate(make(), features, labels, key=jax.random.key(0), **values)
        assert found.theta.shape == (4,)
        assert found.converged
        wrong = labels.copy()
        wrong[3, 2] = 5
        with pytest.raises(ValueError, match=r"labels must be in \{0, 1, 2\}, got 1 of \d+ that are not$"):
            estimate(make(), features, wrong, key=jax.random.key(0), **values)
        with pytest.raises(ValueError, match=r"features must be `pair_features` of all items"):
            estimate(make(), -features, labels, key=jax.random.key(0), **values)
        with pytest.raises(ValueError, match=r"features and labels must be .* got .*\(6, 4\).*\(31,\)"):
            estimate(make(), features, labels[:, 0], key=jax.random.key(0), **values)


def test_a_ballot_cannot_count_for_more():
    """Checks any labels, and any number of them."""
    features, labels = design()
    estimator = ballot_objective_perturbation()
    params = estimator.params(epsilon=np.inf, delta=1e-3)
    one, other = (estimator.privatize(jax.random.key(0), params, features, labels.at[0].set(v)) for v in (127, 0))
    assert np.linalg.norm(one - other) * len(labels) <= ballot_sensitivity(4) * (1 + 1e-5)
    limit = 2 ** (jnp.finfo(DTYPE).nmant + 1)
    two, many = jnp.asarray(pair_features(2), DTYPE), jax.ShapeDtypeStruct((limit + 1, 1), jnp.int8)
    with pytest.raises(ValueError, match=rf"labels must have at most {limit} ballots in float.., got {limit + 1}"):
        jax.eval_shape(lambda labels: estimator.privatize(jax.random.key(0), params, two, labels), many)
