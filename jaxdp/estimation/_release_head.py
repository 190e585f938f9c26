"""Releases a reward head, the last linear layer of a reward model, with exact noise from the operating system."""

import dataclasses
import math
from fractions import Fraction
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp.core import Guarantee, default_float
from jaxdp.estimation._estimate import check_data, check_in_blocks, check_offset
from jaxdp.estimation._objective_perturbation import objective_perturbation
from jaxdp.estimation.large import block_lengths, blocks
from jaxdp.estimation.large_fits import fit_large_statistic, warn_large_doubts
from jaxdp.estimation.noisy_statistic import check_release, statistic_params
from jaxdp.estimation.persons import PERSON
from jaxdp.mechanisms import secret_discrete_gaussian, zcdp_rho
from jaxdp.validation import check_epsilon, refuse_masked

BITS = 20  # bits of an entry of the integer features; 32-bit floats hold 24


class ReleasedHead(NamedTuple):
    """A reward head that may be published, with its privacy claim.

    Attributes:
        theta: [dim] float; the reward of features x is x^T theta.
        converged: whether the solver converged.
        claim: the privacy claim for publishing theta.
    """

    theta: np.ndarray
    converged: bool
    claim: Guarantee


def release_head(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    epsilon: float,
    delta: float,
    persons: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    margin_stddev: float = 1.0,
    radius: float = np.inf,
) -> ReleasedHead:
    r"""Releases one reward head with central label privacy. The noise is drawn from the operating system's randomness.

    The head is computed as in `objective_perturbation(geometry="whitened", weights="cut")`, which simulates it with
    noise from a JAX key. Features are whitened by their public second moment, weighted, and rounded to integers. Exact
    discrete Gaussian noise is added to their sum over labels. Its standard deviation is 4% to 9% larger than in the
    simulation, because discrete noise is calibrated through zCDP. Every call releases the labels again, which adds its
    epsilon and delta: keep the result.

    Args:
        features: [num_samples, dim] float, public: features of the first response minus features of the second one,
            in an order that does not depend on the label. They may be mapped from a file.
        labels: [num_samples] in {0, 1/2, 1}, private; 1 if the first response won, 1/2 for a tie. Other numbers are
            rounded to one of these, and NaN counts as a tie, so that no error depends on them.
        epsilon: the privacy budget, in (0, inf).
        delta: in (0, 1).
        persons: [num_samples] public ids of the persons who gave the labels; the claim is then for all labels of one
            person. If None, the claim is for one label.
        offset: [num_samples] finite floats, public, as for `estimate`: margins of another model.
        margin_stddev: a guess of the margins' standard deviation, > 0, made without labels; it determines the ridge.
        radius: bound on the norm of theta, > 0.

    Returns:
        The head and its claim.

    Raises:
        ValueError: if features are not a finite table, or all rows are zero; if labels are not a vector of real
            numbers; if an array has masked entries; if labels, persons or offset do not have one entry for each row; if
            an offset is not finite, or a value is out of range.
        MemoryError: if the copies of the features need more than the free memory.

    Warns:
        RuntimeWarning: if the solver did not converge. Without a ridge (infinite margin_stddev) also if theta makes
            answers nearly certain and no radius limits it, or in 32-bit mode if the norm of a row far exceeds the
            median norm.

    Privacy:
        - Claim: (epsilon, delta)-DP in the central model.
        - Unit: one label; with `persons`, all labels of one person. Adjacency: replace one; features, persons' ids and
          the number of each person's labels are public.
        - Why: Labels enter only one vector of integers, the sum of 2 y_i v_i. The integer vectors v_i are public, and
          do not depend on an offset. The sum's L2 sensitivity is 2 max |v_i|, or for persons twice the bound of
          `objective_perturbation`. The sum is released once with discrete Gaussian noise that is rho-zCDP, for the rho
          of `zcdp_rho(epsilon, delta)`. Everything else is post-processing. The function has no defence against an
          adversary who measures running times.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), Algorithm 2; Canonne, Kamath & Steinke (2020), Theorem 14, for
        the noise.

    Deviations:
        As `objective_perturbation` with whitened noise and weights "cut". Weighted whitened features are rounded to
        multiples of about 2^-20 times the largest entry.

    Examples:
        >>> random = np.random.default_rng(0)
        >>> features = random.normal(size=(2000, 3))
        >>> head = release_head(features, features[:, 0] > 0, epsilon=1.0, delta=1e-6)
        >>> print(head.claim, int(np.argmax(head.theta)))
        (1, 1e-06)-DP, central, one label 0
    """
    if math.isinf(check_epsilon(epsilon)):
        raise ValueError("epsilon must be finite for a release, got inf")
    refuse_masked("features", features)
    refuse_masked("labels", labels)
    rows, values = np.asarray(features), np.asarray(labels)
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise ValueError(f"labels must be a vector of real numbers, got {values.dtype} of shape {values.shape}")
    placeholders = np.zeros(values.shape, np.int8)  # checks must not read the private labels
    if rows.ndim == 2 and rows.size:
        check_in_blocks(check_data, rows, placeholders, np.inf)
    else:
        check_data(rows, placeholders)
    if persons is not None and np.shape(persons) != values.shape:
        raise ValueError(f"persons must have one id per label, {len(values)}, got shape {np.shape(persons)}")
    public_margins = check_offset(offset, len(values))
    unit = "label" if persons is None else "person"
    release = check_release(
        "analytic", "cut", "gaussian", privacy_unit=unit, geometry="whitened", max_dim=rows.shape[1]
    )
    options = {"margin_stddev": margin_stddev, "radius": radius} | ({} if persons is None else {"persons": persons})
    params = statistic_params("release_head", release, "tolerance")(epsilon=epsilon, delta=delta, **options)
    rho = zcdp_rho(epsilon, delta)
    params = dataclasses.replace(params, noise_multiplier=np.float64(1 / math.sqrt(2 * rho)))

    doubled = np.rint(2 * np.clip(np.nan_to_num(values.astype(float), nan=0.5), 0, 1))

    def report(white: np.ndarray, weights: Any) -> tuple[np.ndarray, float]:
        return _secret_report(rho, params.persons, white, doubled, weights)

    fit = fit_large_statistic(
        release, None, params, rows, jnp.zeros(len(values), default_float()), report, offset=public_margins
    )
    simulated = objective_perturbation(geometry="whitened", weights="cut", privacy_unit=unit)
    shift = 0.0 if public_margins is None else public_margins
    warn_large_doubts(simulated, fit, rows, {"margin_stddev": margin_stddev, "radius": radius}, shift)
    claim = Guarantee.approximate(
        epsilon,
        delta,
        trust_model="central",
        privacy_unit=PERSON if persons is not None else "one label",
        unit="person" if persons is not None else "record",
        argument="labels enter only one sum of integers; it is released once with exact discrete Gaussian noise "
        "from the operating system's random words, and the head is post-processing",
        numerical_delta=0.0,
    )
    return ReleasedHead(np.asarray(fit.theta), bool(fit.converged), claim)


