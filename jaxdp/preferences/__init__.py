"""Preferences between two or more items: links, samplers, synthetic data, and users' comparisons and ballots."""

from jaxdp.preferences.ballots import Ballots, pair_features
from jaxdp.preferences.choices import ChoiceData, gaussian_choices
from jaxdp.preferences.data import RewardData, clip_norm, differential_features, gaussian_comparisons
from jaxdp.preferences.links import Link, link, logistic, probit
from jaxdp.preferences.models import sample_choices, sample_comparisons, sample_rankings
from jaxdp.preferences.preflib import read_ballots, write_ballots
from jaxdp.preferences.tables import ComparisonTable, baseball1987, read_comparisons

__all__ = [
    "Ballots",
    "ChoiceData",
    "ComparisonTable",
    "Link",
    "RewardData",
    "baseball1987",
    "clip_norm",
    "differential_features",
    "gaussian_choices",
    "gaussian_comparisons",
    "link",
    "logistic",
    "pair_features",
    "probit",
    "read_ballots",
    "read_comparisons",
    "sample_choices",
    "sample_comparisons",
    "sample_rankings",
    "write_ballots",
]
