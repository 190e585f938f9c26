"""Distributions of entries: releases follow them, and their exact privacy is the claim, or less."""

import itertools
import math
from functools import partial

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from jaxdp.audit import exact_epsilon, g_test
from jaxdp.audit.checks import native
from jaxdp.audit.enumeration import outcomes
from jaxdp.audit.exact import exact_budget
from jaxdp.audit.transcripts import play
from jaxdp.registry import LEARNERS, MECHANISMS
from jaxdp.registry.distributions import above_threshold_distribution, largest_with_laplace, noisy_max_distribution
from jaxdp.simulation.run.values import select_values
from tests.audit.observed import observed_parts

NUM_DRAWS = {True: 100_000, False: 30_000}  # of a mechanism; of a learner, which takes longer
SUSPICIOUS = 1e-6
# The true epsilon, or rho of a zCDP claim, between the entry's neighbours, where it is less than the claimed one.
LESS = {
    "noisy_max_laplace": 0.970901,
    "noisy_max_gumbel": 0.934454,
    "above_threshold": 0.968598,
    "above_threshold_optimal_split": 0.985080,
    "scalar_randomizer_rr": 0.5,
    "label_randomizer_2": 0.5,
    "label_randomizer_4": 0.5,
    "shuffled_randomized_response": 1.0,
    "explore_then_commit": 0.993663,
    "explore_then_commit_bounded": 0.993663,
    "lazy_weights": 0.547662,
    "lazy_weights_switching": 2.372792,
    "lazy_weights_markov": 0.361065,
    "limited_updates_oblivious": 3.819130,
    "limited_updates_oblivious_zcdp": 0.184692,
    "svt_restarts": 0.575665,
    "svt_lazy": 3.885556,
    "svt_lazy_zcdp": 0.097235,
    "mirror_descent": 0.459615,
    "mirror_descent_clipped": 0.6016098,
}
ENTRIES = {name: entry for name, entry in {**MECHANISMS, **LEARNERS}.items() if entry.distribution is not None}
# To compile. Others' distributions are alike.
# The factor on epsilon that the test refutes; a tenth more for all others.
MORE = {"above_threshold": 1.5, "above_threshold_optimal_split": 1.5} | {
    name: 1.5 for name, entry in LEARNERS.items() if entry.family == "experts"
}


def distribution_of(name, data, values):
    entry = ENTRIES[name]
    distribution = partial(entry.distribution, **select_values(entry.distribution, {**entry.variant, **entry.sizes}))
    return distribution(entry.make().params(**values), data)


def draws(name):
    """Draws outcomes of independent releases under either neighbour, by the algorithm's own program."""
    entry = ENTRIES[name]
    made = entry.make()
    params, claim = made.params(**entry.values), made.guarantee(**entry.values)

    def release(key, data):
        if name in MECHANISMS:
            return made.release(key, params, data)
        return observed_parts(play(made, entry.users_answer, key, params, data), claim, len(data.answers) - 1)

    keys = jax.random.split(jax.random.key(5), NUM_DRAWS[name in MECHANISMS])
    many = jax.jit(jax.vmap(release, (0, None)))
    return [outcomes(many(keys, data)) for data in entry.make_neighbours()]


def test_less_than_claimed_is_spent_only_by_entries_with_distributions():
    assert set(LESS) <= set(ENTRIES)


def precisions(names):
    """Returns the names; mechanisms are marked, as their scales depend on the precision."""
    return [name if name in LEARNERS else pytest.param(name, marks=pytest.mark.precision) for name in names]


@pytest.mark.parametrize("name", precisions(ENTRIES))
def test_a_distribution_is_that_of_the_releases_and_as_private_as_claimed(name):
    """Checks that releases refute the distribution of a larger epsilon."""
    entry = ENTRIES[name]
    claim = entry.make().guarantee(**entry.values)
    neighbours = entry.make_neighbours()
    first, second = (distribution_of(name, data, entry.values) for data in neighbours)
    for distribution in (first, second):
        assert math.fsum(distribution.values()) == pytest.approx(1, abs=1e-10)
    spent = exact_budget(first, second, claim)
    assert spent <= native(claim).claimed * (1 + 1e-12)
    # In 64 bits, scales are computed more accurately than in 32 bits: the true epsilon differs by a few millionths.
    assert spent == pytest.approx(LESS.get(name, native(claim).claimed), rel=1e-5, abs=1e-6)

    more = {**entry.values, "epsilon": MORE.get(name, 1.1) * entry.values["epsilon"]}
    sampled, others = draws(name)
    assert min(g_test(sampled, first), g_test(others, second)) > SUSPICIOUS
    wrong = (distribution_of(name, data, more) for data in neighbours)
    assert min(map(g_test, (sampled, others), wrong)) < SUSPICIOUS


