"""Contract checks: what every mechanism, learner and estimator must do. Each raises AssertionError."""

from jaxdp.testing.contracts import check_estimator, check_learner, check_mechanism
from jaxdp.testing.registered import check_registered

__all__ = ["check_estimator", "check_learner", "check_mechanism", "check_registered"]
