"""Labels of preferences, privatized once, so that any model may be trained on the reports."""

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from scipy.special import expit

from jaxdp.core import Guarantee, default_float
from jaxdp.mechanisms import label_randomizer, randomized_response
from jaxdp.validation import check_epsilon, check_key


class PrivateLabels(NamedTuple):
    """Randomized responses to labels, one a label.

    Attributes:
        reports: [num_samples] int32 in {0, 1}.
        epsilons: [num_samples] float, the budget of each report; infinity for a label without privacy.
        claim: the claim of all reports together, for one label or for one person.
    """

    reports: np.ndarray
    epsilons: np.ndarray
    claim: Guarantee

    @property
    def flip_probs(self) -> np.ndarray:
        """[num_samples] float in [0, 1/2), the probability that a report is the opposite label."""
        return expit(-self.epsilons)


def private_labels(
    labels: ArrayLike, epsilon: float, *, persons: ArrayLike | None = None, key: jax.Array
) -> PrivateLabels:
    """Reports each label by randomized response. Any model may be trained on the reports, as often as you like.

    Training is post-processing: it needs no accountant. Public columns (prompts, responses, features) are not
    protected. The function reads labels only to randomize them, and no error depends on them.

    Args:
        labels: [num_samples] in [0, 1]; 1: the first of the pair was preferred. A tie is 1/2: a fair coin of the key
            decides before the label is randomized. Other numbers are clipped, and NaN counts as a tie.
        epsilon: the budget, > 0, of one label or, with `persons`, of one person; infinity reports labels as they are.
        persons: [num_samples] ids, public, of who gave the label. A person with k labels has a budget of epsilon / k
            for each. None: each label has the whole budget, and a person with k labels has k epsilon.
        key: as secret as the labels. Threefry is no cryptographic generator: for a release to untrusted people, flip
            labels by random words of the operating system instead.

    Returns:
        The reports, the budget of each, and the claim.

    Raises:
        ValueError: if labels are not a vector of numbers, epsilon is not > 0, or persons has another length.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one label; with `persons`, all labels of one person. Adjacency: replace one; ids and numbers of labels
          are public.
        - Why: Reports are randomized independently, each by a budget of epsilon / k; k of them compose to epsilon.

    Source:
        Warner (1965), as `mechanisms.randomized_response`.

    Examples:
        >>> private = private_labels([1, 0, 0.5], epsilon=2.0, persons=["a", "a", "b"], key=jax.random.key(0))
        >>> print(private.claim, private.epsilons)
        2-DP, local, one person [1. 1. 2.]
    """
    epsilon = check_epsilon(epsilon)
    check_key(key)
    values = np.asarray(labels)
    if values.ndim != 1 or not (np.issubdtype(values.dtype, np.number) or values.dtype == bool):
        raise ValueError(f"labels must be a vector of numbers, got {values.dtype} of shape {values.shape}")
    counts = np.ones(len(values), np.int64)
    if persons is not None:
        ids = np.asarray(persons)
        if ids.shape != values.shape:
            raise ValueError(f"persons must have one id a label, {len(values)}, got shape {ids.shape}")
        _, index, number = np.unique(ids, return_inverse=True, return_counts=True)
        counts = number[index]
    budgets = epsilon / counts
    key_ties, key_reports = jax.random.split(key)
    chances = jnp.asarray(np.clip(np.nan_to_num(values.astype(float), nan=0.5), 0, 1), default_float())
    bits = jax.random.bernoulli(key_ties, chances).astype(jnp.int32)
    reports = _randomize(jax.random.split(key_reports, len(values)), bits, jnp.asarray(budgets, default_float()))
    claim = label_randomizer().guarantee(epsilon=epsilon)
    if persons is not None:
        argument = "randomized response with epsilon / k for each of a person's k labels; ids and k are public"
        claim = dataclasses.replace(claim, privacy_unit="one person", unit="person", argument=argument)
    return PrivateLabels(np.asarray(reports), budgets, claim)


@jax.jit
@jax.vmap
def _randomize(key: jax.Array, label: jax.Array, epsilon: jax.Array) -> jax.Array:
    return randomized_response(key, label, epsilon)


