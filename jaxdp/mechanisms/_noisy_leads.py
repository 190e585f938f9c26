"""Noisy totals, seen by how far each lies behind the largest of them."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp.mechanisms._arrays import Scalar, positive_scalar
from jaxdp.mechanisms.noisy_sums import exact_sums, float_type, leads, record_exact, tape_value
from jaxdp.mechanisms.tape import Entry
from jaxdp.numerics.compensated import Sum


def noisy_leads(
    key: jax.Array,
    totals: ArrayLike | Sum,
    epsilon: Scalar,
    *,
    l1_sensitivity: Scalar,
    among: jax.Array | None = None,
) -> jax.Array:
    """Adds Laplace(l1_sensitivity / epsilon) noise to each total, and subtracts the largest noisy total.

    Selection needs differences only. They are small where it matters, so that floats hold them however large the totals
    are: two counts of 2^30 that differ by 1 have leads 0 and -1, but are one float32.

    Args:
        key: a PRNG key.
        totals: [..., num_totals] integer, or a `jaxdp.numerics.compensated.Sum` of floats.
        epsilon: [] float > 0, may be traced; infinity adds nothing. Bad traced values as for `laplace`.
        l1_sensitivity: [] float > 0, may be traced: largest change of the whole of `totals` in L1 norm.
        among: [..., num_totals] bool, which totals take part; it must be public. None is all.

    Returns:
        [..., num_totals] float <= 0 but for rounding: each noisy total less the largest of those that take part.
        Values of others mean nothing.

    Raises:
        ValueError: if totals are of another kind or none, or epsilon or l1_sensitivity is not a scalar, or is a Python
            or NumPy number that is not > 0.

    Privacy:
        - epsilon-DP in the central model for one release, for the unit and adjacency of the sensitivity.
        - Leads are differences of totals to which the Laplace mechanism has added noise: post-processing.
        - Slack: two totals alone spend all of epsilon only in the limit. In units of the noise's scale their difference
          exceeds t by noise with probability (2 + t) exp(-t) / 4, whose log falls with slope 1 - 1 / (2 + t). Of more
          totals each is seen against several others, and audits find nearly all of epsilon.

    Source:
        Dwork & Roth (2014), Theorem 3.6.

    Deviations:
        Floating-point noise, as in `laplace`.

    Examples:
        >>> counts = jnp.array([2**30, 2**30 + 1], jnp.int32)
        >>> print(noisy_leads(jax.random.key(0), counts, float("inf"), l1_sensitivity=1.0))  # no privacy, no noise
        [-1.  0.]
    """
    exact = exact_sums("totals", totals)
    if jnp.ndim(tape_value(exact)) == 0 or tape_value(exact).shape[-1] == 0:
        raise ValueError(f"totals must have a last axis of at least one total, got shape {tape_value(exact).shape}")
    if not isinstance(exact, Sum) and jnp.issubdtype(exact.dtype, jnp.floating):
        raise ValueError(f"totals must be integers or a compensated sum, got dtype {exact.dtype}")
    dtype = float_type(exact)
    sensitivity = positive_scalar("l1_sensitivity", l1_sensitivity, dtype)
    epsilon = positive_scalar("epsilon", epsilon, dtype)
    noise = jax.random.laplace(key, tape_value(exact).shape, dtype)
    entry = Entry("laplace", tape_value(exact), "l1", key, sensitivity, epsilon, noise=noise, law="laplace")
    return leads(record_exact(exact, entry), sensitivity / epsilon * noise, among)
