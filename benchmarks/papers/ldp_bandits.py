"""LDP-Bandits (Zheng, Cai, Huang, Li & Wang, 2020), statement by statement."""

# ruff: noqa: RUF001  (symbols of the papers are meant)

from functools import partial

from benchmarks.papers import ldp_bandits_measures as measure
from benchmarks.papers.rows import Row, Rule, at_least, at_most, row

RATE, COST, BOUND = "exponent of T, ε = 1", "exponent of c", "mean regret / bound, largest"
ORDER = "An order with an unspecified constant: slopes only."
LOGARITHM = 0.08  # the exponent of ln T between 10^5 and 10^6
OF_A_LOGARITHM = (
    "ln T has the exponent 0.08 at these T. A larger one contradicts no order of ln T, since a + b ln T with a < 0 "
    "has a larger one, too: sizes may be too small for the limit, and only longer runs would show it."
)
MEASURED = (
    "{learner} with randomized responses, steps tuned to their second moment, losses of two dimensions: exponent of T "
    "from 10^5 to 10^6, exponent of c = (e^ε + 1)/(e^ε - 1) from ε = 1 to 0.5 (near 2/ε), and mean regret over the "
    "bound with its constants. An order leaves out logarithms: exponents agree up to 0.07 and 0.1 above it"
)
NO_TEXT = (
    "{} is in an appendix that was not available here. The learner follows the papers that it builds on, and "
    "public implementations."
)
ALGORITHM_4, ALGORITHM_5, APPENDIX_B = (NO_TEXT.format(each) for each in ("Algorithm 4", "Algorithm 5", "This"))


def _line(number: str, name: str, learner: str, claim: str, rounds: float, privacy: float, why: str = "") -> Row:
    """Makes a line of Table 1."""
    return row(
        number,
        f"For {claim} regret is of the order {_power(rounds)}{_cost(privacy)}.",
        MEASURED.format(learner=learner),
        partial(measure.of_table_1, name=name),
        {RATE: _rate(rounds), COST: at_most(privacy + 0.1), BOUND: at_most(1)},
        why=f"{ORDER} {why}".strip(),
    )


def _rate(rounds: float) -> Rule:
    """Returns the exponents of T that agree, for every order by the same rule."""
    return at_most(round(rounds + 0.07, 3))


def _power(rounds: float) -> str:
    return {0.75: "T^(3/4)", 2 / 3: "T^(2/3)", 0.5: "sqrt(T)", LOGARITHM: "ln T"}[rounds]


def _cost(privacy: float) -> str:
    return "/ε" if privacy == 1 else "/ε²"


