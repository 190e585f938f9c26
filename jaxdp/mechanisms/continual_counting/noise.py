"""Laplace and Gaussian noise of counters, and the calibration of its parameters on the host."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import default_float, leaf_rounded_down
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms._arrays import wide_scalars, widen
from jaxdp.mechanisms._grid import float_type
from jaxdp.mechanisms.additive import add_gaussian, add_laplace
from jaxdp.mechanisms.calibration import analytic_gaussian, round_up, zcdp_gaussian
from jaxdp.mechanisms.continual_counting.counter import Exact
from jaxdp.mechanisms.least_budgets import check_laplace
from jaxdp.validation import check_above, check_choice, check_epsilon, check_number

Leaf = np.ndarray | np.floating | jax.Array
NOISES = ("laplace", "gaussian")


@pytree_dataclass
class LaplaceParams:
    """Traced values of a counter with Laplace noise.

    Attributes:
        epsilon: [] float, privacy budget of the whole stream, > 0; infinity adds no noise.
        l1_sensitivity: [] float, the L1 sensitivity of all nodes together; [levels], one for each epoch, if epochs
            differ.
    """

    epsilon: Leaf
    l1_sensitivity: Leaf


@pytree_dataclass
class GaussianParams:
    """Traced values of a counter with Gaussian noise.

    Attributes:
        noise_stddev: [] float >= 0, standard deviation of each node's or entry's noise; [levels], one for each epoch,
            if epochs differ.
        l2_sensitivity: float of the same shape, the L2 sensitivity of all noisy numbers together, for which the noise
            is calibrated.
    """

    noise_stddev: Leaf
    l2_sensitivity: Leaf


class Noise(NamedTuple):
    """A type of noise, with functions to calibrate and add it.

    Attributes:
        power: the variance of a node's noise is proportional to this power of the number of nodes that an entry is in.
        params: (**values) -> Params. On the host.
        add: (key, params, epoch, values, counters) -> noisy values. `values` are sums of some nodes of `counters`
            counters; epoch is None if all epochs have the same noise scale.
        scale: (params, epoch) -> Laplace scale or Gaussian standard deviation of a node, in the shape of `epoch`; []
            for None. Traced or not.
        variance: (params) -> variance of a node, float64 on the host; [levels] if epochs differ.
    """

    power: int
    params: Callable[..., Any]
    add: Callable[..., jax.Array]
    scale: Callable[..., Any]
    variance: Callable[[Any], np.ndarray]


def node_noise(name: str, nodes: int | np.ndarray) -> Noise:
    """Returns the named noise for trees in which each entry is in `nodes` nodes (an array if epochs differ).

    Raises:
        ValueError: if the name is unknown.
    """
    return _laplace(nodes) if check_choice("noise", name, NOISES) == "laplace" else _gaussian(nodes)


def counter_noise(name: str, nodes: int | np.ndarray) -> Noise:
    """Returns `node_noise`; its `params` rejects an epsilon at which Laplace noise would overflow integers."""
    kind = node_noise(name, nodes)
    if name != "laplace":
        return kind

    @functools.wraps(kind.params)
    def params(*, epsilon: float, **values: float) -> LaplaceParams:
        return kind.params(epsilon=check_laplace(epsilon, numbers=int(np.max(nodes))), **values)

    return kind._replace(params=params)


def gaussian_params(
    squared_norm: float | np.ndarray,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    l2_sensitivity: float = 1.0,
) -> GaussianParams:
    """Calibrates Gaussian noise for numbers that an entry of 1 changes by sqrt(squared_norm) in L2 norm.

    Raises:
        ValueError: unless only rho, or only epsilon and delta, are given; or if a value is out of range.
    """
    if (rho is None) == (epsilon is None) or (epsilon is None) != (delta is None):
        raise ValueError(
            f"rho, or epsilon and delta, must be given, got epsilon={epsilon}, delta={delta} and rho={rho}"
        )
    unit = _sensitivity("l2_sensitivity", l2_sensitivity)
    up = math.nextafter  # square root and product are each off by at most half a unit in the last place

    def calibrate(square: float) -> tuple[float, float]:
        sensitivity = up(unit * up(math.sqrt(square), math.inf), math.inf)
        if rho is not None:
            return zcdp_gaussian(rho, sensitivity), sensitivity
        assert epsilon is not None
        assert delta is not None
        return analytic_gaussian(epsilon, delta, sensitivity), sensitivity

    pairs = [calibrate(float(square)) for square in np.ravel(squared_norm)]
    stddevs, sensitivity = (_leaf(column, np.shape(squared_norm)) for column in zip(*pairs, strict=True))
    return GaussianParams(noise_stddev=stddevs, l2_sensitivity=sensitivity)


def _gaussian(nodes: int | np.ndarray) -> Noise:
    def params(
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        l2_sensitivity: float = 1.0,
    ) -> GaussianParams:
        return gaussian_params(nodes, epsilon=epsilon, delta=delta, rho=rho, l2_sensitivity=l2_sensitivity)

    def add(key: jax.Array, params: GaussianParams, epoch: jax.Array | None, values: Exact, counters: int) -> jax.Array:
        leaves = at_epoch(params.noise_stddev, epoch), at_epoch(params.l2_sensitivity, epoch)
        with jax.enable_x64(True):
            stddev, sensitivity = (widen(leaf) for leaf in leaves)
        return add_gaussian(key, values, stddev, sensitivity, float_type(values), counters * int(np.max(nodes)))

    def variance(params: GaussianParams) -> np.ndarray:
        return np.square(np.asarray(params.noise_stddev, np.float64))

    return Noise(1, params, add, lambda params, epoch: at_epoch(params.noise_stddev, epoch), variance)


def _laplace(nodes: int | np.ndarray) -> Noise:
    def params(*, epsilon: float, l1_sensitivity: float = 1.0) -> LaplaceParams:
        unit = _sensitivity("l1_sensitivity", l1_sensitivity)
        sensitivity = [
            math.nextafter(unit * float(count), math.inf) if unit != 1 else float(count) for count in np.ravel(nodes)
        ]
        return LaplaceParams(
            epsilon=leaf_rounded_down("epsilon", check_epsilon(epsilon)),
            l1_sensitivity=_leaf(sensitivity, np.shape(nodes)),
        )

    def add(key: jax.Array, params: LaplaceParams, epoch: jax.Array | None, values: Exact, counters: int) -> jax.Array:
        sensitivity, epsilon = wide_scalars(
            l1_sensitivity=at_epoch(params.l1_sensitivity, epoch), epsilon=jnp.asarray(params.epsilon)
        )
        return add_laplace(key, values, epsilon, sensitivity, float_type(values), counters * int(np.max(nodes)))

    def scale(params: LaplaceParams, epoch: jax.Array | None) -> jax.Array:
        return at_epoch(params.l1_sensitivity, epoch) / jnp.asarray(params.epsilon)

    def variance(params: LaplaceParams) -> np.ndarray:
        sensitivity, epsilon = (np.asarray(leaf, np.float64) for leaf in (params.l1_sensitivity, params.epsilon))
        return 2 * np.square(sensitivity / epsilon)

    return Noise(2, params, add, scale, variance)


def at_epoch(leaf: Leaf, epoch: jax.Array | None) -> jax.Array:
    """Returns leaf[epoch] if `epoch` is not None, otherwise the whole leaf."""
    return jnp.asarray(leaf) if epoch is None else jnp.asarray(leaf)[epoch]


def _sensitivity(name: str, value: float) -> float:
    return check_above(name, check_number(name, value), 0.0)


def _leaf(values: Any, shape: tuple[int, ...]) -> Leaf:
    rounded = np.asarray([round_up(value, default_float()) for value in values])
    return rounded.reshape(shape) if shape else rounded[0]
