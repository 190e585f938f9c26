"""Preference matrices against brute force over triples and orders, and refusals."""

import functools
import itertools
import math

import numpy as np
import pytest
import scipy.special

from jaxdp import preferences as prefs

RNG = np.random.default_rng(7)


def random_matrix(num_arms, rng=RNG, grid=None):
    upper = rng.uniform(size=(num_arms, num_arms)) if grid is None else rng.choice(grid, (num_arms, num_arms))
    upper = np.triu(upper, 1)
    return upper + np.tril(1 - upper.T, -1) + np.eye(num_arms) / 2


# Ties and near-ties come up only on a grid.
@functools.cache
def matrices():
    rng = np.random.default_rng(7)
    return [
        *(random_matrix(k, rng) for k in (2, 3, 4) for _ in range(20)),
        *(random_matrix(k, rng, grid=[0.4, 0.5, 0.6, 0.7]) for k in (3, 4) for _ in range(150)),
        *(prefs.utility_matrix(rng.choice([0.0, 0.5, 1.0], 4)) for _ in range(20)),
        *(prefs.lower_bound_matrix(4, c) for c in range(4)),
        *(prefs.cyclic_matrix(k) for k in (3, 4, 5)),
    ]


def sst_by_orders(matrix):
    def holds(order):
        return all(
            matrix[i, k] >= max(matrix[i, j], matrix[j, k]) - 1e-12 and min(matrix[i, j], matrix[j, k]) >= 0.5
            for i, j, k in itertools.combinations(order, 3)
        ) and all(matrix[i, j] >= 0.5 for i, j in itertools.combinations(order, 2))

    return any(holds(order) for order in itertools.permutations(range(len(matrix))))


def sti_by_triples(matrix):
    gap = matrix - 0.5
    every = itertools.product(range(len(matrix)), repeat=3)
    return all(gap[i, k] <= gap[i, j] + gap[j, k] + 1e-12 for i, j, k in every if gap[i, j] >= 0 and gap[j, k] >= 0)


def test_transitivity_by_brute_force():
    found = [(prefs.is_sst(matrix), prefs.is_sti(matrix)) for matrix in matrices()]
    assert found == [(sst_by_orders(matrix), sti_by_triples(matrix)) for matrix in matrices()]
    assert len(set(found)) == 4  # each of the two holds with and without the other


def test_utilities_give_both():
    """Uses the logistic link: F is increasing, and F - 1/2 is concave on the positive half-line."""
    for _ in range(10):
        matrix = prefs.utility_matrix(RNG.normal(size=5) * 2)
        assert prefs.is_sst(matrix)
        assert prefs.is_sti(matrix)


def test_scores_and_winners_by_brute_force():
    for matrix in matrices():
        arms = range(len(matrix))
        for i, score in enumerate(prefs.borda_scores(matrix)):
            assert score == pytest.approx(np.mean([matrix[i, j] for j in arms if j != i]), abs=1e-12)
        winners = [i for i in arms if all(matrix[i, j] > 0.5 for j in arms if j != i)]
        assert prefs.condorcet_winner(matrix) == (winners[0] if winners else -1)
        beaten = [sum(matrix[i, j] > 0.5 for j in arms) for i in arms]
        assert prefs.copeland_winners(matrix).tolist() == [i for i in arms if beaten[i] == max(beaten)]
        assert prefs.borda_gaps(matrix).min() == 0
        if winners:
            expected = [matrix[winners[0], i] - 0.5 for i in arms]
            assert prefs.preference_gaps(matrix).tolist() == pytest.approx(expected)
    assert {prefs.condorcet_winner(matrix) for matrix in matrices()} >= {-1, 0, 1, 2}


def test_effective_scores():
    matrix = random_matrix(5)
    for size in (1, 3, 5):
        for chosen in itertools.combinations(range(5), size):
            active = np.isin(np.arange(5), chosen)
            expected = [np.mean([matrix[i, j] for j in chosen]) for i in range(5)]
            np.testing.assert_allclose(prefs.effective_borda_scores(matrix, active), expected)
    whole = prefs.effective_borda_scores(matrix, np.ones(5, bool))
    np.testing.assert_allclose(whole, (4 * prefs.borda_scores(matrix) + 0.5) / 5)


@pytest.mark.parametrize(("link", "cdf"), [("logistic", scipy.special.expit), ("probit", scipy.special.ndtr)])
def test_utility_matrices(link, cdf):
    utilities = np.array([0.0, 1.0, -2.5, 5.0])
    expected = cdf(np.subtract.outer(utilities, utilities))
    np.testing.assert_allclose(prefs.utility_matrix(utilities, prefs.link(link)), expected, rtol=1e-9)
    rare = prefs.utility_matrix([0.0, 30.0])  # no more than a float64 of 1 - P would lose
    assert rare[0, 1] == pytest.approx(math.exp(-30), rel=1e-9)
    assert (rare + rare.T == 1).all()


