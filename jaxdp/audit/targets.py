"""What an audit of one claim attacks: every way in which the algorithm runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import jax

from jaxdp.audit.black_box import Attack
from jaxdp.audit.exact import Law
from jaxdp.audit.findings import GreyBox
from jaxdp.core import Guarantee
from jaxdp.core.made_by import cut


@dataclass(frozen=True, kw_only=True)
class Target:
    """A claim, and all the ways to attack it.

    Attributes:
        claim: what is attacked.
        attacks: by path, a way to compute what is released: "release" for most, "rounds", "blocks" and "counts" for
            learners. All have the same claim.
        laws: () -> the exact laws of the output under either of two neighbours; None where they are not known.
        grey_box: key -> what a grey-box audit of all paths found; None where there is nothing for it to read.
        notes: what is not attacked, and why.
    """

    claim: Guarantee
    attacks: Mapping[str, Attack]
    laws: Callable[[], tuple[Law, Law]] | None = None
    grey_box: Callable[[jax.Array], GreyBox] | None = None
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        known = [name for name, way in (("exact law", self.laws), ("grey box", self.grey_box)) if way is not None]
        return cut(f"Target({self.claim}: {', '.join([*self.attacks, *known]) or 'nothing to attack'})")


def failed(what: str, error: Exception) -> str:
    """A note of what could not be attacked, in one line.

    Examples:
        >>> failed("rounds", ValueError("users must be ...")), failed("grey box", KeyError("x"))
        ('rounds: users must be ...', "grey box: KeyError: 'x'")
    """
    text, kind = " ".join(str(error).split()), type(error).__name__
    return f"{what}: {text if text and isinstance(error, ValueError) else f'{kind}: {text}' if text else kind}"
