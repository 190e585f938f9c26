"""Computes buffered linear Toeplitz factorisations of prefix sums, on the host in float64.

Let A = B C, where A is the lower triangular matrix of ones. All three matrices are lower triangular and Toeplitz. Their
coefficients have the generating functions 1 / (1 - x) = b(x) c(x). In the square-root factorisation b = c =
(1 - x)^(-1/2). Here both functions are rational,

    c(x) = b_0^-1 prod_j (1 - l_j x) / (1 - m_j x),        b(x) = b_0 prod_j (1 - m_j x) / ((1 - x) prod_j (1 - l_j x)),

with 0 < 1 - m_1 < 1 - l_1 < 1 - m_2 < ... So the coefficients of b are sums, with positive weights, of powers of 1 and
of the *decays* l_j, and the noise B z is a weighted sum of a few leaky running sums of z. Formulas use the *gaps* 1 -
l_j and 1 - m_j, which may be tiny.
"""

from typing import NamedTuple

import numpy as np

from jaxdp.validation import check_count

EXACT = 2**16  # terms of a series that are summed one by one
TOLERANCE = 1.01  # maximum ratio of the worst variance to the worst variance of the square-root factorisation
MOST = 16  # maximum number of buffers


class Buffers(NamedTuple):
    """The weights and gaps of the coefficients b_i = sum_j weights_j (1 - gaps_j)^i, i >= 0, of the matrix B.

    Attributes:
        weights: [num_buffers + 1] > 0.
        gaps: [num_buffers + 1] increasing, in [0, 1); the first is 0.
    """

    weights: np.ndarray
    gaps: np.ndarray


def square_root_norm(horizon: int) -> float:
    """Returns the sum of f_i^2 over i < horizon, where f_i are the coefficients of (1 - x)^(-1/2).

    The coefficients are f_0 = 1 and f_i = f_{i-1} * (2 i - 1) / (2 i). Their sum of squares s is both the squared
    sensitivity of C and the squared norm of B's last row in the square-root factorisation. So under rho-zCDP and for
    entries of sensitivity 1, this factorisation's largest variance is s^2 / (2 rho).

    Args:
        horizon: >= 1.

    Returns:
        s, with an error of about 1e-11. Beyond 2^16 terms the approximation f_i^2 = 1 / (pi * (i + 1/4)) is used, with
        an error of O(i^-3).

    Source:
        Fichtenberger, Henzinger & Upadhyay (2023); Henzinger, Upadhyay & Upadhyay (2023).

    Examples:
        >>> f"{square_root_norm(2**20)**2 / 2:.2f}"
        '15.01'
    """
    from scipy.special import digamma  # SciPy is only imported where it is used

    num_exact = min(horizon, EXACT)
    exact = float(np.square(square_root_coefficients(num_exact)).sum())
    return exact + float(digamma(horizon + 0.25) - digamma(num_exact + 0.25)) / np.pi


def square_root_coefficients(length: int) -> np.ndarray:
    """Returns the first `length` coefficients f_i of (1 - x)^(-1/2)."""
    i = np.arange(1, length)
    return np.concatenate([[1.0], np.cumprod((2 * i - 1) / (2 * i))])


def find_buffers(horizon: int, num_buffers: int | None = None) -> Buffers:
    """Finds buffers that minimise the largest noise variance up to the horizon, for a fixed privacy budget.

    Args:
        horizon: >= 1.
        num_buffers: number of leaky sums, 1 to 16, in addition to a sum that does not leak. None means the smallest
            number with a worst variance within 1% of the worst variance of the square-root factorisation.

    Returns:
        The result of a local search that starts at gaps with evenly spaced log-odds.

    Raises:
        ValueError: if num_buffers is out of its range.
        RuntimeError: if num_buffers is None and no number up to 16 comes within 1%.

    Source:
        Dvijotham, McMahan, Pillutla, Steinke & Thakurta (2024), for the family and its closed forms.
    """
    from scipy.optimize import minimize

    counts = range(1, MOST + 1) if num_buffers is None else [check_count("num_buffers", num_buffers)]
    if counts[-1] > MOST:
        raise ValueError(f"num_buffers must be at most {MOST}, got {num_buffers}")
    goal = TOLERANCE * square_root_norm(horizon) ** 2
    for count in counts:
        ends = np.linspace(np.log(0.5 / horizon), 2.0, 2 * count)
        start = np.concatenate([ends[:1], np.log(np.diff(ends))])
        search = minimize(_objective, start, args=(horizon,), method="BFGS", options={"maxiter": 500})
        best = min(search.x, start, key=lambda variables: _objective(variables, horizon))
        if num_buffers is not None or np.exp(_objective(best, horizon)) <= goal:
            return _decoder(*_gaps(best))
    raise RuntimeError(
        f"no factorisation within 1% of the square root's variance was found for horizon={horizon}: set num_buffers"
    )


