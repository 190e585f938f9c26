"""Every mechanism, learner and estimator, named once: tests, audits and the command line loop over these tables.

An entry holds all that is needed to try an algorithm: a factory, one grid point, the claim at that point, and a tiny
problem. What is added here is tested, audited and listed by being here.
"""

from jaxdp.registry.channels import CHANNELS
from jaxdp.registry.claims import attacks
from jaxdp.registry.estimators import ESTIMATORS, EstimatorEntry, tiny_choices, tiny_data
from jaxdp.registry.learners import LEARNERS, LearnerEntry
from jaxdp.registry.mechanisms import MECHANISMS, MechanismEntry
from jaxdp.registry.table import KINDS, claims_table, listing

MECHANISMS.update(CHANNELS)

__all__ = [
    "ESTIMATORS",
    "KINDS",
    "LEARNERS",
    "MECHANISMS",
    "EstimatorEntry",
    "LearnerEntry",
    "MechanismEntry",
    "attacks",
    "claims_table",
    "listing",
    "tiny_choices",
    "tiny_data",
]
