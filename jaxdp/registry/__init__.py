"""Tables of all mechanisms, learners and estimators, for tests, audits and the command line.

An entry is a record of everything that is needed to try an algorithm: its factory, sizes, one grid point, and functions
of the sizes that make a tiny problem. Every entry is tested, audited and listed. `register` adds your own entries.

>>> entry = LEARNERS["ebs_elimination"].sized(num_arms=8, horizon=1000)
>>> entry.make(), entry.make_environment().interface.action.high
(ebs_elimination(num_arms=8, horizon=1000), 7)
"""

from jaxdp.registry.claims import attack, attacks
from jaxdp.registry.data import tiny_choices, tiny_data, tiny_election
from jaxdp.registry.entries import Entry, EstimatorEntry, LearnerEntry, Mechanism, MechanismEntry
from jaxdp.registry.plugins import import_modules, load_plugins
from jaxdp.registry.registered import ESTIMATORS, KINDS, LEARNERS, MECHANISMS, register
from jaxdp.registry.second import Second
from jaxdp.registry.table import claims_table, listing

__all__ = [
    "ESTIMATORS",
    "KINDS",
    "LEARNERS",
    "MECHANISMS",
    "Entry",
    "EstimatorEntry",
    "LearnerEntry",
    "Mechanism",
    "MechanismEntry",
    "Second",
    "attack",
    "attacks",
    "claims_table",
    "import_modules",
    "listing",
    "load_plugins",
    "register",
    "tiny_choices",
    "tiny_data",
    "tiny_election",
]
