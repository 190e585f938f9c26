"""Bounds of Asi, Raman & Saha (2025) on dynamic regret in the central model.

Source of all bounds: Asi, Raman & Saha (2025), *Tracking the Best Expert Privately*. Its Table 1 lists the orders of
all bounds here except `window_upper`, without logarithms of T and 1 / delta.

In section 2.1 of the paper, S is the number of distributions of a stochastic adversary, which therefore shifts S - 1
times. Here S is the comparator's number of switches. Arguments are numbers or arrays, which are broadcast; only epsilon
may be infinite. Results are float64 numbers or arrays; they bound the expected dynamic regret unless a docstring says
otherwise. Every function raises a ValueError if an argument is out of range or NaN. Arguments of the functions:

- `epsilon`: > 0; at infinity the terms with epsilon are 0.
- `horizon`: T, >= 2.
- `num_experts`: N, >= 2.
- `num_switches`: S, the comparator's number of switches, >= 0 and < T; lower bounds restrict S further. Upper bounds
  hold only for S >= 1; at S = 0 the functions return 0.
- `delta`: in (0, 1).
- `scale`: the unspecified constant factor of a bound, > 0.
"""

import numpy as np
from numpy.typing import ArrayLike

from jaxdp.theory.arguments import above, at_least, between, positive


def window_upper(
    epsilon: ArrayLike,
    horizon: ArrayLike,
    num_experts: ArrayLike,
    window: ArrayLike,
    failure_prob: ArrayLike,
    *,
    corrected: bool = False,
) -> np.ndarray:
    r"""Returns the published or corrected upper bound on the regret of `limited_updates` in every w consecutive rounds.

    The published bound is 16 ln(N T / b) / epsilon + 9 sqrt(w ln(T N / b)), where w is `window`, in [1, T], and b is
    `failure_prob`, in (0, 1). With `corrected`, ln T multiplies the first term.

    Returns:
        The bound on the regret against the best fixed expert of these rounds.

    Source:
        Theorem 3.1, for losses that are drawn from one distribution. It states the bound for any window, with
        probability 1 - b.

    Deviations:
        The theorem omits the factor ln T, which the first term has in the paper's Lemmas 3.3 and A.2. So the published
        bound, which is the default, is not proved; `corrected=True` includes the factor. The lemmas are stated for all
        windows simultaneously, but only with probability 1 - 3 b.

    Math:
        $$
        \frac{16 \ln(N T / b)}{\varepsilon} + 9 \sqrt{w \ln(T N / b)}
        $$

        and, with `corrected`,

        $$
        \frac{16 \ln(N T / b) \ln T}{\varepsilon} + 9 \sqrt{w \ln(T N / b)}
        $$
    """
    budget, rounds, experts = above("epsilon", epsilon, 0), _rounds(horizon), _experts(num_experts)
    length = at_least("window", window, 1)
    if np.any(length > rounds):
        raise ValueError(f"window must be <= horizon, got {length.max():g}")
    union = np.log(experts * rounds / between("failure_prob", failure_prob, 0, 1))
    factor = np.log(rounds) if corrected else 1.0
    return 16 * union * factor / budget + 9 * np.sqrt(length * union)


def shifting_upper(
    epsilon: ArrayLike,
    horizon: ArrayLike,
    num_experts: ArrayLike,
    num_switches: ArrayLike,
    *,
    scale: ArrayLike = 1.0,
) -> np.ndarray:
    r"""Returns an upper bound on the dynamic regret of `svt_restarts`: sqrt(S T ln(NT)) + S ln(NT) / epsilon.

    Source:
        Theorem 3.6, a bound up to a constant factor, for stochastic losses with a distribution that shifts.

    Math:
        $$
        \sqrt{S T \ln(N T)} + \frac{S \ln(N T)}{\varepsilon}
        $$
    """
    budget, rounds, experts, switches = _check_arguments(epsilon, horizon, num_experts, num_switches)
    union = np.log(experts * rounds)
    return positive("scale", scale) * (np.sqrt(switches * rounds * union) + switches * union / budget)


def shifting_lower(
    epsilon: ArrayLike,
    horizon: ArrayLike,
    num_experts: ArrayLike,
    num_switches: ArrayLike,
    *,
    scale: ArrayLike = 1.0,
) -> np.ndarray:
    r"""Returns a lower bound on the dynamic regret of every private learner: sqrt(S T ln N) + S ln(N/S) / epsilon.

    The bound requires 0 < S <= N, because in the proof each of the S phases of the adversary has its own experts.

    Source:
        Section 3.2, "Lower bound for shifting adversary", and Table 1. It holds up to a constant factor. The losses in
        the proof do not depend on the learner's plays, so the bound also holds for oblivious adversaries.

    Math:
        $$
        \sqrt{S T \ln N} + \frac{S \ln(N / S)}{\varepsilon}
        $$
    """
    budget, rounds, experts, switches = _check_arguments(epsilon, horizon, num_experts, num_switches)
    above("num_switches", switches, 0)
    if np.any(switches > experts):
        raise ValueError(f"num_switches must be <= num_experts, got {switches.max():g}")
    learning = np.sqrt(switches * rounds * np.log(experts))
    return positive("scale", scale) * (learning + switches * np.log(experts / switches) / budget)


