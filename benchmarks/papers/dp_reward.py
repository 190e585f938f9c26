"""DP-Reward (Chowdhury, Zhou & Natarajan, 2023), statement by statement."""

# ruff: noqa: RUF001  (symbols of the papers are meant)

from functools import partial

from benchmarks.papers import dp_reward_measures as measure
from benchmarks.papers import dp_reward_privacy as privacy
from benchmarks.papers.rows import at_least, at_most, row

L2, SEMI = "l2_error", "semi_norm_error"
RATE, GROWTH = "exponent of n, ε = 1", "growth in ε / bound's"
ORDER = "An order with an unspecified constant: slopes only."
ROOT = at_most(-0.4)  # of n: the bounds fall like 1/sqrt(n)
CONFINED = (
    "The exponent of n could hardly have differed: estimates are confined to the ball of radius |θ*|, which bounds "
    "their errors at small n and so makes the decrease flatter."
)
FAST = (
    "The row could hardly have differed: in this bandit the loss falls like n^-1.3, because a model with errors "
    "below the gaps between actions chooses the best action; the bound is for the worst bandit at each n."
)
BALL = "Features and parameter lie in the unit ball, d = 5, n = 3,000 and 30,000."

ROWS = (
    # ---- the figure --------------------------------------------------------------------------------------------------
    row(
        "Figure 1",
        "The l2 error falls with n for all estimators; it is smallest without privacy, larger with central and "
        "largest with local label privacy, at ε = 0.1, 0.5 and 1 (d = 5, n = 1,000 to 10,000).",
        "exact solvers on the ball of radius |θ*|, least Gaussian noise: the largest exponent of n of all curves, and "
        "the least paired difference between neighbouring curves, over all n and ε",
        measure.curves,
        {
            "largest exponent of n": at_most(0),
            "least central - non-private": at_least(0),
            "least local - central": at_least(0),
        },
    ),
    row(
        "Section 6, d = 3 and 10",
        "The same holds for d in {3, 10}.",
        "the same, at n = 1,000 and 10,000",
        partial(measure.curves, dims=(3, 10)),
        {
            "largest exponent of n": at_most(0),
            "least central - non-private": at_least(0),
            "least local - central": at_least(0),
        },
    ),
    row(
        "Section 6, as its text reads",
        "All three are one pass of SGD with the step 0.1, whose error falls as the number of samples grows.",
        "one pass, step 0.1, last iterate, no projection: the largest exponent of n of all curves",
        measure.literal,
        {"largest exponent of n": at_most(0)},
        corrected="Averaged over the last half and projected on the ball of radius |θ*|, the errors of the same "
        "passes fall.",
        corrected_rules={"largest exponent of n, averaged": at_most(0)},
        why="With a constant step, the last iterate ends in noise that does not shrink with n. "
        "The error falls less where the labels' noise is amplified more (local, ε = 0.1). The paper does not say "
        "whether it averages or projects.",
    ),
    # ---- local model -------------------------------------------------------------------------------------------------
    row(
        "Eq. (2)",
        "Randomized response with P[ỹ = y] = e^ε / (1 + e^ε) is ε-DP.",
        "the exact ε of its distribution at ε = 0.1, 1 and 4, over the claim",
        privacy.randomized_response_spends,
        {"exact ε / claimed": at_most(1)},
    ),
    row(
        "Thm 3.1",
        "No local estimator's expected squared semi-norm error is below the order d/n + d/((e^ε - 1)² n).",
        "the tailored estimator's error: exponent of n, and growth from ε = 1 to 0.5 over the growth of the "
        "bound's root",
        partial(measure.local_lower, norm=SEMI),
        {RATE: at_least(-0.55), GROWTH: at_least(0.9)},
        why=f"{ORDER} No constant can be contradicted; an error that falls faster than this, or grows more slowly, "
        f"would contradict it. {CONFINED}",
    ),
    row(
        "Thm 3.2",
        "No local estimator's expected squared l2 error is below the order (d/L²)(d/n + d/((e^ε - 1)² n)).",
        "the same in the l2 norm",
        partial(measure.local_lower, norm=L2),
        {RATE: at_least(-0.55), GROWTH: at_least(0.9)},
        why=f"{ORDER} {CONFINED}",
    ),
    row(
        "Thm 3.2, proof; κ of section 4.3; Lemma D.2",
        "Differences of features are bounded by |x| <= L, and so κ = O(L²/d) with the constant 1.",
        "the largest norm of a difference of many features of norm L; κ d / L² if both actions have opposite features",
        measure.longest_difference,
        {"max |x| / L": at_most(1), "κ d / L², opposite features": at_most(1)},
        corrected="|x| <= 2 L, and κ <= 4 L²/d: the bounds change by the constant 4, and Theorem 5.3 needs 32 L² "
        "ln(d/α)/κ samples.",
        corrected_rules={"max |x| / L": at_most(2), "κ d / L², opposite features": at_most(4)},
    ),
    row(
        "Thm 4.1",
        "Above a threshold of ε, the maximum likelihood of randomized labels errs by the order "
        "(1/γ) (e^(ε+2LB) + 1)/(e^(ε-2LB) - 1) sqrt((d + ln(1/α))/n).",
        "the error in the semi-norm above both thresholds, the printed and the corrected one, ε > 4 L B = 2: "
        "exponent of n at ε = "
        "4, and growth from ε = 4 to 2.5 over the growth of the bound. Features lie in the unit ball, L = 1, the "
        "parameter "
        "in the ball of radius B = 1/2; d = 5, n = 3,000 and 30,000.",
        measure.likelihood_above_its_threshold,
        {"exponent of n, ε = 4": ROOT, GROWTH: at_most(1.1)},
        why=f"{ORDER} The growth could hardly have differed: the bound grows by 1.25 here, because its pole at ε = 2 "
        f"L B = 1 is near, and the noise of labels explains 1.14.",
    ),
    row(
        "Thm 4.1, threshold",
        "The likelihood of randomized labels is strongly convex over |θ| <= B for ε > 2 L B.",
        "its least Hessian coefficient on |z| <= 2 L B at ε = 3 L B, L = B = 1",
        measure.curvature_of_the_likelihood,
        {"least coefficient, ε = 3 L B": at_least(0)},
        corrected="It is strongly convex for ε > 4 L B: the coefficients are σ'(z) - σ'(z ± ε).",
        corrected_rules={"least coefficient, ε = 4.01 L B": at_least(0)},
    ),
    row(
        "Thm 4.2",
        "The tailored estimator errs in the semi-norm by at most the order (1/γ) (e^ε + 1)/(e^ε - 1) sqrt((d + "
        "ln(1/α))/n), with probability 1 - α, at every ε.",
        "the share of runs within the bound with the constant sqrt(3)/2, which can be proved (α = 0.05, ε = 1, n = "
        f"30,000); exponent of n, and growth from ε = 1 to 0.5 over the growth of the bound. {BALL}",
        measure.within_constant,
        {"share of runs within": at_least(0.95), RATE: ROOT, GROWTH: at_most(1.1)},
        why="The share could hardly have differed: the bound is as loose as its ratio to the mean error says.",
    ),
    row(
        "Cor. 4.3",
        "Its l2 error is at most that bound over the root of the least eigenvalue of the covariance.",
        f"the l2 error: exponent of n, and growth in ε. {BALL}",
        partial(measure.local_upper, norm=L2),
        {RATE: ROOT, GROWTH: at_most(1.1)},
        why=ORDER,
    ),
    row(
        "Thm 4.5",
        "With steps 1/(γ κ), one pass of SGD on randomized labels errs by the order (L/(γ κ)) (e^ε + 1)/(e^ε - 1) "
        "sqrt(ln(ln(n)/α)/n).",
        "the l2 error with the statement's constant step: exponent of n from 2,000 to 50,000; features and "
        "parameter in the unit ball, d = 5",
        measure.one_pass_steps,
        {"exponent of n, printed steps": ROOT},
        corrected="With the proof's steps 1/(γ_ε κ t), γ_ε = γ (e^ε - 1)/(e^ε + 1), one pass errs by this order.",
        corrected_rules={
            "exponent of n, 1/(γ_ε κ t)": ROOT,
            "growth in ε / bound's, 1/(γ_ε κ t)": at_most(1.1),
        },
        why="A constant step cannot make the last iterate converge. " + ORDER,
    ),
    row(
        "Section 4.4, Thurstone",
        "A bound like Theorem 4.5 holds in Thurstone's model.",
        "one pass with steps 1/(γ_ε κ t) and the probit link: exponent of n of the l2 error from 2,000 to 50,000; "
        "unit ball, d = 5",
        measure.thurstone,
        {RATE: ROOT},
        why=ORDER,
    ),
    row(
        "Thm C.2 (eq. (11), (12))",
        "From choices of one among K actions by K-ary randomized response, one pass errs by the order "
        "(L/(γ κ)) (e^ε + K - 1)/(e^ε - 1) sqrt(ln(ln(n)/α)/n).",
        "K = 3, with the proof's steps: exponent of n of the l2 error from 20,000 to 200,000, and growth from ε = 1 to "
        "0.5 over the growth of the bound",
        measure.choices,
        {RATE: ROOT, GROWTH: at_most(1.1)},
        why=ORDER + " The printed step has the same erratum as Theorem 4.5.",
    ),
    row(
        "Eq. (9)",
        "A pessimistic policy over the confidence set of Theorem 4.2 loses at most the order sqrt(d/n).",
        "its loss in an offline bandit with ε = 1, local: exponent of n from 500 to 8,000",
        partial(measure.policy_gap, policy="pessimistic"),
        {RATE: at_most(-0.4)},
        why="The confidence sets assume the curvature of even odds. With confidence sets that can be proved, every "
        "pessimistic policy is the policy that collected the data. " + FAST,
    ),
    row(
        "Section 4.3, greedy policy",
        "Under coverage a greedy policy loses at most the order (L²/(γ κ)) (e^ε + 1)/(e^ε - 1) / sqrt(n).",
        "the same for the greedy policy",
        partial(measure.policy_gap, policy="greedy"),
        {RATE: at_most(-0.4)},
        why=f"{ORDER} {FAST}",
    ),
    # ---- central model -----------------------------------------------------------------------------------------------
    row(
        "Thm 5.1",
        "No central estimator's expected squared l2 error is below the order d²/(n L²) + d/(n² (ε + δ)²).",
        "the exponent of n of the central squared error that privacy adds; it is -2 in the bound",
        partial(measure.central_cost, norm=L2),
        {f"exponent of n, cost at ε = {e}": at_least(-2.2) for e in ("0.5", "1")},
        why=ORDER,
    ),
    row(
        "Thm 5.2",
        "With σ = L sqrt(8 ln(2/δ) + 4 ε)/ε objective perturbation is (ε, δ)-label DP.",
        "the exact δ of a Gaussian mechanism of this σ on Σ y x, of sensitivity 2 L, over the claim, at four ε; "
        "labels enter the loss only through that sum, so the estimate is post-processing of it",
        privacy.noise_of_theorem_5_2,
        {"exact δ / claimed, largest": at_most(1)},
        why="It holds, and more is true: the least σ is smaller by the factor given, and neither β > 0 nor an exact "
        "minimiser "
        "is needed.",
    ),
    row(
        "Thm 5.2, the cost of its noise",
        "This σ is sufficient for label privacy; that it is needed is not claimed.",
        "the l2 error with this σ over the error with the least σ, ε = 1, n = 1,000, d = 5, the same solver",
        privacy.published_noise_costs,
        {"error with published σ / with least": at_least(1)},
        why="Sufficient, and not tight: a Gaussian mechanism on Σ y x with analytic calibration needs a σ that is 1.56 "
        "times smaller at ε = 1, δ = 0.001. The proof by successive approximation pays for steps that are free by "
        "the sufficient statistic. The row could hardly have differed: less of the same noise gives smaller errors.",
    ),
    row(
        "Thm 5.3, Cor. 5.4",
        "Objective perturbation errs in the l2 norm by at most the order (L/(κγ)) sqrt(ln(1/α)/n) + "
        "σ (sqrt(d) + sqrt(ln(1/α)))/(nκγ).",
        "the exponent of n of the central l2 error, minus the exponent of the bound at the same points",
        partial(measure.central_upper, norm=L2),
        {f"exponent of n, less bound's, ε = {e}": at_most(0.05) for e in ("0.5", "1")},
        why=ORDER,
    ),
    row(
        "Remark 5.5",
        "The cost of central privacy falls like 1/(ε n), the cost of local privacy like 1/((e^ε - 1) sqrt(n)).",
        "the exponent of n of the squared error that privacy adds, central minus local (-1 in the limit), ε = 1",
        measure.central_against_local,
        {"central's exponent of n less local's": at_most(-0.5)},
    ),
    row(
        "Thm D.3",
        "For δ = 0 no central estimator's squared semi-norm error is below the order d/n + d²/(nε)².",
        "the exponent of n of the central squared semi-norm error that privacy adds; it is -2 in the bound",
        partial(measure.central_cost, norm=SEMI),
        {f"exponent of n, cost at ε = {e}": at_least(-2.2) for e in ("0.5", "1")},
        why=ORDER,
    ),
    row(
        "Thm D.5",
        "Objective perturbation errs in the semi-norm by at most the order (1/γ) sqrt((d + ln(1/α))/n) + "
        "sqrt(σ) (d ln(1/α))^(1/4) / sqrt(nγ/B).",
        "the exponent of n of the central semi-norm error, minus the bound's -1/2",
        partial(measure.central_upper, norm=SEMI),
        {f"exponent of n, less bound's, ε = {e}": at_most(0.05) for e in ("0.5", "1")},
        why=f"{ORDER} The row could hardly have differed: at these n most of the error comes from the noise, which "
        f"falls like 1/n, while both terms of the bound fall like 1/sqrt(n).",
    ),
    row(
        "Thm E.1",
        "With σ >= 4 L sqrt(8 ln(4/δ) + 2 ε)/ε and β >= 4 L²/ε objective perturbation is (ε, δ)-DP for whole records.",
        "the lower bound on ε that a black-box audit finds, over the claim",
        privacy.audit_of_records,
        {"lower bound on ε / claimed": at_most(1)},
        why="An audit finds no violation and proves nothing. The proof's exponent is wrong by the factor 2; this σ "
        "is large enough all the same, and β >= 2 L²/ε is enough.",
    ),
    row(
        "Remark E.3; lemmas of the appendices",
        "Standard local DP needs more than randomized labels; tools from the literature.",
        why="They have no statement about an algorithm of this library that could be measured.",
    ),
)
