"""Constructors, winners and tests of preference matrices, in which P[i, j] is the probability that arm i beats arm j.

All functions run on the host in float64, and check the matrices that they receive.
"""

import jax
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.preferences.links import Link, check_link, logistic
from jaxdp.validation import check_at_least, check_count, check_finite, check_number, check_within

ROUNDING = 1e-6  # tolerance of P[i, j] + P[j, i] = 1, for matrices from files or in float32


def check_preferences(name: str, values: ArrayLike) -> np.ndarray:
    """Checks that values form a preference matrix, and returns the matrix in float64.

    Args:
        name: name of the matrix in error messages.
        values: [num_arms, num_arms] in [0, 1]; P[i, j] is the probability that i beats j.

    Returns:
        [num_arms, num_arms] float64: 1/2 on the diagonal, and P[i, j] + P[j, i] = 1 up to float64's rounding.

    Raises:
        ValueError: if values are not a square matrix of at least two arms with entries in [0, 1]; or if
            P[i, j] + P[j, i] differs from 1 by more than 1e-6, which for i = j means that a diagonal entry differs from
            1/2 by more than 5e-7. The error then names the row and the column.

    Examples:
        >>> check_preferences("matrix", [[0.5, 0.75], [0.25, 0.5]]).tolist()
        [[0.5, 0.75], [0.25, 0.5]]
    """
    matrix = check_finite(name, values)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise ValueError(f"{name} must be a square matrix of at least two arms, got shape {matrix.shape}")
    matrix = check_within(name, matrix, 0.0, 1.0).astype(np.float64)
    uneven = np.argwhere(np.abs(matrix + matrix.T - 1) > ROUNDING)  # also tests that the diagonal is 1/2
    if len(uneven):
        row, column = uneven[0].tolist()
        if row == column:
            raise ValueError(f"{name} must be 0.5 on the diagonal, got {matrix[row, row]:g} at row {row}")
        raise ValueError(
            f"{name} must have P[i, j] + P[j, i] = 1, got {matrix[row, column]:g} at row {row}, "
            f"column {column} and {matrix[column, row]:g} at row {column}, column {row}"
        )
    # The smaller of P[i, j] and P[j, i] is used, because the larger one does not represent small probabilities exactly.
    rare = np.minimum(np.minimum(matrix, matrix.T), 0.5)
    return np.select([matrix < matrix.T, matrix > matrix.T], [rare, 1 - rare], 0.5)


def utility_matrix(utilities: ArrayLike, link: Link | str = logistic) -> np.ndarray:
    """Returns the matrix P[i, j] = F(utilities[i] - utilities[j]).

    Args:
        utilities: [num_arms] finite.
        link: the link F, or its name.

    Returns:
        [num_arms, num_arms] float64.

    Raises:
        ValueError: if utilities are not a vector of at least two finite numbers with finite differences, or there is no
            such link.

    Source:
        Bradley & Terry (1952) for the logistic link, Thurstone (1927) for the probit link; DP-Dueling (Saha & Asi,
        2024), section 3.

    Examples:
        >>> utility_matrix([1.0, 0.0]).round(4).tolist()
        [[0.5, 0.7311], [0.2689, 0.5]]
    """
    utilities, link = check_finite("utilities", utilities), check_link(link)
    if utilities.ndim != 1 or len(utilities) < 2:
        raise ValueError(f"utilities must be a vector of at least two arms, got shape {utilities.shape}")
    utilities = utilities.astype(np.float64)
    with np.errstate(over="ignore"):
        margins = np.subtract.outer(utilities, utilities)
    if not np.isfinite(margins).all():
        raise ValueError(f"utilities must have finite differences, got {utilities.tolist()}")
    with jax.enable_x64(True):  # runs on the host, outside any compiled program
        matrix = np.asarray(jax.jit(link.cdf)(margins), np.float64)  # one program to compile, not one an operation
    return check_preferences("the link's matrix", matrix)


def lower_bound_matrix(num_arms: int, challenger: int = 0) -> np.ndarray:
    """Returns the preference matrix of an instance in the proof of a lower bound.

    Without a challenger, arm 0 beats every other arm with probability 3/4, and the other arms beat each other with
    probability 1/2. If challenger > 0, the challenger beats every other arm, including arm 0, with probability 3/4, and
    the other probabilities are the same. Only duels of the challenger distinguish the instances with and without it.

    Args:
        num_arms: number of arms, >= 2.
        challenger: index of the challenger, in [0, num_arms); 0 for no challenger.

    Returns:
        [num_arms, num_arms] float64.

    Raises:
        ValueError: if num_arms < 2 or challenger is not an arm.

    Source:
        DP-Dueling (Saha & Asi, 2024), appendix B: the matrices P and P' of Lemma 11 and Theorem 2.

    Deviations:
        None.

    Examples:
        >>> lower_bound_matrix(3, challenger=2).tolist()
        [[0.5, 0.75, 0.25], [0.25, 0.5, 0.25], [0.75, 0.75, 0.5]]
    """
    num_arms, challenger = check_count("num_arms", num_arms, 2), check_count("challenger", challenger, 0)
    if challenger >= num_arms:
        raise ValueError(f"challenger must be < num_arms={num_arms}, got {challenger}")
    matrix = np.full((num_arms, num_arms), 0.5)
    for winner in (0, challenger):  # the challenger overwrites arm 0's row and column
        matrix[winner, :], matrix[:, winner] = 0.75, 0.25
        matrix[winner, winner] = 0.5
    return matrix


