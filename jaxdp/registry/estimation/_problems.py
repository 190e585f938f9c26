"""Sizes, papers and defaults of several estimators."""

from functools import partial

from jaxdp.registry.entries import EstimatorEntry

SAMPLES = {"num_samples": 60, "dim": 3}
CHOSEN = {"num_samples": 60, "num_actions": 4, "dim": 3}
DP_REWARD = "Chowdhury, Zhou & Natarajan (2023)"
HARDT = "Hardt & Talwar (2010)"

estimator_entry = partial(EstimatorEntry, family="estimation", proof="proved")