def _secret_report(
    rho: float, persons: Any, rows: np.ndarray, doubled_labels: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, float]:
    """Returns the noisy statistic ([dim] float64) and its L2 sensitivity; overwrites rows.

    Args:
        rho: the zCDP budget.
        persons: [num_samples] indices of persons; None if the unit is one label.
        rows: [num_samples, dim] float, public; overwritten with the weighted rows, divided by a step and rounded to
            integers.
        doubled_labels: [num_samples] in {0, 1, 2}, private.
        weights: [num_samples] float64 in [0, 1].
    """
    largest = max(np.abs(block * weights[samples, None]).max() for samples, block in blocks(rows))
    if largest == 0:
        raise ValueError("features must have a row that is not zero")
    step = 2.0 ** (math.ceil(math.log2(largest)) - BITS)
    total = np.zeros(rows.shape[1])  # integers below 2^53 for up to 2^32 samples: their sums are exact
    for samples, block in blocks(rows):
        integers = np.rint(block * (weights[samples, None] / step))
        rows[samples] = integers
        total += doubled_labels[samples] @ integers
    reach = 2 * float(block_lengths(rows, persons).max())
    variance = math.ceil(Fraction(reach) ** 2 / (2 * Fraction(rho)))
    noise = secret_discrete_gaussian(len(total), variance)
    noisy = [int(exact) + number for exact, number in zip(total, noise, strict=True)]
    return np.array([number * (step / 2) for number in noisy]), reach * step / 2
