"""Defines targets of an audit: a claim with all ways to attack it."""

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
    """Inputs for a search.

    Attributes:
        attack: an attack; the search starts from its neighbours. Its release takes the domain's inputs, or
            (input, changed) if `with_place`.
        domain: the pairs of inputs to search.
        with_place: whether the release also takes the index of the row that differs.
        code: (first input, second input) -> Python code that audits these inputs.
    """

    attack: Attack
    domain: Domain
    with_place: bool
    code: Callable[[Any, Any], str]


class AttackPoint(NamedTuple):
    """Other values or sizes at which a claim is attacked.

    Attributes:
        name: the difference from the registered values or sizes, such as "epsilon=0.1".
        make: () -> the attack at this point, on the first path.
        space: () -> the inputs to search at this point; None if nothing is searched.
    """

    name: str
    make: Callable[[], Attack]
    space: Callable[[], Space | None] = lambda: None


@dataclass(frozen=True, kw_only=True)
class Target:
    """A claim, and all the ways to attack it.

    Attributes:
        guarantee: the claim.
        attacks: for each path, the attack on its outputs. A registered learner has some of the paths "rounds", "blocks"
            and "counts", an estimator has the path "fit", and a mechanism has the path "release" and a path for each of
            its other implementations. All attacks have the same claim.
        distributions: () -> the exact distributions of the output under two neighbours; None if they are not known.
        grey_box: key -> the result of a grey-box audit of all paths; None if there is no grey-box audit.
        notes: the parts that are not attacked, with reasons.
        spaces: for each path that is searched, () -> inputs to search, in addition to the inputs of `attacks`.
        points: other values and sizes to attack.
        reached: the lower bound that attacks reach on correct code, at the registered values and with 10^6 trials,
            divided by the claimed number; None if unknown.
        second: the same algorithm at a second point, at which other caps, budgets and phases take effect; None if there
            is no second point.
        point: if this target is another target's `second`, the difference from the registered values, such as
            "max_switches=2"; otherwise empty.
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
    """Returns a note, in one line, that an attempt failed with an error.

    Examples:
        >>> failure_note("rounds", ValueError("users must be ...")), failure_note("grey box", KeyError("x"))
        ('rounds: users must be ...', "grey box: KeyError: 'x'")
    """
    text, kind = " ".join(str(error).split()), type(error).__name__
    return f"{what}: {text if text and isinstance(error, ValueError) else f'{kind}: {text}' if text else kind}"
