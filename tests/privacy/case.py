"""The parts of a known mistake."""

from typing import NamedTuple

from jaxdp.audit import Attack
from jaxdp.core import Guarantee


class Case(NamedTuple):
    """A wrong mechanism that claims too much, and correct ones that claim the same on the same inputs.

    Attributes:
        wrong: must be flagged.
        right: must not.
        trials: with which every one of ten keys flags it.
    """

    wrong: Attack
    right: tuple[Attack, ...]
    trials: int


def claim(epsilon: float, delta: float = 0.0) -> Guarantee:
    """Returns the nominal claim of a wrong mechanism and of its twin."""
    return Guarantee.approximate(
        epsilon, delta, trust_model="central", privacy_unit="one record", argument="as published"
    )
