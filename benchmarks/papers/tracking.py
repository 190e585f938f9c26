"""Tracking (Asi, Raman & Saha, 2025), statement by statement."""

from functools import partial

from benchmarks.papers import tracking_measures as measure
from benchmarks.papers.rows import at_least, at_most, between, row

ORDER = "An order with an unspecified constant: slopes only."
SETTING = "N = 10, S = 3, T = 2,000 and 20,000"

ROWS = (
    row(
        "Table 1",
        "Dynamic regret grows like sqrt(T) or less, privacy included, against shifting and oblivious adversaries.",
        f"the exponent of T of counter_weights, a learner of this library, ε = 4, {SETTING}",
        measure.of_table_1,
        {f"exponent of T, {kind}": at_most(0.6) for kind in ("shifting", "oblivious")},
        why=ORDER + " Each line of the table, including the line of adversaries who react, is a theorem below.",
    ),
    # ---- tools -------------------------------------------------------------------------------------------------------
    row(
        "Lemmas 2.3, 2.4",
        "Report-noisy-max and AboveThreshold are ε-DP.",
        "the exact ε of the distributions of noisy max with Laplace noise, of the sparse vector technique and of "
        "Algorithm 1 "
        "on tiny inputs, over the claims",
        measure.selections_spend,
        {
            f"exact ε / claimed, {name}": at_most(1)
            for name in ("noisy_max_laplace", "above_threshold", "limited_updates")
        },
    ),
    # ---- shifting stochastic adversaries -----------------------------------------------------------------------------
    row(
        "Alg. 1, line 4",
        "In each block the arg max of the noisy sums of losses plays.",
        "the exponent of T of its regret from 2,000 to 20,000, ε = 1; losses of one distribution, N = 10, one "
        "expert better "
        "by 0.2",
        measure.selection,
        {"exponent of T, arg max": at_most(0.5)},
        corrected="The arg min plays, as the proof has it.",
        corrected_rules={"exponent of T, arg min": at_most(0.5)},
    ),
    row(
        "Thm 3.1",
        "For losses of one distribution the regret on a window of w rounds is at most 16 ln(NT/β)/ε + 9 sqrt(w "
        "ln(TN/β)), with "
        "probability 1 - β.",
        "the share of runs within the bound (w = T = 2,000 and 20,000, ε = 0.1 and 1, β = 0.05), the worst of four; "
        "and the mean "
        "regret over the bound",
        measure.windows,
        {"share of runs within": at_least(0.95), "largest mean / bound": at_most(1)},
        why="The row could hardly have differed: the bound is loose by a factor of 25 or more, and only the window "
        "of all rounds is measured (pseudo-regret). The proof (Lemmas 3.3, A.2) has a factor ln T in the first term, "
        "which is missing in the theorem; with so loose a bound this cannot be seen.",
    ),
    row(
        "Lemma 3.4",
        "Algorithm 2 restarts without a shift of the distribution with probability 2β at most.",
        "the share of runs of svt_restarts with a restart, losses of one distribution, T = 5,000, ε = 1; its "
        "failure_prob is "
        "the chance of any restart in all rounds, and so 2β: 0.05, β = 0.025",
        measure.false_restarts,
        {"share of runs with a restart": at_most(0.05)},
        why="With this library's thresholds, which have the factor ln T and constants of their own: the printed "
        "thresholds were not measured. The row could hardly have differed: thresholds that can be proved are far "
        "above chance.",
    ),
    row(
        "Alg. 2, sensitivity",
        "The regret of a window has sensitivity 1, so that AboveThreshold at ε/2 with noise for 1 spends ε/2.",
        "by how much one loss vector moves the regret of ten rounds; the exact ε that AboveThreshold spends where 200 "
        "questions move by 2 and one does not, over its half of the budget",
        measure.questions,
        {"change of a window's regret": at_most(1), "exact ε / its half, noise for 1": at_most(1)},
        corrected="The sensitivity is 2: a loss vector moves one summand from -1 to 1. Noise for 2.",
        corrected_rules={"change of a window's regret": at_most(2), "exact ε / its half, noise for 2": at_most(1)},
    ),
    row(
        "Alg. 2, line 11",
        'After an answer "above" the next epoch begins with the same round, t_(i+1) = t, and each loss vector costs '
        "the selections ε/2.",
        "the exact ε of two selections whose sums both have the loss vector, over ε/2 (N = 4)",
        measure.restart_reuse,
        {"exact ε of selections / (ε/2), as printed": at_most(1)},
        corrected="The next epoch begins with round t + 1: each loss vector is in one selection.",
        corrected_rules={"exact ε of selections / (ε/2), from t + 1": at_most(1)},
        why="Where round t ends a block, its losses are in the old epoch's selection and again in the new one's first.",
    ),
    row(
        "Thm 3.6",
        "Algorithm 2 has expected dynamic regret of the order sqrt(ST ln(NT)) + S ln(NT)/ε.",
        f"svt_restarts against losses with a shifting distribution, gap 0.3: the exponent of T, ε = 4, {SETTING}",
        partial(measure.grows, learner="svt_restarts", adversary="shifting"),
        {"exponent of T, ε = 4": at_most(0.6, refutes=False)},
        why=ORDER
        + " At these horizons restarts come late: thresholds that can be proved wait for much regret (the docstring "
        "of svt_restarts has measured delays). An order says nothing before its limit.",
    ),
    row(
        "Section 3.2, lower bound",
        "Every private learner has dynamic regret of the order sqrt(ST ln N) + S ln(N/S)/ε against some shifting "
        "adversary.",
        "counter_weights against losses with a gap of sqrt((S + 1) ln N / T) that is barely visible in a phase: the "
        "exponent of "
        f"T, ε = 4, {SETTING}",
        partial(measure.grows, learner="counter_weights", adversary="lower_bound", num_seeds=48),
        {"exponent of T, ε = 4": at_least(0.4)},
        why=ORDER + " No constant can be contradicted; a regret that grows more slowly than this would be.",
    ),
    # ---- oblivious adversaries ---------------------------------------------------------------------------------------
    row(
        "Thm 4.1",
        "A static learner on all sequences of S switches is as private, and has its static regret as dynamic regret.",
        "lazy_weights on the class of all such sequences, by exact recursions: the exact budget of its transcript on "
        "a tiny world, over the claim; the largest mean regret over the bound that is proved for the class "
        f"({SETTING})",
        measure.reduction,
        {"exact budget / claimed": at_most(1), "regret / proved bound, largest": at_most(1)},
    ),
    row(
        "Thm 4.1, size of the class",
        "The class of sequences has at most (NT)^(2S) members.",
        "ln of its size less 2 S ln(NT) at S = 0, T = 1,000, N = 10",
        measure.class_size,
        {"ln of the class less 2 S ln(NT), S = 0": at_most(0)},
        corrected="It holds for S >= 1; the exact size is Σ_c C(T-1, c) N (N-1)^c. The proof's t_0 is 0, not 1.",
        corrected_rules={"ln of the class less 2 S ln(NT), S = 3": at_most(0)},
    ),
    row(
        "Prop. 1, Cor. 4.1.1",
        "A private learner has dynamic regret of the order sqrt(ST ln(NT)) + S T^(1/3) ln(T/δ) ln(NT)/ε^(2/3).",
        "the term that privacy adds to the bound that this library can prove for lazy_weights (S = 0, N = 10): "
        "exponents of T "
        "from 10^7 to 10^9 at ε = 0.003, where it is most of the bound, and of ε from 0.003 to 0.03 at T = 10^9",
        measure.proved_orders,
        {"exponent of T, what privacy adds": at_most(1 / 3 + 0.03), "exponent of ε": at_least(-2 / 3 - 0.03)},
        why="Proposition 1 is quoted from another paper, and no proof of its rate could be reproduced here: what can "
        "be proved for this algorithm is min(T^(1/3)/ε, T^(2/5)/ε^(3/5)), an upper bound. That it is larger than the "
        "claim refutes nothing.",
    ),
    row(
        "Cor. 4.1.1, measured",
        "The same.",
        f"lazy_weights against losses fixed in advance, gap 0.3: the exponent of T, ε = 4, {SETTING}",
        partial(measure.grows, learner="lazy_weights", adversary="shifting"),
        {"exponent of T, ε = 4": at_most(0.6)},
        why=ORDER,
    ),
    # ---- adaptive adversaries ----------------------------------------------------------------------------------------
    row(
        "Thm 5.1",
        "Against some adversary who reacts, regret is of the order min(T, S/(ε ln(T/(S+1)))²): linear for ε <= "
        "sqrt(S/T).",
        f"two learners at ε = sqrt(S/T)/10 against punish_repeats: the exponent of T, {SETTING}",
        measure.punished,
        {"exponent of T, lazy_weights": at_least(0.9), "exponent of T, mirror_descent": at_least(0.9)},
        why="An order, for N >= 2T/S and δ <= (S+1)³/T³, which these runs do not satisfy, and for the worst "
        "adversary. The row shows linear regret of these learners, and confirms no threshold.",
    ),
    row(
        "Prop. 2",
        "The same for static regret, by another paper.",
        why="Quoted, and the case S = 0 of Theorem 5.1.",
    ),
    row(
        "Alg. 3, Thm 5.2, privacy",
        "With Laplace(1/ε) noise on each of N losses Algorithm 3 is ε-DP.",
        "the cost of one loss vector's releases, over the claim, N = 4 (grey box)",
        measure.published_noise,
        {"ε of a loss vector's releases / claimed, N = 4": at_most(1)},
        corrected="The L1 sensitivity of a loss vector is N: it is Nε-DP. mirror_descent draws plays from weights at "
        "a rate that the budget pays for, without noise on losses.",
        corrected_rules={
            "faults found in the corrected form": at_most(0),
            "claimed (ε at δ) of the corrected form / ε": at_most(1),
        },
    ),
    row(
        "Alg. 3, Thm 5.2, its plays alone",
        "The plays are ε-DP.",
        "the log ratio of the chances that all plays of 100 rounds avoid one half of 2,000 experts, under two first "
        "loss vectors, over ε = 0.5",
        measure.plays_of_the_published_form,
        {"log ratio / ε": at_most(1)},
        why="Hiding the noisy losses does not repair the claim.",
    ),
    row(
        "Thm 5.2, utility",
        "Algorithm 3 has dynamic regret of the order sqrt(ST) ln(NT)^1.5/ε + S ln(NT)/ε against adversaries who react.",
        "the corrected form with intervals, which has this order, against shifting losses: the exponent of T, ε = 4, "
        f"{SETTING}",
        partial(measure.grows, learner="mirror_descent_intervals", adversary="shifting"),
        {"exponent of T, ε = 4": at_most(0.6, refutes=False)},
        why=ORDER
        + " At these horizons the noise is larger than what can be learned: regret is near the regret of uniform "
        "play, 0.27 "
        "T. An order says nothing before its limit.",
    ),
    row(
        "Thm B.1, as used for Thm 5.2",
        "Regret against losses that react is the same as against losses fixed in advance.",
        "noisy losses, N = 8, ε = 4, T = 5,000, an adversary who raises the mean loss of the last play by 0.3: mean "
        "regret over the bound for losses fixed in advance",
        measure.adversaries_that_react,
        {"regret / oblivious bound": between(0, 1)},
        why="The theorem does not apply, because the plays reveal the hidden noise; this adversary is too simple to "
        "use that, so an agreement here is no proof.",
    ),
)
