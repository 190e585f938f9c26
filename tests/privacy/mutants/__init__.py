"""A zoo of known mistakes: every one must be flagged, and its correct twin must not."""

from tests.privacy.mutants.ballots import (
    every_pair_at_the_whole_budget,
    noise_for_one_pair,
    only_pairs_that_were_ranked,
)
from tests.privacy.mutants.best_arm import (
    counts_of_rewards_at_twice_epsilon,
    losses_of_a_barrier_unclipped,
    rewards_at_half_their_interval,
)
from tests.privacy.mutants.contextual import (
    chosen_action_in_the_report,
    context_unclipped,
    reward_unclipped,
    rewards_without_noise,
)
from tests.privacy.mutants.contextual_joint import cross_without_noise
from tests.privacy.mutants.convex import (
    gaussian_without_its_root_of_2,
    loss_unclipped,
    losses_at_twice_epsilon,
    same_noise_for_both_points,
)
from tests.privacy.mutants.counters import (
    counter_at_the_noise_of_one_level,
    counter_at_twice_epsilon,
    little_noise_in_blocks_of_four,
    little_noise_in_blocks_of_sixteen,
)
from tests.privacy.mutants.dueling import (
    counters_at_half_their_noise,
    counters_fed_upon_wins,
    node_noise_reused,
    responses_at_twice_epsilon,
    unnoised_elimination,
)
from tests.privacy.mutants.estimators import (
    a_tenth_of_the_noise_for_records,
    half_the_choice_statistic,
    thurstone_at_twice_epsilon,
    wrong_k_ary_response,
)
from tests.privacy.mutants.generalized import gradients_with_noise_for_the_mean_alone, residual_unclipped
from tests.privacy.mutants.learners import (
    block_released_twice,
    reused_coin,
    reused_key,
    unclipped_report,
    unnoised_choice,
)
from tests.privacy.mutants.linear_duels import phase_counts_at_twice_epsilon, phase_counts_without_noise
from tests.privacy.mutants.moments import noise_drawn_for_both_halves
from tests.privacy.mutants.noise import (
    classical_gaussian,
    half_the_objective_perturbation,
    small_laplace,
    wrong_randomized_response,
)
from tests.privacy.mutants.selection import argmin_plus_exponential, half_the_sensitivity, large_counts_as_floats
from tests.privacy.mutants.shuffled_duels import (
    batches_claimed_as_twice_as_large,
    reports_claimed_as_shuffled,
    shuffler_that_keeps_the_order,
)
from tests.privacy.mutants.sparse_vector import variant_3, variant_4, variant_5, variant_6
from tests.privacy.mutants.weights import (
    cut_after_the_labels,
    cut_on_the_sum,
    gamma_of_one_dimension_less,
    weights_from_labels,
)

ZOO = {
    "randomized response at the wrong probability": wrong_randomized_response,
    "Laplace at 0.8 of its scale": small_laplace,
    "classical Gaussian at epsilon 8": classical_gaussian,
    "noisy max on scores of sensitivity 2": half_the_sensitivity,
    "large counts as floats before their noise": large_counts_as_floats,
    "argmin of score plus exponential": argmin_plus_exponential,
    "sparse vector, variant 3": variant_3,
    "sparse vector, variant 4": variant_4,
    "sparse vector, variant 5": variant_5,
    "sparse vector, variant 6": variant_6,
    "objective perturbation at half its noise": half_the_objective_perturbation,
    "a ballot at the noise of one pair": noise_for_one_pair,
    "a ballot's pairs at the whole budget each": every_pair_at_the_whole_budget,
    "a ballot that answers only about pairs it ranks": only_pairs_that_were_ranked,
    "K-ary randomized response with the probability for K = 2": wrong_k_ary_response,
    "Thurstone's model at twice epsilon": thurstone_at_twice_epsilon,
    "choices' statistic at half its noise": half_the_choice_statistic,
    "a continual counter at twice epsilon": counter_at_twice_epsilon,
    "a continual counter at the noise of one level": counter_at_the_noise_of_one_level,
    "a Gaussian tree of four entries with little noise in inner blocks": little_noise_in_blocks_of_four,
    "a Gaussian tree of sixteen entries with little noise in inner blocks": little_noise_in_blocks_of_sixteen,
    "objective perturbation for records at a tenth of its noise": a_tenth_of_the_noise_for_records,
    "a learner that commits to the exact best arm": unnoised_choice,
    "a learner that uses its round's key twice": reused_key,
    "a local report that forgets to clip": unclipped_report,
    "a coin reused within a round": reused_coin,
    "a block of rewards released twice": block_released_twice,
    "elimination by exact shares of wins": unnoised_elimination,
    "counters of duels at half their noise": counters_at_half_their_noise,
    "counters of duels fed upon wins only": counters_fed_upon_wins,
    "the noise of a node reused in every node": node_noise_reused,
    "outcomes of duels reported at twice epsilon": responses_at_twice_epsilon,
    "a loss reported without a clip": loss_unclipped,
    "a Gaussian report without its root of 2": gaussian_without_its_root_of_2,
    "the same noise for both points": same_noise_for_both_points,
    "losses reported at twice epsilon": losses_at_twice_epsilon,
    "weights that depend on labels": weights_from_labels,
    "a cut chosen after the labels are seen": cut_after_the_labels,
    "a cut on the norm of the sum": cut_on_the_sum,
    "K-norm noise of one dimension less": gamma_of_one_dimension_less,
    "counts of rewards at twice epsilon": counts_of_rewards_at_twice_epsilon,
    "rewards with noise for half their interval": rewards_at_half_their_interval,
    "losses within a barrier that are not clipped": losses_of_a_barrier_unclipped,
    "noise drawn for both halves of a symmetric matrix": noise_drawn_for_both_halves,
    "a contextual reward that is not clipped": reward_unclipped,
    "a context that is not scaled down": context_unclipped,
    "the chosen action beside the report": chosen_action_in_the_report,
    "contexts noised and rewards not": rewards_without_noise,
    "gradients with noise for C in place of 2 C + 1": gradients_with_noise_for_the_mean_alone,
    "a residual that is not clipped": residual_unclipped,
    "contexts counted with noise and rewards without": cross_without_noise,
    "elimination by models of exact counts": phase_counts_without_noise,
    "counts of a phase at twice epsilon": phase_counts_at_twice_epsilon,
    "shuffled batches claimed as twice as large": batches_claimed_as_twice_as_large,
    "reports that are not shuffled claimed as a batch": reports_claimed_as_shuffled,
    "a shuffler of duels that keeps the order": shuffler_that_keeps_the_order,
}