@pytest.mark.parametrize("name", ["randomize_scalar", "scalar_randomizer_rr"])
def test_a_distribution_of_two_ends_keeps_the_rarer_one(name):
    entry = MECHANISMS[name]
    first, second = (distribution_of(name, data, {**entry.values, "epsilon": 50.0}) for data in entry.make_neighbours())
    assert exact_epsilon(first, second) == pytest.approx(50.0, rel=1e-9)


def test_a_distribution_follows_the_sizes():
    for name, sizes in (("noisy_max_laplace", {"num_scores": 5}), ("above_threshold", {"num_queries": 4})):
        entry = MECHANISMS[name].sized(**sizes)
        assert entry.distribution is not None
        distribution = entry.distribution(
            np.float32(1),
            entry.make_neighbours()[0],
            **select_values(entry.distribution, {**entry.variant, **entry.sizes}),
        )
        assert len(distribution) == sizes.get("num_scores", 5)
        assert math.fsum(distribution.values()) == pytest.approx(1, abs=1e-12)


NOISES = {"laplace": scipy.stats.laplace, "gumbel": scipy.stats.gumbel_r, "exponential": scipy.stats.expon}


@pytest.mark.parametrize("noise", NOISES)
def test_noisy_max_by_an_integral_over_the_winners_noise(noise):
    scores = np.array([0.3, 1.2, -2.0, 1.2])
    distribution = noisy_max_distribution(np.float64(2.0), scores, noise=noise)
    for j, score in enumerate(scores):
        others = np.delete(scores, j)

        def wins(x, score=score, others=others):
            return NOISES[noise].pdf(x - score) * NOISES[noise].cdf(x - others).prod()

        kinks = np.unique(scores)
        edges = [-40.0, *kinks, *(kinks[-1] + np.array([1, 3, 10, 40]))]
        total = sum(scipy.integrate.quad(wins, *ends, epsabs=1e-13)[0] for ends in itertools.pairwise(edges))
        assert distribution[j] == pytest.approx(total, abs=1e-10)


@pytest.mark.parametrize(("split", "share"), [("even", 0.5), ("optimal", 1 / (1 + 2 ** (2 / 3)))])
def test_above_threshold_by_an_integral_over_the_thresholds_noise(split, share):
    epsilon, queries = 3.0, np.array([0.1, -1.0, 2.0])
    distribution = above_threshold_distribution(np.float64(epsilon), queries, split=split)
    query = scipy.stats.laplace(0, 2 / ((1 - share) * epsilon))

    def first(x, k):
        last = query.sf(x - queries[k]) if k < len(queries) else 1.0
        return scipy.stats.laplace.pdf(x, 0.5, 1 / (share * epsilon)) * query.cdf(x - queries[:k]).prod() * last

    edges = sorted([-40.0, -5.0, 0.5, *queries, 5.0, 40.0])
    for k in range(len(queries) + 1):
        pieces = [scipy.integrate.quad(first, *ends, (k,), epsabs=1e-13)[0] for ends in itertools.pairwise(edges)]
        assert distribution[k] == pytest.approx(sum(pieces), abs=1e-10)


def test_two_scores_with_laplace_noise():
    """Checks P(first wins) = 1 - (2 + d) exp(-d) / 4 for a lead d >= 0; small chances keep their digits."""
    for lead in (0.0, 0.7, 5.0, 30.0):
        behind = (2 + lead) * math.exp(-lead) / 4
        assert largest_with_laplace(np.array([lead, 0.0])) == pytest.approx([1 - behind, behind], rel=1e-10)