def test_lower_bound_instances():
    for arm in range(4):
        matrix = prefs.lower_bound_matrix(4, arm)
        assert prefs.condorcet_winner(matrix) == arm
        assert prefs.preference_gaps(matrix).tolist() == [0.25 * (i != arm) for i in range(4)]
        first = prefs.lower_bound_matrix(4)
        others = np.flatnonzero(np.arange(4) != arm)
        assert (matrix[np.ix_(others, others)] == first[np.ix_(others, others)]).all()
        assert (arm == 0) == (matrix == first).all()


@pytest.mark.parametrize("num_arms", [3, 4, 5, 8])
def test_cycles_have_no_condorcet_winner(num_arms):
    matrix = prefs.cyclic_matrix(num_arms, gap=0.2, lead=0.1)
    assert prefs.condorcet_winner(matrix) == -1
    assert np.flatnonzero(prefs.borda_gaps(matrix) == 0).tolist() == [0]
    np.testing.assert_allclose(prefs.borda_gaps(prefs.cyclic_matrix(num_arms, lead=0.0)), 0, atol=1e-12)
    assert not prefs.is_sst(matrix)


def test_a_matrix_is_made_exact():
    noisy = np.array([[0.5 + 4e-7, 0.3], [0.7 + 9e-7, 0.5]])
    found = prefs.check_preferences("matrix", noisy)
    assert found.tolist() == [[0.5, 0.3], [0.7, 0.5]]
    nearly_even = prefs.check_preferences("matrix", [[0.5, 0.5 - 1e-8], [0.5 - 1e-8, 0.5]])
    assert (nearly_even == 0.5).all()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0.5, 0.6], [0.5, 0.5]], r"= 1, got 0.6 at row 0, column 1 and 0.5 at row 1, column 0"),
        ([[0.5, 0.6], [0.4, 0.6]], r"matrix must be 0.5 on the diagonal, got 0.6 at row 1"),
        ([[0.5, 1.2], [-0.2, 0.5]], r"matrix must be in \[0, 1\], got 1.2 at index \(0, 1\)"),
        ([[0.5, math.nan], [0.5, 0.5]], r"matrix must be finite, got nan at index \(0, 1\)"),
        ([[0.5]], r"matrix must be a square matrix of at least two arms, got shape \(1, 1\)"),
        ([[0.5, 0.5]], r"matrix must be a square matrix of at least two arms, got shape \(1, 2\)"),
        ([0.5, 0.5], r"matrix must be a square matrix of at least two arms, got shape \(2,\)"),
        ([["a", "b"], ["c", "d"]], r"matrix must be numbers"),
    ],
)
def test_bad_matrices(values, message):
    with pytest.raises(ValueError, match=message):
        prefs.check_preferences("matrix", values)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: prefs.utility_matrix([1.0]), r"utilities must be a vector of at least two arms, got shape \(1,\)"),
        (lambda: prefs.utility_matrix([1.0, math.nan]), r"utilities must be finite, got nan at index \(1,\)"),
        (lambda: prefs.utility_matrix([1e308, -1e308]), r"utilities must have finite differences"),
        (lambda: prefs.lower_bound_matrix(1), r"num_arms must be an integer >= 2, got 1"),
        (lambda: prefs.lower_bound_matrix(3, 3), r"challenger must be < num_arms=3, got 3"),
        (lambda: prefs.lower_bound_matrix(3, -1), r"challenger must be an integer >= 0, got -1"),
        (lambda: prefs.cyclic_matrix(2), r"num_arms must be an integer >= 3, got 2"),
        (lambda: prefs.cyclic_matrix(3, gap=0.0), r"gap must be in \(0, 0.5\], got 0.0"),
        (lambda: prefs.cyclic_matrix(3, gap=math.nan), r"gap must be finite, got nan"),
        (lambda: prefs.cyclic_matrix(3, lead=-0.1), r"lead must be >= 0, got -0.1"),
        (lambda: prefs.cyclic_matrix(3, gap=0.45, lead=0.1), r"gap \+ lead must be <= 0.5, got 0.45 \+ 0.1"),
        (lambda: prefs.effective_borda_scores(random_matrix(2), [1, 0]), r"active must be 2 truth values"),
        (
            lambda: prefs.effective_borda_scores(random_matrix(2), [[True], [True, True]]),
            r"active must be 2 truth values",
        ),
        (lambda: prefs.effective_borda_scores(random_matrix(2), [False, False]), r"active must be 2 truth values"),
        (lambda: prefs.preference_gaps(prefs.cyclic_matrix(3)), r"preferences must have a Condorcet winner"),
        (lambda: prefs.is_sst(random_matrix(2), tolerance=math.nan), r"tolerance must be >= 0, got nan"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