def debiased_loss(margins: ArrayLike, reports: ArrayLike, epsilon: ArrayLike) -> jax.Array:
    """Returns the logistic loss of the labels, estimated without bias from their reports.

    It is log(1 + e^m) - y m with the unbiased estimate y = 1/2 + (report - 1/2) / tanh(epsilon / 2) of the label. Its
    mean over the reports' noise is the loss of the label itself, at any margin. It may be negative. Its variance, m^2
    / (4 sinh(epsilon / 2)^2), grows with the margin, so models without a bound on margins need weight decay or early
    stopping at small epsilon. Differentiable, and may be jitted; a linear model's mean loss is convex.

    Args:
        margins: [...] numbers, a model's log odds that the first of the pair is preferred: the difference of two
            rewards or, for DPO, beta times the difference of the two log ratios of the policy and its reference.
        reports: [...] integers in {0, 1}.
        epsilon: [] or [...] float > 0, the budget of the reports. A wrong value gives a biased loss.

    Returns:
        [...] float, one loss a report, in at least JAX's default precision.

    Raises:
        ValueError: if shapes differ, or an epsilon that is not a JAX array is not > 0.

    Privacy:
        - post-processing, costs nothing.

    Source:
        Natarajan et al. (2013), Lemma 1; Ray Chowdhury, Kini & Natarajan (2024), arXiv 2403.00409, for DPO: with the
        flip probability as `label_smoothing` it is the loss `loss_type="robust"` of TRL's DPO trainer.

    Examples:
        >>> losses = debiased_loss(jnp.array([0.5, 0.5]), jnp.array([1, 0], jnp.int32), jnp.inf)
        >>> [f"{loss:.3f}" for loss in losses]
        ['0.474', '0.974']
    """
    margins, reports = jnp.asarray(margins), jnp.asarray(reports)
    dtype = jnp.float64 if margins.dtype == jnp.float64 else default_float()  # a short epsilon would be rounded
    epsilon = epsilon if isinstance(epsilon, jax.Array) else np.asarray(epsilon, float)
    if isinstance(epsilon, np.ndarray) and not (epsilon > 0).all():
        raise ValueError(f"epsilon must be > 0, got {epsilon.min():g}")
    if reports.shape != margins.shape or epsilon.shape not in ((), margins.shape):
        raise ValueError(
            f"reports must have the shape of margins, {margins.shape}, and epsilon too or none, got {reports.shape} "
            f"and {epsilon.shape}"
        )
    margins, epsilon = margins.astype(dtype), jnp.asarray(epsilon, dtype)
    estimates = 0.5 + (reports.astype(dtype) - 0.5) / jnp.tanh(epsilon / 2)
    return jax.nn.softplus(margins) - estimates * margins


def to_jsonl(
    private: PrivateLabels,
    path: str | os.PathLike[str],
    *,
    prompts: Sequence[str],
    first: Sequence[str],
    second: Sequence[str],
) -> None:
    """Writes the reported preferences as JSON lines with the columns that TRL's DPO trainer reads.

    Each line has `prompt`, `chosen`, `rejected` and `flip_prob`. `chosen` is the response that the report prefers,
    never the one that the label prefers. Where all flip probabilities are equal, they are TRL's `label_smoothing` with
    `loss_type="robust"`.

    Args:
        private: the reports.
        path: the new file.
        prompts: [num_samples] texts.
        first: [num_samples] texts, the responses that label 1 prefers.
        second: [num_samples] texts, the others.

    Raises:
        ValueError: if a column has another length than the reports.
        FileExistsError: if the file exists: nothing is overwritten.
        OSError: if it cannot be written.
    """
    columns = {"prompts": prompts, "first": first, "second": second}
    for name, column in columns.items():
        if len(column) != len(private.reports):
            raise ValueError(f"{name} must have one text a report, {len(private.reports)}, got {len(column)}")
    rows = zip(prompts, first, second, private.reports.tolist(), private.flip_probs.tolist(), strict=True)
    lines = []
    for prompt, one, other, report, flip_prob in rows:
        chosen, rejected = (one, other) if report else (other, one)
        row = {"prompt": prompt, "chosen": chosen, "rejected": rejected, "flip_prob": flip_prob}
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    with Path(path).open("x", encoding="utf-8") as file:  # no file if a row cannot be written
        file.writelines(lines)
