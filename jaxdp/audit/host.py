"""Wraps plain Python samplers as releases, which JAX calls on the host."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit.sampling import Release


def python_release(
    sampler: Callable[[np.random.Generator, Any, Any], Any], shape: tuple[int, ...] = (), dtype: Any = np.float32
) -> Release:
    """Wraps a plain Python function as a release, so that `audit` can attack the function unchanged.

    Each output is one call on the host. The host makes at most a few hundred thousand calls per second, so use few
    trials.

    Args:
        sampler: (generator, params, data) -> output, with NumPy arrays. It should draw only from the generator. With
            another source of randomness audits are valid, but cannot be repeated.
        shape: shape of an output.
        dtype: dtype of an output.

    Returns:
        (key, params, data) -> output, for `Attack`.

    Raises:
        ValueError: if sampler is not callable.

    Examples:
        >>> from jaxdp.audit import Attack, audit
        >>> from jaxdp.core import Guarantee
        >>> def half_the_noise(generator, epsilon, count):
        ...     return count + generator.laplace(scale=0.5 / epsilon)
        >>> claim = Guarantee.pure(1.0, trust_model="central", privacy_unit="one record", argument="wishful")
        >>> inputs = (np.float32(0), np.float32(1))
        >>> attack = Attack(python_release(half_the_noise), np.float32(1), inputs, claim)
        >>> audit(jax.random.key(0), attack, trials=3000).verdict
        'violated'
    """
    if not callable(sampler):
        raise ValueError(f"sampler must be a function, got {sampler!r}")
    kind = jnp.zeros((), dtype).dtype

    def sample_once(seed: np.ndarray, params: Any, data: Any) -> np.ndarray:
        return np.asarray(sampler(np.random.default_rng(seed), params, data)).astype(kind).reshape(shape)

    def on_host(*inputs: Any) -> np.ndarray:
        return sample_all(*jax.tree.map(np.asarray, inputs))

    def sample_all(*inputs: Any) -> np.ndarray:
        if inputs[0].ndim == 1:
            return sample_once(*inputs)
        # Each enclosing `jax.vmap` adds a leading axis to every input, of length 1 to inputs that it does not map.
        count = max(map(len, jax.tree.leaves(inputs)))
        at = lambda i: jax.tree.map(lambda x: x[i if len(x) > 1 else 0], inputs)  # noqa: E731
        return np.stack([sample_all(*at(i)) for i in range(count)])

    def release(key: jax.Array, params: Any, data: Any) -> jax.Array:
        seed, out = jax.random.bits(key, (4,), jnp.uint32), jax.ShapeDtypeStruct(shape, kind)
        return jax.pure_callback(on_host, out, seed, params, data, vmap_method="expand_dims")

    return release
