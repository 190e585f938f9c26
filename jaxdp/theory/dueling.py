"""Regret bounds of Saha & Asi (2024), DP-Dueling, for finitely many arms in the central model.

Source of all bounds: Saha & Asi (2024), *DP-Dueling: Learning from Preference Feedback without Compromising User
Privacy*.

Regret is the sum over rounds of 2 r(best) - r(left) - r(right), where r are the utilities. Arm 1 is the best arm, and
Delta(1, i) is the probability that arm 1 beats arm i, minus 1/2. Arguments are numbers or arrays; only epsilon may be
infinite. Results are float64 numbers or arrays. Every function raises a ValueError if an argument is out of range or
NaN. Arguments of the functions:

- `epsilon`: > 0; at infinity the terms with epsilon are 0.
- `horizon`: T, >= 2; for the upper bound also T >= K, where K is the number of arms.
- `gaps`: [..., K - 1] in (0, 1/2], Delta(1, i) for all arms except the best; leading axes are broadcast.
- `scale`: the unspecified constant factor of the lower bound, > 0.
"""

import numpy as np
from numpy.typing import ArrayLike

from jaxdp.theory.arguments import above, at_least, between


def regret_upper(epsilon: ArrayLike, horizon: ArrayLike, gaps: ArrayLike) -> np.ndarray:
    r"""Returns an upper bound on the regret of `ebs_elimination`.

    The bound is the sum, over all arms i except the best, of 16 ln(K T) / Delta(1, i) + 128 ln(K T) (ln T)^2.5 /
    epsilon.

    Source:
        Theorem 1, in the form of the last line of its proof; the statement of the theorem omits constants and
        logarithms.

    Deviations:
        None in the formula, but the constants are not proved. The proof bounds utility gaps by 2 Delta(1, i). This is
        false for the logistic link, for which utility gaps are at least 4 Delta(1, i). The proof also ignores rounds in
        which an arm is the right (second) arm of the pair. Lemma 6 of the paper omits the confidence interval of the
        best arm. With this interval, 64 replaces 8, and the privacy noise is larger.

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
    r"""Returns a lower bound on the regret that every private algorithm has on some instance.

    The bound is K / epsilon, plus ln T / Delta(1, i) for each arm i except the best.

    Source:
        Theorem 2, a bound up to a constant factor, for K / epsilon <= T / 2.

    Deviations:
        None in the formula. The term K / epsilon is proved only for the instance `lower_bound_matrix`, where all gaps
        are 1/4, for epsilon <= 1 and for regret that is defined by preference gaps. The proof uses group privacy for 1
        / epsilon rounds, so delta must be small compared with epsilon; the statement omits this condition.

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