def cyclic_matrix(num_arms: int, *, gap: float = 0.25, lead: float = 0.1) -> np.ndarray:
    """Returns a cyclic preference matrix without a Condorcet winner, as in rock, paper, scissors.

    The arms are on a circle. Arm i > 0 beats each of the (num_arms - 1) // 2 arms that follow it with probability 1/2 +
    gap, and arm 0 beats the arms that follow it with probability 1/2 + gap + lead. If the number of arms is even,
    opposite arms beat each other with probability 1/2. If lead > 0, arm 0 is the Borda winner.

    Args:
        num_arms: number of arms, >= 3.
        gap: the amount by which a winning probability exceeds 1/2, in (0, 1/2].
        lead: additional gap of arm 0's wins, >= 0, with gap + lead <= 1/2. If it is zero, all Borda scores are equal.

    Returns:
        [num_arms, num_arms] float64.

    Raises:
        ValueError: if num_arms < 3, or gap or lead is out of range.

    Source:
        Standard: a Condorcet cycle.

    Deviations:
        None.

    Examples:
        >>> cyclic_matrix(3).round(2).tolist()
        [[0.5, 0.85, 0.25], [0.15, 0.5, 0.75], [0.75, 0.25, 0.5]]
    """
    num_arms = check_count("num_arms", num_arms, 3)
    gap, lead = check_number("gap", gap), check_number("lead", check_at_least("lead", lead, 0.0))
    if not 0 < gap <= 0.5:
        raise ValueError(f"gap must be in (0, 0.5], got {gap}")
    if not gap + lead <= 0.5 + 1e-12:
        raise ValueError(f"gap + lead must be <= 0.5, got {gap} + {lead}")
    ahead = np.subtract.outer(np.arange(num_arms), np.arange(num_arms)).T % num_arms
    wins = (ahead >= 1) & (ahead <= (num_arms - 1) // 2)
    above = np.where(wins, gap, 0.0)
    above[0] += np.where(wins[0], lead, 0.0)
    return check_preferences("the cyclic matrix", np.clip(0.5 + above - above.T, 0, 1))


def borda_scores(preferences: ArrayLike) -> np.ndarray:
    """Returns the probability that each arm beats an arm that is drawn at random from the other arms.

    Args:
        preferences: [num_arms, num_arms], a matrix that `check_preferences` accepts.

    Returns:
        [num_arms] float64 in [0, 1]: the mean of P[i, j] over all j other than i.

    Raises:
        ValueError: if preferences are not a preference matrix.

    Source:
        Jamieson, Katariya, Deshpande & Nowak (2015); Saha, Koren & Mansour (2021).
    """
    matrix = check_preferences("preferences", preferences)
    return (matrix.sum(1) - 0.5) / (len(matrix) - 1)


def effective_borda_scores(preferences: ArrayLike, active: ArrayLike) -> np.ndarray:
    """Returns the probability that each arm beats a random arm of the active set, possibly itself.

    Args:
        preferences: [num_arms, num_arms], a matrix that `check_preferences` accepts.
        active: [num_arms] bool, the active set; not empty.

    Returns:
        [num_arms] float64 in [0, 1]: the mean of P[i, j] over active j, for all arms i.

    Raises:
        ValueError: if preferences are not a preference matrix, or active is not a set of arms with at least one arm.

    Source:
        DP-Dueling (Saha & Asi, 2024), section 3.

    Deviations:
        None.
    """
    matrix = check_preferences("preferences", preferences)
    try:
        active = np.asarray(active)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"active must be {len(matrix)} truth values, got {active!r}") from error
    if active.dtype != bool or active.shape != (len(matrix),) or not active.any():
        raise ValueError(f"active must be {len(matrix)} truth values, not all false, got {active.tolist()}")
    return matrix[:, active].mean(1)


def condorcet_winner(preferences: ArrayLike) -> int:
    """Returns the arm that beats every other arm with probability above 1/2; -1 if there is no such arm.

    Args:
        preferences: [num_arms, num_arms] numbers in [0, 1]; P[i, j] is the probability that i beats j.

    Raises:
        ValueError: if preferences are not a preference matrix.

    Source:
        Condorcet (1785).
    """
    winners = np.flatnonzero(_num_beaten(preferences) == len(np.asarray(preferences)) - 1)
    return int(winners[0]) if len(winners) else -1


