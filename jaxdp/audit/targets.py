"""Targets of an audit: a claim, and every way in which the algorithm runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax

from jaxdp.audit.black_box import Attack
from jaxdp.audit.domains import Domain
from jaxdp.audit.exact import OutputDistribution
from jaxdp.audit.findings import GreyBox
from jaxdp.core import Guarantee
from jaxdp.core.made_by import shorten


class Space(NamedTuple):
    """Inputs among which a search looks for distinguishable ones.

    Attributes:
        attack: with a pair to begin with; its release takes the domain's inputs, or (input, changed) if `with_place`.
        domain: of pairs of inputs.
        with_place: whether the release gets the index of the row that differs.
        code: (first, second) -> Python code that audits them.
    """

    attack: Attack
    domain: Domain
    with_place: bool
    code: Callable[[Any, Any], str]


class AttackPoint(NamedTuple):
    """Other values or sizes at which a claim is attacked.

    Attributes:
        name: of the difference, such as "epsilon=0.1".
        make: () -> the attack there, on the first path.
        space: () -> the inputs to search there; None where they are not known.
    """

    name: str
    make: Callable[[], Attack]
    space: Callable[[], Space | None] = lambda: None


@dataclass(frozen=True, kw_only=True)
class Target:
    """A claim, and all the ways to attack it.

    Attributes:
        guarantee: to attack.
        attacks: by path, a way to compute the releases: "release" for most, "rounds", "blocks" and "counts" for
            learners. All have the same claim.
        distributions: () -> the exact distributions of the output under two neighbours; None where they are not known.
        grey_box: key -> the result of a grey-box audit of all paths; None if there is nothing for it to read.
        notes: what is not attacked, and why.
        spaces: by path, inputs to search besides those of `attacks`.
        points: other values and sizes.
        reached: the share of the claim that attacks reach on correct code, at the claim's own values; None if unknown.
        second: the same algorithm at a second point, where other caps, budgets and phases bind; None if there is none.
        point: of a second one, the difference, such as "max_switches=2".
    """

    guarantee: Guarantee
    attacks: Mapping[str, Attack]
    distributions: Callable[[], tuple[OutputDistribution, OutputDistribution]] | None = None
    grey_box: Callable[[jax.Array], GreyBox] | None = None
    notes: tuple[str, ...] = field(default=())
    spaces: Mapping[str, Callable[[], Space]] = field(default_factory=dict)
    points: tuple[AttackPoint, ...] = ()
    reached: float | None = None
    second: "Target | None" = None
    point: str = ""

    def __repr__(self) -> str:
        other_ways = [
            name
            for name, way in (("exact distribution", self.distributions), ("grey box", self.grey_box))
            if way is not None
        ]
        return shorten(f"Target({self.guarantee}: {', '.join([*self.attacks, *other_ways]) or 'nothing to attack'})")


def failure_note(what: str, error: Exception) -> str:
    """Returns a note of what could not be attacked, in one line.

    Examples:
        >>> failure_note("rounds", ValueError("users must be ...")), failure_note("grey box", KeyError("x"))
        ('rounds: users must be ...', "grey box: KeyError: 'x'")
    """
    text, kind = " ".join(str(error).split()), type(error).__name__
    return f"{what}: {text if text and isinstance(error, ValueError) else f'{kind}: {text}' if text else kind}"