def oblivious_upper(
    epsilon: ArrayLike,
    horizon: ArrayLike,
    num_experts: ArrayLike,
    num_switches: ArrayLike,
    delta: ArrayLike,
    *,
    scale: ArrayLike = 1.0,
) -> np.ndarray:
    r"""Returns the upper bound on the dynamic regret that the paper claims for oblivious losses.

    The bound is sqrt(S T ln(NT)) + S T^(1/3) ln(T/delta) ln(NT) / epsilon^(2/3).

    Source:
        Corollary 4.1.1, a bound up to a constant factor, for epsilon < 1. It combines Theorem 4.1 with Proposition 1,
        which is a claim of Asi, Koren, Liu & Talwar (2024).

    Deviations:
        `lazy_weights` implements the reduction of Theorem 4.1. For the privacy term of the regret of `lazy_weights`,
        the proved order in T and epsilon is min(T^(1/3) / epsilon, T^(2/5) / epsilon^(3/5)); `lazy_weights_parameters`
        computes the regret bound.

    Math:
        $$
        \sqrt{S T \ln(N T)} + \frac{S T^{1/3} \ln(T / \delta) \ln(N T)}{\varepsilon^{2/3}}
        $$
    """
    budget, rounds, experts, switches = _check_arguments(epsilon, horizon, num_experts, num_switches)
    union = np.log(experts * rounds)
    spread = np.log(rounds / between("delta", delta, 0, 1))
    privacy = switches * np.cbrt(rounds) * spread * union / budget ** (2 / 3)
    return positive("scale", scale) * (np.sqrt(switches * rounds * union) + privacy)


def adaptive_lower(
    epsilon: ArrayLike, horizon: ArrayLike, num_switches: ArrayLike, *, scale: ArrayLike = 1.0
) -> np.ndarray:
    r"""Returns a lower bound on the dynamic regret against some adaptive adversary.

    The bound is min(T, S / (epsilon ln(T / (S + 1)))^2), and requires T > S + 1. It is 0 at S = 0 and at epsilon =
    infinity. The proof has S + 1 in place of S, so at S = 0 the proof implies a larger bound than this formula.

    Source:
        Theorem 5.1, a bound up to a constant factor, for epsilon <= 1, delta <= (S + 1)^3 / T^3, N >= 2 T / S and
        sufficiently large T.

    Deviations:
        The proof treats the learner's internal state as if it were released. This step is valid only for delta = 0, so
        the proof does not cover delta > 0.

    Math:
        $$
        \min\Big( T, \; \frac{S}{(\varepsilon \ln(T / (S + 1)))^2} \Big)
        $$
    """
    budget, rounds = above("epsilon", epsilon, 0), _rounds(horizon)
    switches = at_least("num_switches", num_switches, 0)
    if np.any(rounds <= switches + 1):
        raise ValueError(f"num_switches must be < horizon - 1, got {switches.max():g}")
    privacy = switches / (budget * np.log(rounds / (switches + 1))) ** 2
    return positive("scale", scale) * np.minimum(rounds, privacy)


def adaptive_upper(
    epsilon: ArrayLike,
    horizon: ArrayLike,
    num_experts: ArrayLike,
    num_switches: ArrayLike,
    *,
    scale: ArrayLike = 1.0,
) -> np.ndarray:
    r"""Returns the upper bound on the dynamic regret that the paper claims for adaptive losses.

    The bound is sqrt(S T) ln(NT)^1.5 / epsilon + S ln(NT) / epsilon. At epsilon = infinity it is 0, which is not valid.

    Source:
        Theorem 5.2, a bound up to a constant factor, for epsilon < 1.

    Deviations:
        The learner of the theorem, `mirror_descent(constants="paper")`, is (N epsilon)-DP, not epsilon-DP. The regret
        of `mirror_descent(form="intervals")` has this order in S, T and epsilon, up to logarithms.

    Math:
        $$
        \frac{\sqrt{S T} (\ln(N T))^{1.5}}{\varepsilon} + \frac{S \ln(N T)}{\varepsilon}
        $$
    """
    budget, rounds, experts, switches = _check_arguments(epsilon, horizon, num_experts, num_switches)
    union = np.log(experts * rounds)
    return positive("scale", scale) * (np.sqrt(switches * rounds) * union**1.5 + switches * union) / budget


def _check_arguments(
    epsilon: ArrayLike, horizon: ArrayLike, num_experts: ArrayLike, num_switches: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Checks the four arguments, and returns them as float64; raises ValueError if an argument is out of range."""
    rounds, switches = _rounds(horizon), at_least("num_switches", num_switches, 0)
    if np.any(switches >= rounds):
        raise ValueError(f"num_switches must be < horizon, got {switches.max():g}")
    return above("epsilon", epsilon, 0), rounds, _experts(num_experts), switches


def _rounds(horizon: ArrayLike) -> np.ndarray:
    return at_least("horizon", horizon, 2)


def _experts(num_experts: ArrayLike) -> np.ndarray:
    return at_least("num_experts", num_experts, 2)