def copeland_winners(preferences: ArrayLike) -> np.ndarray:
    """Returns the arms that beat the largest number of arms with probability > 1/2.

    Args:
        preferences: [num_arms, num_arms] numbers in [0, 1]; P[i, j] is the probability that i beats j.

    Returns:
        [num_winners] int64, the winners in increasing order.

    Raises:
        ValueError: if preferences are not a preference matrix.

    Source:
        Copeland (1951); Zoghi, Karnin, Whiteson & de Rijke (2015), who also do not count ties as wins.
    """
    num_beaten = _num_beaten(preferences)
    return np.flatnonzero(num_beaten == num_beaten.max())


def is_sst(preferences: ArrayLike, *, tolerance: float = 1e-9) -> bool:
    """Tests strong stochastic transitivity of a preference matrix.

    Strong stochastic transitivity holds if the arms have an order in which every arm beats each later arm with
    probability >= 1/2, and P[i, k] >= max(P[i, j], P[j, k]) if arm i is before arm j and arm j is before arm k.

    Args:
        preferences: [num_arms, num_arms], a matrix that `check_preferences` accepts.
        tolerance: maximum amount, >= 0, by which an entry may exceed the entry above it in the matrix of the arms
            sorted by row sums. It allows for rounding.

    Returns:
        Whether there is such an order.

    Raises:
        ValueError: if preferences are not a preference matrix, or tolerance is not >= 0.

    Source:
        Yue, Broder, Kleinberg & Joachims (2012); Shah, Balakrishnan, Guntuboyina & Wainwright (2017). In such an order,
        each entry is at least the entry below it in the next row, so sorting the arms by row sums finds such an order.
    """
    matrix, tolerance = check_preferences("preferences", preferences), check_at_least("tolerance", tolerance, 0.0)
    order = np.argsort(-matrix.sum(1), kind="stable")
    return bool((np.diff(matrix[np.ix_(order, order)], axis=0) <= tolerance).all())


def is_sti(preferences: ArrayLike, *, tolerance: float = 1e-9) -> bool:
    """Tests the stochastic triangle inequality, gap(i, k) <= gap(i, j) + gap(j, k).

    Here gap(i, j) = P[i, j] - 1/2. The inequality is tested for all i, j, k with gap(i, j) >= 0 and gap(j, k) >= 0.

    Args:
        preferences: [num_arms, num_arms], a matrix that `check_preferences` accepts.
        tolerance: maximum violation of an inequality, >= 0, to allow for rounding.

    Returns:
        Whether the inequality holds.

    Raises:
        ValueError: if preferences are not a preference matrix, or tolerance is not >= 0.

    Source:
        Yue, Broder, Kleinberg & Joachims (2012).
    """
    tolerance = check_at_least("tolerance", tolerance, 0.0)
    gaps = check_preferences("preferences", preferences) - 0.5
    chained = (gaps >= 0)[:, :, None] & (gaps >= 0)[None, :, :]
    excess = gaps[:, None, :] - gaps[:, :, None] - gaps[None, :, :]
    return bool((excess[chained] <= tolerance).all())


def preference_gaps(preferences: ArrayLike) -> np.ndarray:
    """Returns the gaps of all arms to the Condorcet winner, P[winner, i] - 1/2.

    Args:
        preferences: [num_arms, num_arms] numbers in [0, 1]; P[i, j] is the probability that i beats j.

    Returns:
        [num_arms] float64; 0 for the winner itself.

    Raises:
        ValueError: if preferences are not a preference matrix with a Condorcet winner.

    Source:
        DP-Dueling (Saha & Asi, 2024), section 3, Delta(1, i).
    """
    winner = condorcet_winner(preferences)
    if winner < 0:
        raise ValueError(f"preferences must have a Condorcet winner, got {np.asarray(preferences).tolist()}")
    return check_preferences("preferences", preferences)[winner] - 0.5


def borda_gaps(preferences: ArrayLike) -> np.ndarray:
    """Returns the gaps of all arms to the largest Borda score.

    Args:
        preferences: [num_arms, num_arms] numbers in [0, 1]; P[i, j] is the probability that i beats j.

    Returns:
        [num_arms] float64 >= 0, the largest Borda score minus each arm's Borda score.

    Raises:
        ValueError: if preferences are not a preference matrix.

    Source:
        Saha, Koren & Mansour (2021).
    """
    scores = borda_scores(preferences)
    return scores.max() - scores


def _num_beaten(preferences: ArrayLike) -> np.ndarray:
    return (check_preferences("preferences", preferences) > 0.5).sum(1)
