"""Bounds of Saha & Asi (2024), DP-Dueling, on the regret for finitely many arms under central privacy.

Source of all bounds: Saha & Asi (2024), *DP-Dueling: Learning from Preference Feedback without Compromising User
Privacy*.

Regret is the sum of 2 r(best) - r(left) - r(right) over rounds, where r are the utilities. Arm 1 is the best arm;
Delta(1, i) is its probability of beating arm i, minus 1/2. Arguments are numbers or arrays, finite except epsilon;
results are float64 arrays. Every function raises a ValueError for an argument that is out of range or NaN. Arguments of
the functions:

- `epsilon`: > 0; at infinity the terms with epsilon are 0.
- `horizon`: T, >= 2; for the upper bound also >= K, the number of arms.
- `gaps`: [..., K - 1] in (0, 1/2], Delta(1, i) of all arms except the best; leading axes broadcast.
- `scale`: the unspecified constant of the lower bound, > 0.
"""

import numpy as np
from numpy.typing import ArrayLike

from jaxdp.theory.arguments import above, at_least, between


def regret_upper(epsilon: ArrayLike, horizon: ArrayLike, gaps: ArrayLike) -> np.ndarray:
    r"""Returns an upper bound on the regret of `ebs_elimination`.

    Each arm i except the best adds 16 ln(K T) / Delta(1, i) + 128 ln(K T) (ln T)^2.5 / epsilon.

    Source:
        Theorem 1, as the last line of its proof prints it; the theorem itself hides constants and logarithms.

    Deviations:
        None in the formula, but its constants are not proved. The proof bounds utility gaps by 2 Delta(1, i), which is
        false for the logistic link (there they are at least 4 Delta(1, i)), and does not count plays as the right arm.
        Its Lemma 6 omits the confidence interval of the best arm (with it, 64 replaces 8, and privacy noise is larger).

    Math:
        $$
        \sum_{i \ge 2} \Big( \frac{16 \ln(K T)}{\Delta(1, i)} + \frac{128 \ln(K T) (\ln T)^{2.5}}{\varepsilon} \Big)
        $$
    """
    budget, gaps = above("epsilon", epsilon, 0), _gaps(gaps)
    num_others = gaps.shape[-1]
    rounds = at_least("horizon", horizon, num_others + 1)
    union = np.log((num_others + 1) * rounds)
    return 16 * union * np.sum(1 / gaps, axis=-1) + num_others * 128 * union * np.log(rounds) ** 2.5 / budget


def regret_lower(epsilon: ArrayLike, horizon: ArrayLike, gaps: ArrayLike, *, scale: ArrayLike = 1.0) -> np.ndarray:
    r"""Returns a lower bound on the regret of every private algorithm on some instance.

    The bound is K / epsilon, plus ln T / Delta(1, i) for each arm i except the best.

    Source:
        Theorem 2, an order bound, for K / epsilon <= T / 2.

    Deviations:
        None in the formula. The term K / epsilon is proved only for the instance `lower_bound_matrix`, with all gaps
        1/4, for epsilon <= 1 and for regret in preference gaps. The proof uses group privacy of 1 / epsilon rounds, so
        delta must be small compared with epsilon; the statement omits this condition.

    Math:
        $$
        \sum_{i \ge 2} \frac{\ln T}{\Delta(1, i)} + \frac{K}{\varepsilon}
        $$
    """
    budget, gaps = above("epsilon", epsilon, 0), _gaps(gaps)
    learning = np.log(at_least("horizon", horizon, 2)) * np.sum(1 / gaps, axis=-1)
    return between("scale", scale, 0, np.inf) * (learning + (gaps.shape[-1] + 1) / budget)


def _gaps(gaps: ArrayLike) -> np.ndarray:
    array = above("gaps", gaps, 0)
    if array.ndim < 1 or not array.shape[-1]:
        raise ValueError(f"gaps must have at least one arm, got shape {array.shape}")
    largest = array.max()
    if not largest <= 0.5:
        raise ValueError(f"gaps must be <= 0.5, got {largest}")
    return array
