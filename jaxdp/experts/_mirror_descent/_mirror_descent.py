"""Mirror descent that tracks the best expert: a published algorithm, and three corrected forms of this algorithm."""

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
    r"""Plays by exponential updates of weights that are bounded away from 0, to track a comparator that switches.

    - "sampling": weights are computed from the exact losses, and a new expert is drawn in each round. Replacing one
      loss vector costs as much privacy as D <= T draws (see Privacy), because fixed share forgets a part of the vector
      in each round. The regret bound (see Math) also holds if losses depend on earlier plays.
    - "noisy_losses": independent noise is added to each loss vector; everything else is post-processing. For small N
      the regret is smaller than with "sampling". The regret bound holds for oblivious losses.
    - "intervals": for each level k, Hedge runs on each dyadic interval of length 2^k separately, and draws an expert in
      each round, as in "sampling". The loss of a level is the loss of the level's drawn expert. Fixed share on noisy
      losses of the levels, as in "noisy_losses", computes probabilities of levels. A level is drawn by these
      probabilities, and its expert is played. Regret is of order (S + sqrt(S T)) / epsilon up to logarithms, for every
      N.

    At epsilon = inf, "sampling" and "intervals" release weights instead of drawn experts. Plays are drawn by these
    weights, and the loss of a level is the weighted mean of the experts' losses.

    Args:
        num_experts: number of experts N, >= 2.
        horizon: rounds T, >= 2.
        num_switches: the comparator's number of switches S, >= 1 and < T.
        form: "sampling" (the default), "noisy_losses" or "intervals".
        mixing: for "sampling" and "noisy_losses". "fixed_share" (the default): with the switch rate S / (T - 1).
            "clipped": the projection in relative entropy onto weights >= S / (N T); no regret bound is proved for it
            here.
        noise: for "noisy_losses": "gaussian" (the default) or "laplace".
        constants: "corrected"; or "paper", the published algorithm: noisy losses, clipped mixing, Laplace noise of
            scale 1 / epsilon, and the rate min(epsilon, 1) sqrt(S / (T ln(N T))). With "paper", form, mixing and noise
            must be omitted.

    Returns:
        A learner for losses ([num_experts] float, clipped to [0, 1]; NaN counts as 0); its actions are experts ([]
        int32).

    Raises:
        ValueError: if an argument is out of range, or is given although the form does not use it. The result's `params`
            raises this error if a value is out of range, or, for "sampling", if `learning_rate` is larger than the
            privacy budget allows.

    Values:
        epsilon: the privacy budget, > 0.
        delta: in (0, 1); `params` does not take it with Laplace noise (also not for "paper").
        learning_rate: > 0, by default from `mirror_descent_parameters`; for "intervals", the rate of fixed share over
            levels.

    Privacy:
        - Unit: one round's loss vector; adjacency: replace one. Losses may depend on everything that has been released.
        - "sampling": rho-zCDP in the central model, with the rho that implies (epsilon, delta)-DP. The rate is limited
          by D rate^2 / 2 <= rho. With fixed share, the i-th draw after a replaced vector is an exponential mechanism of
          range 2 rate k^i, where k <= 1 is the contraction factor of a step. So D = k^2 + k^4 + ... + k^(2T). With
          "clipped", the range is at most 2 rate, and D = T. Released: draws. Private: the weights.
        - "noisy_losses": in the local model, rho-zCDP (Gaussian noise for L2 sensitivity sqrt(N)) or epsilon-DP
          (Laplace noise for L1 sensitivity N). Released: all noisy losses.
        - "intervals": rho-zCDP in the central model. Half of rho is spent on the draws of the levels. The other half is
          spent on the losses of the levels, which have L2 sensitivity sqrt(levels). Private: totals of losses in the
          current intervals. Released: draws, noisy losses of levels.
        - "paper": N epsilon-DP in the local model, not epsilon-DP, because each of the N losses may change by 1, so the
          L1 sensitivity is N.
        - Proofs: `docs/proofs/mirror_descent.md`.

    Source:
        "Tracking the Best Expert Privately" (Asi, Raman & Saha, 2025), Algorithm 3 and Theorem 5.2, after Lu & Zhang
        (2019); fixed share: Herbster & Warmuth (1998); ranges: Dong, Durfee & Rogers (2020); intervals: Hazan &
        Seshadhri (2009), Daniely, Gonen & Shalev-Shwartz (2015).

    Deviations:
        * The epsilon of the published privacy claim is too small by a factor N, so the library has three corrected
          forms. "paper" uses the published rate for epsilon <= 1, where the paper states it, and the rate at epsilon =
          1 for larger epsilon.
        * For "intervals", losses are rounded to multiples of 2^-20 and summed as integers; weights are 64-bit floats.
        * With fixed share and learning rates up to 1/8, "sampling" stores its weights as compensated sums. The maximum
          rate is slightly smaller than stated above, mainly in 32-bit mode, to account for the rounding of weights when
          they are read. No bound on rounding errors within the stored weights is proved. In 32-bit mode, "clipped"
          sampling is limited to horizons of at most 10^5.
        * D is T in the source, which does not use the contraction of fixed share.

    Math:
        With fixed share, weights move from losses $\ell_t$ (noisy ones for "noisy_losses") by

        $$
        v_{t,i} = \frac{w_{t,i} e^{-\eta \ell_{t,i}}}{\sum_j w_{t,j} e^{-\eta \ell_{t,j}}}, \quad
        w_{t+1,i} = (1 - a) v_{t,i} + a \frac{1 - v_{t,i}}{N - 1}, \quad
        a = \frac{S}{T - 1}
        $$

        "sampling" keeps $D \eta^2 / 2 \le \rho$, for the $D$ under Privacy. "noisy_losses" adds Gaussian or Laplace
        noise of the scale

        $$
        \sigma = \sqrt{\frac{N}{2 \rho}}, \quad b = \frac{N}{\varepsilon}
        $$

        to each loss. With $H = \ln N + S \ln(N - 1) + (T - 1) h(S / (T - 1))$, where $h$ is the entropy of a coin in
        nats, the expected regret is at most

        $$
        \frac{H}{\eta} + \frac{\eta T}{8}, \quad \frac{H}{\eta} + \eta T \Big( \frac{1}{8} + \frac{\sigma^2}{2} \Big)
        $$

        for "sampling", and for Gaussian "noisy_losses" with oblivious losses. With Laplace noise $\sigma^2 / 2$ becomes
        $-\ln(1 - \eta^2 b^2) / \eta^2$.
    """
    num_experts, horizon = check_count("num_experts", num_experts, 2), check_horizon(horizon)
    num_switches = check_switches(num_switches, horizon)
    if check_choice("constants", constants, CONSTANTS) == "paper":
        for name, argument in (("form", form), ("mixing", mixing), ("noise", noise)):
            if argument is not None:
                raise ValueError(f"{name} must be left out for constants='paper', got {argument!r}")
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
