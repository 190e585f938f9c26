"""Mirror descent that tracks the best expert: the corrected forms of a published algorithm, and that algorithm."""

from jaxdp.core import Learner, factory
from jaxdp.experts._mirror_descent.intervals import intervals
from jaxdp.experts._mirror_descent.noisy import noisy_losses
from jaxdp.experts._mirror_descent.parameters import FORMS, NOISES, check_switches
from jaxdp.experts._mirror_descent.sampling import sampling
from jaxdp.validation import check_choice, check_count, check_horizon

MIXINGS = ("fixed_share", "clipped")
CONSTANTS = ("corrected", "paper")


@factory
def mirror_descent(
    *,
    num_experts: int,
    horizon: int,
    num_switches: int,
    form: str | None = None,
    mixing: str | None = None,
    noise: str | None = None,
    constants: str = "corrected",
) -> Learner:
    """Exponential steps on weights that stay away from 0, so that they can follow a comparator that switches.

    - "sampling": weights use the losses as they are, and a fresh expert is drawn each round; the rate is small enough
      that T draws are private. Rate at most sqrt(2 rho / D), where D <= T is as how many draws a loss counts, of which
      fixed share forgets a part each round; regret ent / rate + rate T / 8, losses may react to plays.
    - "noisy_losses": each loss vector is noised by itself, and all else follows. Regret ent / rate + rate T (1/8 +
      s^2 / 2) with Gaussian noise of deviation s = sqrt(N / (2 rho)), oblivious losses; with Laplace noise of scale b =
      N / epsilon, s^2 / 2 becomes -ln(1 - rate^2 b^2) / rate^2. Better than "sampling" where N is small. Losses that
      react to plays react to hidden noise, too: then s sqrt(2 T ln(number of sequences)) has to be added.
    - "intervals": Hedge by "sampling" on all dyadic intervals, of length 2^k for each level k; above them fixed share
      over levels, by "noisy_losses" on the losses of the experts that the levels drew. Regret of order S + sqrt(S T) up
      to logarithms, over epsilon, at any N.

    At epsilon = inf what is drawn inside "sampling" and "intervals" is replaced by its law, which is public.

    Args:
        num_experts: number of experts N, >= 2.
        horizon: rounds T, >= 2.
        num_switches: S of the comparator, >= 1 and < T.
        form: "sampling" (the default), "noisy_losses" or "intervals".
        mixing: of the first two forms. "fixed_share" (the default) at the rate S / (T - 1); or "clipped", the
            projection in relative entropy on weights >= S / (N T), for which the bounds above are not proved.
        noise: of "noisy_losses": "gaussian" (the default) or "laplace".
        constants: "corrected"; or "paper", the algorithm as published: noisy losses, clipped, Laplace noise of scale
            1 / epsilon, rate min(epsilon, 1) sqrt(S / (T ln(N T))). The other three are then left out.

    Returns:
        A learner for losses ([num_experts] float in [0, 1]; clipped, NaN to 0); its actions are experts ([] int32).

    Raises:
        ValueError: if an argument is out of range, or does not belong to the form; from `params`, if a value is out of
            range, or `learning_rate` is more than "sampling" can pay for.

    Values:
        epsilon: the privacy budget, > 0.
        delta: but for Laplace noise, in (0, 1).
        learning_rate: > 0, by default that of `mirror_descent_parameters`, of "intervals" that of the level.

    Privacy:
        - Unit: one round's loss vector; adjacency: replace one; losses may react to all that is released.
        - "sampling": zCDP in the central model, D rate^2 / 2 <= rho. Replacing a vector moves ln(w / w') within a range
          2 rate; steps and the projection never widen it, and fixed share at the rate a contracts it by k = |r - 1| /
          (r + 1), r = (1 - a) (N - 1) / a (Birkhoff). So the i-th draw after it is an exponential mechanism of range
          2 rate k^i, which is (rate^2 k^(2i) / 2)-zCDP: D = k^2 + k^4 + ... + k^(2T). For N = 2 that is all that a loss
          can do; at larger N it takes weights that two experts share. "clipped": D = T. Released: draws. Private: the
          weights.
        - "noisy_losses": in the local model, rho-zCDP (Gaussian noise for L2 sensitivity sqrt(N)) or epsilon-DP
          (Laplace noise for L1 sensitivity N). Released: all noisy losses.
        - "intervals": rho-zCDP in the central model. Half for draws of levels, 2^k rate_k^2 / 2 = rho / (2 levels)
          each, since a vector is in one interval of each level; half for the levels' losses, of L2 sensitivity
          sqrt(levels). Private: totals of losses in the current intervals. Released: draws, noisy losses of levels.
        - "paper": N epsilon, not epsilon: all N losses may change by 1 each, so the L1 sensitivity is N. It is no
          artefact of releasing noisy losses: the law of plays alone exceeds epsilon.

    Source:
        "Tracking the Best Expert Privately" (Asi, Raman & Saha, 2025), Algorithm 3 and Theorem 5.2, after Lu & Zhang
        (2019); fixed share: Herbster & Warmuth (1998); ranges: Dong, Durfee & Rogers (2020); intervals: Hazan &
        Seshadhri (2009), Daniely, Gonen & Shalev-Shwartz (2015). ent = ln N + S ln(N - 1) + (T - 1) H(S / (T - 1)). The
        bound of "noisy_losses" is Jensen's: E ln sum w e^{-rate (l + Z)} <= ln sum w e^{-rate l} + ln E e^{-rate Z}.

    Deviations:
        Losses of "intervals" are rounded to multiples of 2^-20 and summed as integers; weights are computed in 64 bits.
        Shares of "sampling" with fixed share are compensated sums: rounded in every round, those of neighbouring losses
        would drift apart by more than 2 rate at long horizons. In 32-bit floats its rate pays for what reading them
        rounds, and "clipped" sampling ends at a horizon of 10^5. D is T in the source, where it is not counted what
        fixed share forgets: for N = 10, S = 5 and T = 10^5 it is 0.4 T, for N = 2 and S = 1 it is 0.25 T. The published
        privacy claim is too small by a factor N, hence three forms. "paper" keeps its rate below epsilon = 1, where it
        is stated; above, where noise is no longer what counts, it takes that of 1.
    """
    num_experts, horizon = check_count("num_experts", num_experts, 2), check_horizon(horizon)
    num_switches = check_switches(num_switches, horizon)
    if check_choice("constants", constants, CONSTANTS) == "paper":
        for name, given in (("form", form), ("mixing", mixing), ("noise", noise)):
            if given is not None:
                raise ValueError(f"{name} must be left out for constants='paper', got {given!r}")
        return noisy_losses(num_experts, horizon, num_switches, mixing="clipped", noise="paper")
    form = check_choice("form", "sampling" if form is None else form, FORMS)
    if noise is not None and form != "noisy_losses":
        raise ValueError(f"noise must be left out for form={form!r}, got {noise!r}")
    if mixing is not None and form == "intervals":
        raise ValueError(f"mixing must be left out for form={form!r}, got {mixing!r}")
    mixing = check_choice("mixing", "fixed_share" if mixing is None else mixing, MIXINGS)
    if form == "sampling":
        return sampling(num_experts, horizon, num_switches, mixing=mixing)
    if form == "intervals":
        return intervals(num_experts, horizon, num_switches)
    noise = check_choice("noise", "gaussian" if noise is None else noise, NOISES)
    return noisy_losses(num_experts, horizon, num_switches, mixing=mixing, noise=noise)
