"""Where convex bandits play, a ball or a box about 0, with all that learners and worlds ask of it."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from jaxdp.bandits.convex import _barrier, _box
from jaxdp.bandits.convex._ball import checked_ball
from jaxdp.bandits.convex._ball_kernels import descend, length, project  # laid out for CPUs, whatever the size
from jaxdp.core import Space, ball, default_float, scalar_leaf
from jaxdp.numerics import compensated
from jaxdp.validation import check_choice

DOMAINS = ("ball", "box")


class BarrierPoint(Protocol):
    """A point at which the barrier's Hessian is known, in the units of which R = 1; see `_barrier.BarrierPoint`."""

    @property
    def x(self) -> jax.Array: ...

    def add_curvature(self, curvature: jax.Array) -> Any: ...

    def apply_hessian(self, vector: jax.Array) -> jax.Array: ...

    def apply_inverse_root(self, vector: jax.Array) -> jax.Array: ...


class Domain(NamedTuple):
    """A convex set of points, which holds the ball of radius R about 0 and no larger one.

    Attributes:
        dim: d of points.
        radius: R.
        reach: D, the largest distance of a point from 0: R of a ball, R sqrt(d) of a box.
        barrier_parameter: theta of the barrier: 1 of a ball, d of a box.
        points: their space.
        holds: (x) -> whether x is a point of it, up to rounding, [] bool; NaN is not.
        project: (x, R) -> the nearest point of a domain of another R.
        descend: (x, step, R) -> x + step, or the nearest point of a domain of another R; `compensated.Sum`s.
        place: (slope, curvature) -> the minimum of <slope, x> + curvature |x|^2 / 2 + barrier, in the units of which
            R = 1; curvature None is 0.
    """

    dim: int
    radius: float
    reach: float
    barrier_parameter: int
    points: Space
    holds: Callable[[jax.Array], jax.Array]
    project: Callable[[jax.Array, jax.Array], jax.Array]
    descend: Callable[[compensated.Sum, jax.Array, jax.Array], compensated.Sum]
    minimize: Callable[..., BarrierPoint]

    @property
    def bias(self) -> float:
        """What exploring at a distance del costs a round, over G del, G the losses' Lipschitz constant: 3 + D / R.

        A loss is larger by at most G del where it is asked for than at the iterate. Descent is on a smoothed loss,
        which differs from the loss by at most G del, both at the iterate and at the point it is compared with. That is
        a point of (1 - del / R) times the domain, and at most del D / R away from the best point of the domain.
        """
        return 3 + self.reach / self.radius


def checked_domain(domain: str, dim: int, radius: float) -> Domain:
    """The domain of this name.

    Args:
        domain: "ball", all points of Euclidean norm at most `radius`; or "box", all whose entries lie in
            [-radius, radius].
        dim: of points, >= 1.
        radius: finite and > 0.

    Raises:
        ValueError: if an argument is out of range, or domain has another name.
    """
    dim, radius = checked_ball(dim, radius)
    if check_choice("domain", domain, DOMAINS) == "box":
        reach, points = radius * math.sqrt(dim), ball(dim, radius, norm="max")
        scalar_leaf("radius^2 dim", reach * reach)
        return Domain(dim, radius, reach, dim, points, points.holds, _box.project, _box.descend, _box.minimize)
    edge = radius * (1 + 4 * float(jnp.finfo(default_float()).eps) * math.sqrt(dim))  # norms are rounded
    return Domain(
        dim=dim,
        radius=radius,
        reach=radius,
        barrier_parameter=1,
        points=ball(dim, radius),
        holds=lambda x: length(x) <= edge,
        project=project,
        descend=descend,
        minimize=_barrier.minimize,
    )
