"""The domains of convex bandits (a ball or a box around 0), with all operations that learners and environments use."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from jaxdp.bandits.convex import _barrier, _box
from jaxdp.bandits.convex._ball import checked_ball
from jaxdp.bandits.convex._ball_kernels import descend, length, project
from jaxdp.core import Space, ball, default_float, scalar_leaf
from jaxdp.numerics import compensated
from jaxdp.validation import check_choice, check_number

DOMAINS = ("ball", "box")


class BarrierPoint(Protocol):
    """A point with the barrier's Hessian at it, in units of the domain's radius R; see `_barrier.BarrierPoint`."""

    @property
    def x(self) -> jax.Array: ...

    def add_curvature(self, curvature: jax.Array) -> Any: ...

    def apply_hessian(self, vector: jax.Array) -> jax.Array: ...

    def apply_inverse_root(self, vector: jax.Array) -> jax.Array: ...


class Domain(NamedTuple):
    """A convex set of points; R is the radius of the largest ball around 0 inside the set.

    Attributes:
        dim: dimension d of points.
        radius: R.
        reach: D, the largest distance of a point from 0: R for a ball, R sqrt(d) for a box.
        barrier_parameter: theta, the parameter of the self-concordant barrier: 1 for a ball, d for a box.
        points: the space of points.
        holds: (x) -> [] bool, whether x lies in the domain, up to rounding; False for NaN.
        project: (x, r) -> the projection of x onto the domain with radius r in place of R.
        descend: (x, step, r) -> the projection of x + step onto the domain with radius r in place of R; x and the
            result are `compensated.Sum`s.
        minimize: (slope, curvature) -> the minimiser of <slope, x> + curvature |x|^2 / 2 + barrier, in units with R =
            1. If curvature is None, it is 0.
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
    def exploration_cost(self) -> float:
        """The factor s = 3 + D / R; exploration at distance rho adds at most s G rho to the regret of a round.

        Losses are G-Lipschitz. The loss at the point played exceeds the loss at the iterate by at most G rho. Descent
        uses a smoothed loss, which differs from the loss by at most G rho, both at the iterate and at the comparison
        point. The comparison point lies in (1 - rho / R) times the domain, at a distance of at most rho D / R from the
        best point.
        """
        return 3 + self.reach / self.radius


def checked_domain(domain: str, dim: int, radius: float) -> Domain:
    """Checks the arguments, and returns the domain.

    Args:
        domain: "ball" (points of Euclidean norm at most `radius`) or "box" (points with entries in [-radius, radius]).
        dim: dimension of points, >= 1.
        radius: finite and > 0.

    Raises:
        ValueError: if an argument is out of range, or domain is not one of the names above.
    """
    dim, radius = checked_ball(dim, radius)
    if check_choice("domain", domain, DOMAINS) == "box":
        reach, points = radius * math.sqrt(dim), ball(dim, radius, norm="max")
        scalar_leaf("radius^2 dim", check_number("radius^2 dim", reach * reach))
        return Domain(dim, radius, reach, dim, points, points.holds, _box.project, _box.descend, _box.minimize)
    edge = radius * (1 + 4 * float(jnp.finfo(default_float()).eps) * math.sqrt(dim))  # allows for rounding of norms
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