def row_norms(buffers: Buffers, times: np.ndarray) -> np.ndarray:
    """Returns the sum of b_i^2 over i < t for each t in `times`: the variance of (B z)_t if z has variance 1."""
    products, rates = _pairs(buffers)
    one_minus_powers = -np.expm1(np.asarray(times, np.float64)[..., None] * rates)
    geometric_sums = np.where(
        rates < 0, one_minus_powers / np.where(rates < 0, -np.expm1(rates), 1.0), times[..., None]
    )
    return geometric_sums @ products


def sensitivity(buffers: Buffers, horizon: int) -> float:
    """Returns the L2 sensitivity of C x to a change of one entry of x by 1: the norm of the first column of C = B^-1 A.

    No other column of C has a larger norm. The result is for these weights and gaps, even if they were rounded, and has
    only the errors of float64.
    """
    # C's poles are the roots of b's numerator, one between every two neighbouring gaps; all coefficients of C are
    # positive.
    weights, gaps = (np.asarray(array, np.float64) for array in buffers)

    def numerator(gap: float, j: int) -> float:  # b's numerator, up to a factor without roots between these two gaps
        other_gaps = np.delete(gaps[1:], j)
        leaks = weights[0] * (gaps[1:][j] - gap) - weights[1:][j] * gap
        return float(leaks - (gaps[1:][j] - gap) * gap * (np.delete(weights[1:], j) / (other_gaps - gap)).sum())

    poles = np.asarray([_root(numerator, gaps, j) for j in range(len(gaps) - 1)])
    first, residues = 1 / weights.sum(), _residues(poles, gaps[1:])
    tail = Buffers(residues * (1 - poles), poles)
    return float(first * np.sqrt(1 + (row_norms(tail, np.asarray(horizon - 1)) if horizon > 1 else 0.0)))


def _root(numerator, gaps: np.ndarray, j: int) -> float:
    """Returns the pole between two neighbouring gaps. The numerator is > 0 at the lower and < 0 at the upper gap."""
    from scipy.optimize import root_scalar

    low, high = gaps[j], gaps[j + 1]
    if j:  # the sum in the numerator divides by zero at the lower gap: start just above it
        low = np.nextafter(low, high)
    tight = {"xtol": 1e-300, "rtol": 4 * np.finfo(float).eps, "maxiter": 1000}
    return root_scalar(numerator, args=(j,), bracket=(low, high), method="brentq", **tight).root


def _gaps(variables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Converts the variables of an unconstrained search to two lists of gaps that alternate: 1 - m_j and 1 - l_j."""
    from scipy.special import expit

    all_gaps = expit(variables[0] + np.concatenate([[0.0], np.cumsum(np.exp(variables[1:]))]))
    return all_gaps[0::2], all_gaps[1::2]


def _residues(poles: np.ndarray, zeros: np.ndarray) -> np.ndarray:
    """Returns a_j ([num_buffers]) in prod_j (1 - l_j x) / (1 - m_j x) = constant + sum_j a_j / (1 - m_j x)."""
    # `poles` are the gaps 1 - m_j, and `zeros` the gaps 1 - l_j.
    differences = poles[None] - poles[:, None]
    np.fill_diagonal(differences, 1.0)
    return np.prod(zeros[None] - poles[:, None], axis=1) / (np.prod(differences, axis=1) * (1 - poles))


def _decoder(poles: np.ndarray, gaps: np.ndarray) -> Buffers:
    """Returns the partial fractions of b, given the gaps 1 - m_j (`poles`) and 1 - l_j (`gaps`)."""
    differences = gaps[None] - gaps[:, None]
    np.fill_diagonal(differences, 1.0)
    leaking = np.prod(poles[None] - gaps[:, None], axis=1) / (-gaps * np.prod(differences, axis=1))
    return Buffers(np.concatenate([[np.prod(poles / gaps)], leaking]), np.concatenate([[0.0], gaps]))


def _pairs(buffers: Buffers) -> tuple[np.ndarray, np.ndarray]:
    """Returns, for all pairs of terms of b, the product of their weights and the logarithm of their decays' product."""
    weights, gaps = (np.asarray(array, np.float64) for array in buffers)
    logs = np.log1p(-gaps)
    return np.outer(weights, weights).ravel(), (logs[:, None] + logs[None]).ravel()


def _objective(variables: np.ndarray, horizon: int) -> float:
    """Returns the logarithm of the largest variance up to the horizon, at rho = 1/2."""
    poles, gaps = _gaps(variables)
    with np.errstate(all="ignore"):
        rows = row_norms(_decoder(poles, gaps), np.asarray(horizon))
        tail = Buffers(_residues(poles, gaps) * (1 - poles), poles)
        columns = 1 + (row_norms(tail, np.asarray(horizon - 1)) if horizon > 1 else 0.0)
        value = float(np.log(rows * columns))
    return value if np.isfinite(value) else 50.0  # two gaps coincide
