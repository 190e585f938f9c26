"""DP-Dueling (Saha & Asi, 2024), statement by statement."""

# ruff: noqa: RUF001  (symbols of the papers are meant)

from benchmarks.papers import dp_dueling_measures as measure
from benchmarks.papers.rows import at_least, at_most, between, row

ORDER = "An order with an unspecified constant: slopes only."

ROWS = (
    # ---- finitely many arms ------------------------------------------------------------------------------------------
    row(
        "Lemma 1",
        "The binary tree counter errs at any one time by at most 4 ln(1/δ) ln(T)^2.5 / ε, with probability 1 - δ.",
        "Chernoff's bound on the exact sum of noises at the time with the most noises, over the printed bound, δ = "
        "0.05",
        measure.tree_error,
        {f"error / printed, T = {t}": at_most(1) for t in ("1,024", "1,048,576")},
        why="The row could hardly have differed: the bound is loose by a factor of 10 to 23 here. Below a horizon of "
        "about 16 it may be too small.",
    ),
    row(
        "Thm 1",
        "DP-EBS has regret of at most Σ_i [16 ln(KT)/Δ(1, i) + 128 ln(KT) ln(T)^2.5/ε] (constants of its proof).",
        "mean regret of ebs_elimination over this bound, three arms of utilities 2, 1, 0, T = 20,000 and 200,000, ε "
        "= 0.3, 1 "
        "and ∞: the largest",
        measure.upper_bound,
        {"mean regret / bound, largest": at_most(1)},
        why="The constants are not proved: the proof leaves out plays as the right arm and the best arm's own "
        "interval (Lemma 6: 64 in place of 8), and takes r <= 2Δ (below). They are just large enough here, at ε = ∞.",
    ),
    row(
        "Alg. 1, feeding of counters",
        "A counter is fed if the left arm wins, and the whole algorithm is ε-DP (Lemma 2).",
        "the lower bound on ε of a black-box audit that sees counters fed in this way, over the claim ε = 1: four "
        "duels, the "
        "first won or lost",
        measure.fed_upon_wins,
        {"lower bound on ε / claimed, fed upon wins": at_most(1)},
        corrected="Counters are fed in every duel of their arm, with a 0 for a loss: their clocks are public.",
        corrected_rules={"ε spent / claimed, always fed": at_most(1)},
        why="How often a counter was fed reveals who won. The corrected form was audited by a grey box.",
    ),
    row(
        "Alg. 1, removals",
        "When an arm is dropped, -1 is added to the others' counters, and scores stay unbiased (Lemma 3, Cor. 1).",
        "the expected score of the best of three arms (utilities 2, 0, -1) after the worst is dropped, minus its "
        "effective Borda score among the two that are left; 3,000 duels",
        measure.removal,
        {"score - effective Borda score, -1 added": between(0, 0)},
        corrected="The wins over the dropped arm are removed.",
        corrected_rules={"score - effective Borda score, wins removed": between(0, 0)},
    ),
    row(
        "Alg. 1, width of intervals",
        "16 ln(ln(K/δ)) ln(T)^2.5/(ε n) covers the noise of all arms and rounds with probability 1 - δ (Lemma 4).",
        "this width over the width that Chernoff's bound needs at δ/(KT), K = 2, T = 1,000, δ = 1/2, counters of ε/4",
        measure.printed_width,
        {"width with log(log(K/δ)) / needed": at_least(1)},
        corrected="ln(KT/δ) in place of ln(ln(K/δ)), as a union bound over rounds gives.",
        corrected_rules={"width with log(KT/δ) / needed": at_least(1)},
        why="An upper bound is needed, too, so a ratio below 1 shows that the printed width is not proved, by "
        "the best bound known here.",
    ),
    row(
        "Lemma 5",
        "With valid intervals the best arm is never dropped.",
        "the share of runs of Theorem 1's row that keep the best arm, the least over ε (failure_prob = 0.05)",
        measure.best_arm,
        {"share of runs that keep it": at_least(0.95)},
    ),
    row(
        "Property (1), (2) of effective Borda scores",
        "B(best) - B(worst) >= Δ, and B(j) - B(worst) <= Δ for all other arms j, Δ the gap of the best and the worst.",
        "both differences over Δ for utilities 2, 1.99, twenty times 1, and 0",
        measure.borda_properties,
        {"(B(best) - B(worst)) / Δ": at_least(1), "(B(second) - B(worst)) / Δ": at_most(1)},
        corrected="B(j) - B(worst) <= 2Δ, as the appendix has it.",
        corrected_rules={"(B(second) - B(worst)) / Δ": at_most(2)},
    ),
    row(
        "Proof of Thm 1, utilities",
        "r(x_1) - r(x_i) <= 2 Δ(1, i).",
        "the largest r/(2Δ) of the logistic link for r up to 2",
        measure.utility_gaps,
        {"r / (2 Δ), largest": at_most(1)},
        corrected="r <= Δ r_max/(σ(r_max) - 1/2), 5.3 Δ at r_max = 2; at least 4 Δ always.",
        corrected_rules={"r / (r_max/(σ(r_max) - 1/2) Δ), largest": at_most(1)},
    ),
    row(
        "Remark 3",
        "The algorithm extends to the local and the shuffle model; local privacy costs more.",
        "regret of the local form over the regret of the central (phased) and of the shuffled one, ε = 1, δ = "
        "10^-6, four "
        "arms, utilities 1.5 to -1.5, T = 40,000",
        measure.trust,
        {"regret local / central": at_least(1), "regret local / shuffle": at_least(1)},
    ),
    # ---- lower bound -------------------------------------------------------------------------------------------------
    row(
        "Thm 2, Remark 2",
        "Every private algorithm has regret of the order Σ_i ln T/Δ(1, i) + K/ε on some instance.",
        "ebs_phased on the instance of the proof, K = 5, T = 10^9: exponent of 1/ε between ε = 0.0001 and 0.001",
        measure.lower_bound_order,
        {"exponent of 1/ε": at_least(0.9)},
        why=ORDER + " No constant can be contradicted; a regret that grows more slowly than 1/ε would be.",
    ),
    row(
        "Lemma 11",
        "Every private algorithm of small regret plays every arm at least 1/ε times in expectation.",
        "the least product of ε and the mean number of plays of a losing arm, in the same runs at ε = 0.1 and 1",
        measure.lower_bound_order,
        {"ε × plays of a losing arm, least": at_least(1)},
        why="One algorithm cannot show a property of all. It could have contradicted the lemma, but hardly here, "
        "where it plays losing arms hundreds of times as often as in the bound.",
    ),
    # ---- arms with features ------------------------------------------------------------------------------------------
    row(
        "Remark 1",
        "The unit ball has an ε-net of at most (3/ε)^d + d points.",
        "points of this library's nets at ε = 1/4 over this number",
        measure.net_size,
        {f"points / bound, d = {d}": at_most(1) for d in (2, 3)},
        why="Loose by a factor of 4 in two dimensions and of 6 in three, for these nets.",
    ),
    row(
        "Kiefer-Wolfowitz theorem",
        "An optimal design has max |z|²_(V^-1) = d, on at most d(d + 1)/2 points.",
        "the certificate of the design of 200 normal points in 6 dimensions over d, and its support over d(d + 1)/2",
        measure.optimal_designs,
        {"max |z|² / d": at_most(1.01), "support / (d (d + 1) / 2)": at_most(1)},
        why="The row could not have differed: this is a theorem, and the numbers only check the library's solver.",
    ),
    row(
        "Thm 3",
        "Alg. 2 has regret of the order d^6 ln(dT/δ) ln(Tκ²/d)/(κε) + d sqrt(T) ln(T/δ)/κ.",
        "the corrected algorithm, 20 arms on the circle, counts: exponent of T from 10^6 to 10^8 at ε = ∞, where the "
        "best arm leads by 40/sqrt(T), chosen after 20/sqrt(T) had given the exponent 0.357; and of 1/ε "
        "between 0.001 and 0.01, at a gap of 0.16 and T = 10^8",
        measure.linear_order,
        {"exponent of T, no privacy": at_most(0.6), "exponent of 1/ε": at_most(1.1)},
        why=ORDER + " At a fixed gap regret stops growing once one arm is left, so its exponent says nothing."
        " d^6 can be d^3, since the error of the model is bounded in all directions at once; κ = σ'(2) = 0.105 with "
        "an estimate on the ball, in place of σ'(4) = 0.018.",
    ),
    row(
        "Lemmas 9, 10",
        "The best arm stays in every phase with high probability.",
        "the share of runs of Theorem 3's row that name the best arm, ε = 1 (failure_prob = 0.05)",
        measure.best_of_linear,
        {"share of runs with the best arm": at_least(0.95)},
    ),
    row(
        "Eq. (12), in Lemmas 7 and 8",
        "A design of differences bounds |x|² of single arms by d, too.",
        "the largest |x|²_(V^-1) over seven arms close together on the circle, over d",
        measure.bound_on_arms,
        {"max |x|² / d over arms": at_most(1)},
        corrected="It bounds differences, which is sufficient: keep x if max_y w^.(y - x) <= ξ.",
        corrected_rules={"max |x - y|² / d over differences": at_most(1.01)},
    ),
    row(
        "Remark 4",
        "For ε above the order d^5/sqrt(T), 0.003 here, the private term is the smaller one: privacy is for free.",
        "the ε at which privacy adds as much regret as the non-private regret, over d^5/sqrt(T), by interpolation in "
        "ln ε; and the added regret at several ε, as shares of the non-private regret; T = 10^8, d = 2",
        measure.free_privacy,
        {"crossing ε / (d^5/sqrt(T))": at_most(1, refutes=False)},
        why="An order with an unspecified constant, for the worst instance at each T. This instance, with its fixed "
        "gap, is another one: from 100,000 rounds on only the best arm is left and neither term grows, so the "
        "crossing stays "
        "where it is while d^5/sqrt(T) falls.",
    ),
    row(
        "Alg. 2, other errata",
        "V_l <= (N_1 + N_2) V(π); exploration duels of t_0 rounds; eigenvalues of V(π_1) from the unit sphere.",
        why="Signs and sums of a proof: the corrected algorithm has no exploration rounds and needs no eigenvalue, "
        "see the docstring of g_optimal_elimination.",
    ),
    row(
        "Lemmas 6, 7, 8",
        "Numbers of plays and errors of the model under the event that intervals hold.",
        why="These are steps of the two theorems, which are measured as a whole.",
    ),
)
