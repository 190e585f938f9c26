"""Preferences between items: links, samplers, synthetic reward data, and users' comparisons and ballots."""

from jaxdp.preferences.ballots import Ballots, pair_features
from jaxdp.preferences.data import RewardData, clip_norm, differential_features, gaussian_comparisons
from jaxdp.preferences.links import Link, link, logistic, probit
from jaxdp.preferences.models import sample_comparisons
from jaxdp.preferences.preflib import read_ballots, write_ballots
from jaxdp.preferences.tables import ComparisonTable, baseball1987, read_comparisons

__all__ = [
    "Ballots",
    "ComparisonTable",
    "Link",
    "RewardData",
    "baseball1987",
    "clip_norm",
    "differential_features",
    "gaussian_comparisons",
    "link",
    "logistic",
    "pair_features",
    "probit",
    "read_ballots",
    "read_comparisons",
    "sample_comparisons",
    "write_ballots",
]