ROWS = (
    # ---- Table 1, context-free ---------------------------------------------------------------------------------------
    _line(
        "Table 1, convex",
        "convex",
        "fkm",
        "convex losses",
        0.75,
        1,
        "Not tight in ε: with tuned steps, the exponent of c is 1/2.",
    ),
    _line(
        "Table 1, convex and smooth; Cor. 4",
        "smooth",
        "barrier_smooth",
        "convex and smooth losses",
        2 / 3,
        1,
        "Not tight in ε: with tuned steps, the exponent of c is 2/3.",
    ),
    _line(
        "Table 1, strongly convex",
        "strongly_convex",
        "strongly_convex_one_point",
        "strongly convex losses",
        2 / 3,
        1,
        "Not tight in ε: with tuned steps, the exponent of c is 2/3.",
    ),
    _line(
        "Table 1, strongly convex and smooth; Cor. 4",
        "strongly_convex_smooth",
        "barrier_strongly_convex",
        "strongly convex and smooth losses",
        0.5,
        1,
    ),
    _line(
        "Table 1, two points, convex; Thm 6, eq. (3)",
        "two_point",
        "two_point",
        "convex losses at two points",
        0.5,
        2,
        "Not tight in ε: with tuned steps, the exponent of c is 1. The square comes from the published step 1/sqrt(T), "
        "which ignores the noise; so do two of the three powers of d. With a tuned step regret is at most "
        f"R d sqrt((G² + s²) T) + 4 G R. {ALGORITHM_4}",
    ),
    _line(
        "Table 1, two points, strongly convex; Thm 6, eq. (4)",
        "two_point_strongly_convex",
        "two_point",
        "strongly convex losses at two points",
        LOGARITHM,
        2,
        f"{OF_A_LOGARITHM} {ALGORITHM_4}",
    ),
    row(
        "Appendix B.1, stochastic arms",
        "A best-of-both-worlds black box on reports gives regret of the order ln T for stochastic arms.",
        "tsallis_inf on randomized responses, five arms, gap 0.25: the same measures (tuned: c²)",
        partial(measure.of_table_1, name="multi_armed_stochastic"),
        {RATE: _rate(LOGARITHM), COST: at_most(2.1), BOUND: at_most(1)},
        why=f"{ORDER} By the rule for all exponents, growth is too fast. {OF_A_LOGARITHM} The bound is for all "
        f"worlds, of the order sqrt(T). {APPENDIX_B} Sensitivity for losses in [0, 1] is 1, not 2B = 2.",
    ),
    row(
        "Appendix B.1, adversarial arms",
        "The same learner has regret of the order sqrt(T) in all worlds.",
        "tsallis_inf, five arms, ε = 1, at the gap 2 c sqrt(K/T) that is barely visible: exponent of T from 10^4 to "
        "10^5, and mean regret over c (4 sqrt(KT) + 1)",
        measure.adversarial_arms,
        {"exponent of T": at_most(0.55), "mean regret / bound, largest": at_most(1)},
        why=APPENDIX_B,
    ),
    row(
        "Appendix B.2, best arm",
        "Black boxes for the best arm run on reports.",
        "successive_elimination on randomized responses, two arms, gap 0.4: exponent of c in the rounds until it "
        "stops (tuned: c²), and the share of wrong answers of all runs, at failure_prob = 0.05",
        measure.best_arm,
        {"exponent of c in rounds": at_most(2.5), "share of wrong answers": at_most(0.05)},
        why=ORDER
        + " The logarithm of the rounds, which an order leaves out, adds about a quarter to the exponent here. "
        + APPENDIX_B,
    ),
    # ---- reductions and their privacy --------------------------------------------------------------------------------
    row(
        "Thm 1",
        "What follows from ε-LDP reports is ε-DP in the streaming setting.",
        why="This is post-processing; a simulation could add nothing.",
    ),
    row(
        "Thms 2, 5",
        "Algorithms 1 and 2 are (ε, δ)-LDP with σ = Δ sqrt(2 ln(1.25/δ))/ε.",
        "the exact δ that this σ spends, over the claimed δ, at ε = 0.9, δ = 10^-5 and at ε = 8, δ = 10^-3",
        measure.classical_noise,
        {"exact δ / claimed, ε = 0.9": at_most(1), "exact δ / claimed, ε = 8": at_most(1)},
        corrected="The analytic Gaussian mechanism is right at every ε, and needs less noise below ε = 1; randomized "
        "responses are pure, and have the smallest second moment.",
        corrected_rules={"exact δ / claimed, least σ, ε = 8": at_most(1)},
        why="The formula is proved only for ε < 1.",
    ),
    row(
        "Section 3.1, stochastic losses; footnote 5",
        "Algorithm 1 is private for losses f(x) + q with sub-Gaussian q.",
        "the exact ε of a report if losses are 10 B apart and the noise is for losses in [-B, B], over ε = 0.9",
        measure.unbounded_losses,
        {"exact ε / claimed, losses of sub-Gaussian noise, 10 B apart": at_most(1)},
        corrected="Users clip losses before they add noise.",
        corrected_rules={"exact ε / claimed, losses clipped to [-B, B]": at_most(1)},
    ),
    row(
        "Thm 3",
        "Regret on reports is the regret of the black box with B replaced by the order B ln(T/δ)/ε.",
        why="The rows above measure it. Its proof conditions on bounded noise; step sizes must use the range of the "
        "reports, and with the second moment in its place regret is smaller than in the theorem (exponents of c).",
    ),
    row(
        "Cor. 4, stochastic losses",
        "With the algorithm of Agarwal et al. (2011) for d dimensions regret is of the order sqrt(T)/ε.",
        why="Its constant is of the order d^16 and the algorithm is not in the library; its one-dimensional case is "
        "in the library (stochastic_1d), but is not a row of Table 1.",
    ),
    # ---- contextual --------------------------------------------------------------------------------------------------
    row(
        "Thm 7",
        "Algorithm 5 is (ε, δ)-LDP with σ = 6 sqrt(2 ln(2.5/δ))/ε on x x^T and y x.",
        "the exact ε of both releases as one Gaussian mechanism, for the two users that are farthest apart (by "
        "optimisation: x' = -x, y = y' = 2), over ε = 0.9; and a bound on it, which adds up the worst changes of each",
        measure.two_releases,
        {"exact ε / claimed, Alg. 5": at_most(1)},
        why="It holds with a margin: one joint release of L2 sensitivity sqrt(4.5) needs a quarter of the noise at ε "
        "= 1. " + ALGORITHM_5,
    ),
    row(
        "Thm 8; Table 1, linear",
        "Algorithm 5 has regret of the order (dT)^(3/4)/ε.",
        "linear_ucb with Gaussian reports and tight constants, d = 5, 20 arms: exponent of T from 5,000 to 50,000, "
        "and of 1/ε from ε = 1 to 0.5",
        partial(measure.contextual_orders, name="linear"),
        {"exponent of T, ε = 1": at_most(0.85, refutes=False)},
        why=f"{ORDER} After 50,000 rounds the learner still explores much of the time, as the ratio to the regret of "
        "uniform play shows: exponents say little, and the exponent of 1/ε, which is 0 for uniform play, could "
        "not exceed 1. "
        "Noise enters by its root: in the limit the exponent of 1/ε is 1/2, so that the claim is not tight. "
        + ALGORITHM_5,
    ),
    row(
        "Thm 8, published radius",
        "The same, with the published β_t and c_t.",
        'the same with constants="paper": regret over the regret of uniform play after 50,000 rounds, ε = 1',
        partial(measure.contextual_orders, name="published"),
        {"regret / uniform play's, ε = 1": at_most(0.9, refutes=False)},
        why="It explores all along: its radius is some 80 times the one that can be proved. Regret of uniform play at "
        f"these T contradicts no order, whose constant is not given. {ALGORITHM_5}",
    ),
    row(
        "Section 4.1, LDP and joint DP",
        "Joint DP has regret of the order sqrt(T), local DP of T^(3/4).",
        "linear_ucb_joint against linear_ucb on the same contexts, ε = 1: the exponent of T from 5,000 to 50,000 of "
        "joint regret, and this exponent minus the local one; and joint regret over local regret after 50,000 rounds",
        measure.joint_against_local,
        {
            "exponent of T, joint": at_most(0.57, refutes=False),
            "exponent of T, joint less local": at_most(-0.18, refutes=False),
        },
        why=f"{ORDER} That joint privacy costs less after so many rounds says nothing about the two orders, and local "
        f"exponents are of a learner that still explores much of the time (Theorem 8). {ALGORITHM_5}",
    ),
    row(
        "Thm 9",
        "Algorithm 3 is (ε, δ)-LDP for every link |g| <= C, with noise C σ on gradients |∇| <= C.",
        "the exact ε of the three releases as one Gaussian mechanism, for links |g| <= C = 0.4, over ε = 0.9: for the "
        "two users and the link that are farthest apart (by optimisation: x' = -x and gradients of 2 C + 1, a limit of "
        "steep links)",
        measure.three_releases,
        {"exact ε / claimed, C = 0.4": at_most(1)},
        corrected="Gradients |g(x.θ) - y| can be 2 C + 1, so the noise must be (2 C + 1) σ.",
        corrected_rules={"exact ε / claimed, noise for 2 C + 1": at_most(1)},
        why="The noise would be right for gradients of norm C. At larger C, such as 1/2, the claim holds at this ε "
        "and δ all "
        "the same, by the slack of classical calibration, and since not all three releases are at their worst at once: "
        "adding up their worst changes gives only a bound. It holds for the logistic link and rewards in [0, 1], too, "
        "whose gradients are at most C = 1.",
    ),
    row(
        "Alg. 3, line 11",
        "V is shifted by c_t I in every round.",
        "the mean of the model in directions that are looked at evenly, over θ*, T = 10^10, d = 5, ε = 0.9",
        measure.accumulated_shift,
        {"E θ / θ*, shifts added up": at_least(0.5)},
        corrected="V_t = Σ (x x^T + B) + c_t I, with only the last shift.",
        corrected_rules={"E θ / θ*, the last shift alone": at_least(0.5)},
    ),
    row(
        "Thm 10; Table 1, generalized linear",
        "Algorithm 3 has regret of the order (dT)^(3/4)/ε.",
        "generalized_linear, logistic link, d = 5, 20 arms: exponent of T from 5,000 to 50,000 at ε = 2, and of 1/ε "
        "from ε = 2 to 1",
        partial(measure.contextual_orders, name="generalized"),
        {"exponent of T, ε = 2": at_most(0.85, refutes=False)},
        why=ORDER
        + " The radius that can be proved is so large at these T that the learner still explores much of the time, as "
        "the ratio to the regret of uniform play shows: exponents say little, and the exponent of 1/ε, which is 0 "
        "for uniform "
        "play, could not exceed 1.",
    ),
    row(
        "Table 1, best non-private regret; Ω(T) of DP contextual bandits",
        "These are orders of other papers.",
        why="They are quoted. Every learner here runs at ε = ∞, see the studies ldp-bandits and ldp-linear.",
    ),
)
