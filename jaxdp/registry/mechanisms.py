"""Every mechanism, named once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import mechanisms
from jaxdp.core import Guarantee
from jaxdp.validation import check_delta, check_epsilon


@dataclass(frozen=True, kw_only=True)
class MechanismEntry:
    """A mechanism as one release.

    Attributes:
        summary: one line, what it does.
        values: the grid point that tests use.
        params: (**values) -> pytree, on the host.
        guarantee: (**values) -> Guarantee, on the host.
        release: (key, params, data) -> output.
        neighbours: two adjacent inputs between which the mechanism is least private, or nearly so.
        exact: data -> output without noise, which `release` equals at epsilon = inf; None where it stays random.
    """

    summary: str
    values: Mapping[str, float]
    params: Callable[..., Any]
    guarantee: Callable[..., Guarantee]
    release: Callable[[jax.Array, Any, jax.Array], jax.Array]
    neighbours: tuple[np.ndarray, np.ndarray]
    exact: Callable[[jax.Array], jax.Array] | None


def _epsilon_params(*, epsilon: float) -> np.ndarray:
    return np.asarray(check_epsilon(epsilon), jax.dtypes.canonicalize_dtype(float))


def _noise_params(calibrate: Callable[[float, float], float]) -> Callable[..., Any]:
    def params(*, epsilon: float, delta: float) -> Any:
        return mechanisms.round_up(calibrate(epsilon, delta), jax.dtypes.canonicalize_dtype(float))

    return params


def _claim(trust_model: str, unit: str, argument: str) -> Callable[..., Guarantee]:
    def guarantee(*, epsilon: float, delta: float | None = None) -> Guarantee:
        return Guarantee.approximate(
            epsilon,
            0.0 if delta is None else check_delta(delta),
            trust_model=trust_model,
            privacy_unit=unit,
            argument=argument,
        )

    return guarantee


def _laplace(key, epsilon, data):
    return mechanisms.laplace(key, data, epsilon, l1_sensitivity=1.0)


def _noisy_leads(key, epsilon, data):
    return mechanisms.noisy_leads(key, data, epsilon, l1_sensitivity=1.0)


def _gaussian(key, noise_stddev, data):
    return mechanisms.gaussian(key, data, noise_stddev)


def _randomized_response(key, epsilon, data, *, num_labels):
    return mechanisms.randomized_response(key, data, epsilon, num_labels=num_labels)


def _randomize_scalar(key, epsilon, data):
    return mechanisms.randomize_scalar(key, data, epsilon, bound=1.0)


def _noisy_max(key, epsilon, data, *, noise):
    return mechanisms.noisy_max(key, data, epsilon, noise=noise)


def _above_threshold(key, epsilon, data, *, split):
    return mechanisms.above_threshold(key, data, epsilon, threshold=0.5, split=split)


# Made when they are used: counters have the float type of that time.
_tree = partial(mechanisms.tree_counter, horizon=3, arity=2)
_toeplitz = partial(mechanisms.toeplitz_counter, horizon=3)
_doubling = partial(mechanisms.doubling_counter, horizon=3)


def _pure_params(*, epsilon: float, make) -> Any:
    return make().params(epsilon=epsilon)


def _toeplitz_params(*, epsilon: float, delta: float) -> Any:
    return _toeplitz().params(epsilon=epsilon, delta=delta)


def _prefixes(key, params, data, *, make):
    return make().prefixes(jax.random.split(key, len(data)), params, data)


def _total(data):
    return jnp.cumsum(data).astype(jnp.result_type(float))


_LABELS = (np.asarray(0, np.int32), np.asarray(1, np.int32))
_COUNTS = (np.asarray([0.0, 0.0], np.float32), np.asarray([0.0, 1.0], np.float32))
_TOTALS = (np.asarray([2**29 + 32, 2**29 + 32], np.int32), np.asarray([2**29 + 33, 2**29 + 32], np.int32))
_SCALARS = (np.asarray(-1.0, np.float32), np.asarray(1.0, np.float32))
_SCORES = (np.asarray([1.0, 0.0, 0.0], np.float32), np.asarray([0.0, 1.0, 1.0], np.float32))
# the first run up to the last query suggests a high threshold, which the last must then reach against the change
_QUERIES = (np.asarray([0.0] * 8 + [1.0], np.float32), np.asarray([1.0] * 8 + [0.0], np.float32))
_STREAMS = (np.asarray([0, 1, 0], np.int32), np.asarray([1, 1, 0], np.int32))
_EPOCHS = (np.asarray([1, 0, 0], np.int32), np.asarray([1, 1, 0], np.int32))  # differ in the second, of two levels
_UNIT, _ENTRY = "one record", "one entry of a stream"

MECHANISMS: dict[str, MechanismEntry] = {
    "laplace": MechanismEntry(
        summary="adds Laplace noise of scale l1_sensitivity / epsilon",
        values={"epsilon": 1.0},
        params=_epsilon_params,
        guarantee=_claim("central", _UNIT, "Laplace mechanism at L1 sensitivity 1"),
        release=_laplace,
        neighbours=_COUNTS,
        exact=lambda data: data,
    ),
    "gaussian": MechanismEntry(
        summary="adds Gaussian noise, analytically calibrated to (epsilon, delta)",
        values={"epsilon": 1.0, "delta": 1e-3},
        params=_noise_params(mechanisms.analytic_gaussian),
        guarantee=_claim("central", _UNIT, "analytic Gaussian mechanism at L2 sensitivity 1"),
        release=_gaussian,
        neighbours=_COUNTS,
        exact=lambda data: data,
    ),
    "classical_gaussian": MechanismEntry(
        summary="adds Gaussian noise by the classical formula, which holds for epsilon < 1",
        values={"epsilon": 0.5, "delta": 1e-3},
        params=_noise_params(mechanisms.classical_gaussian),
        guarantee=_claim("central", _UNIT, "classical Gaussian mechanism at L2 sensitivity 1 and epsilon < 1"),
        release=_gaussian,
        neighbours=_COUNTS,
        exact=lambda data: data,
    ),
    "randomized_response": MechanismEntry(
        summary="reports a binary label truthfully with probability sigmoid(epsilon)",
        values={"epsilon": 1.0},
        params=_epsilon_params,
        guarantee=_claim("local", "one label", "randomized response"),
        release=partial(_randomized_response, num_labels=2),
        neighbours=_LABELS,
        exact=lambda data: data,
    ),
    "k_ary_randomized_response": MechanismEntry(
        summary="reports one of K labels, the true one exp(epsilon) times as likely as any other",
        values={"epsilon": 1.0},
        params=_epsilon_params,
        guarantee=_claim("local", "one label", "K-ary randomized response, K = 4"),
        release=partial(_randomized_response, num_labels=4),
        neighbours=_LABELS,
        exact=lambda data: data,
    ),
    "randomize_scalar": MechanismEntry(
        summary="reports a bounded scalar as one random sign, unbiased after scaling",
        values={"epsilon": 1.0},
        params=_epsilon_params,
        guarantee=_claim("local", "one scalar in [-1, 1]", "randomized response with a bias linear in the scalar"),
        release=_randomize_scalar,
        neighbours=_SCALARS,
        exact=None,  # a random sign at every epsilon
    ),
    **{
        f"noisy_max_{noise}": MechanismEntry(
            summary=f"selects the largest of scores with {text}",
            values={"epsilon": 1.0},
            params=_epsilon_params,
            guarantee=_claim("central", _UNIT, f"{text} of scale 2 / epsilon on scores of sensitivity 1"),
            release=partial(_noisy_max, noise=noise),
            neighbours=_SCORES,
            exact=lambda data: jnp.argmax(data, axis=-1).astype(jnp.int32),
        )
        for noise, text in (
            ("laplace", "Laplace noise"),
            ("gumbel", "Gumbel noise (the exponential mechanism)"),
            ("exponential", "one-sided exponential noise (permute-and-flip)"),
        )
    },
    "noisy_leads": MechanismEntry(
        summary="adds Laplace noise to totals, and reports by how much each is behind the largest",
        values={"epsilon": 1.0},
        params=_epsilon_params,
        guarantee=_claim("central", _UNIT, "Laplace mechanism at L1 sensitivity 1; differences are post-processing"),
        release=_noisy_leads,
        neighbours=_TOTALS,
        exact=lambda data: (data - data.max()).astype(jnp.result_type(float)),
    ),
    **{
        name: MechanismEntry(
            summary=f"finds the first of many queries above a threshold, {text}",
            values={"epsilon": 1.0},
            params=_epsilon_params,
            guarantee=_claim("central", _UNIT, f"AboveThreshold on queries of sensitivity 1, {text}"),
            release=partial(_above_threshold, split=split),
            neighbours=_QUERIES,
            exact=lambda data: jnp.where(jnp.any(data >= 0.5), jnp.argmax(data >= 0.5), data.size).astype(jnp.int32),
        )
        for name, split, text in (
            ("above_threshold", "even", "epsilon split evenly"),
            ("above_threshold_optimal_split", "optimal", "epsilon split 1 : 2^(2/3)"),
        )
    },
    "tree_counter": MechanismEntry(
        summary="estimates all prefix sums of a stream from a tree of noisy blocks",
        values={"epsilon": 1.0},
        params=partial(_pure_params, make=_tree),
        guarantee=_claim("central", _ENTRY, "Laplace mechanism on blocks, of which an entry is in one of each level"),
        release=partial(_prefixes, make=_tree),
        neighbours=_STREAMS,
        exact=_total,
    ),
    "toeplitz_counter": MechanismEntry(
        summary="estimates all prefix sums of a stream with correlated Gaussian noise",
        values={"epsilon": 1.0, "delta": 1e-3},
        params=_toeplitz_params,
        guarantee=_claim("central", _ENTRY, "analytic Gaussian mechanism on C x, of which estimates are a function"),
        release=partial(_prefixes, make=_toeplitz),
        neighbours=_STREAMS,
        exact=_total,
    ),
    "doubling_counter": MechanismEntry(
        summary="estimates all prefix sums of a stream of any length from ever larger trees of noisy blocks",
        values={"epsilon": 1.0},
        params=partial(_pure_params, make=_doubling),
        guarantee=_claim("central", _ENTRY, "Laplace mechanism on blocks; an entry is in one tree, once in each level"),
        release=partial(_prefixes, make=_doubling),
        neighbours=_EPOCHS,
        exact=_total,
    ),
}
