"""Checks that mechanisms, learners and estimators satisfy their contracts; a failed check raises an AssertionError."""

from jaxdp.testing.checks import Check
from jaxdp.testing.contracts import check_estimator, check_learner, check_mechanism
from jaxdp.testing.registered import check_registered, checks_of

__all__ = ["Check", "check_estimator", "check_learner", "check_mechanism", "check_registered", "checks_of"]
