"""Preferences between items: links, samplers, synthetic data, and readers of comparisons, pairs and ballots."""

from jaxdp.preferences.ballots import Ballots, pair_features
from jaxdp.preferences.choices import ChoiceData, gaussian_choices
from jaxdp.preferences.connected import comparison_groups
from jaxdp.preferences.data import RewardData, clip_norm, differential_features, gaussian_comparisons
from jaxdp.preferences.links import Link, link, logistic, probit
from jaxdp.preferences.matrices import (
    borda_gaps,
    borda_scores,
    check_preferences,
    condorcet_winner,
    copeland_winners,
    cyclic_matrix,
    effective_borda_scores,
    is_sst,
    is_sti,
    lower_bound_matrix,
    preference_gaps,
    utility_matrix,
)
from jaxdp.preferences.models import sample_choices, sample_comparisons, sample_rankings
from jaxdp.preferences.pair_files import read_pairs
from jaxdp.preferences.pairs import Pairs, pairs_from_chosen_rejected
from jaxdp.preferences.persons import limit_per_person
from jaxdp.preferences.preflib import read_ballots, write_ballots
from jaxdp.preferences.reports import PrivateLabels, debiased_loss, private_labels, to_jsonl
from jaxdp.preferences.tables import ComparisonTable, baseball1987, read_comparisons

__all__ = [
    "Ballots",
    "ChoiceData",
    "ComparisonTable",
    "Link",
    "Pairs",
    "PrivateLabels",
    "RewardData",
    "baseball1987",
    "borda_gaps",
    "borda_scores",
    "check_preferences",
    "clip_norm",
    "comparison_groups",
    "condorcet_winner",
    "copeland_winners",
    "cyclic_matrix",
    "debiased_loss",
    "differential_features",
    "effective_borda_scores",
    "gaussian_choices",
    "gaussian_comparisons",
    "is_sst",
    "is_sti",
    "limit_per_person",
    "link",
    "logistic",
    "lower_bound_matrix",
    "pair_features",
    "pairs_from_chosen_rejected",
    "preference_gaps",
    "private_labels",
    "probit",
    "read_ballots",
    "read_comparisons",
    "read_pairs",
    "sample_choices",
    "sample_comparisons",
    "sample_rankings",
    "to_jsonl",
    "utility_matrix",
    "write_ballots",
]
