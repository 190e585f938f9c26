"""Sizes and papers of several estimators."""

SAMPLES = {"num_samples": 60, "dim": 3}
CHOSEN = {"num_samples": 60, "num_actions": 4, "dim": 3}
DP_REWARD = "Chowdhury, Zhou & Natarajan (2023)"
HARDT = "Hardt & Talwar (2010), section 3"
