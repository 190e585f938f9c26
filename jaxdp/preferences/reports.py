"""Privatizes preference labels once, so that any model may be trained on the reports."""

import dataclasses
import json
import os
import re
import secrets
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike
from scipy.special import expit

from jaxdp.core import Guarantee, default_float
from jaxdp.mechanisms import label_randomizer, randomized_response, secret_randomized_response
from jaxdp.preferences.persons import budget_shares, count_labels
from jaxdp.validation import check_epsilon, check_flag, check_key, refuse_masked, refuse_private

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class PrivateLabels(NamedTuple):
    """Randomized-response reports, one for each label.

    Attributes:
        reports: [num_samples] int32 in {0, 1}.
        epsilons: [num_samples] float, the epsilon of each report; infinity for a non-private report.
        claim: the claim if all reports are released; its privacy unit is one label or one person.
    """

    reports: np.ndarray
    epsilons: np.ndarray
    claim: Guarantee

    @property
    def flip_probs(self) -> np.ndarray:
        """The probability that each report differs from its label, [num_samples] float in [0, 1/2]."""
        return expit(-self.epsilons)


def private_labels(
    labels: ArrayLike,
    epsilon: float,
    *,
    persons: ArrayLike | None = None,
    key: jax.Array | None = None,
    release: bool = False,
) -> PrivateLabels:
    """Reports each label once by randomized response, so that you may train any models on the reports.

    Training on reports is post-processing, which needs no privacy accountant. Public columns (prompts, responses,
    features) are not protected. No exception depends on the values of labels.

    Args:
        labels: [num_samples] in [0, 1]; 1 if the first item of the pair was preferred, 0 if the second, 1/2 for a tie.
            Before the label is randomized, a number p between 0 and 1 is replaced by 1 with probability p, else by 0.
            Numbers outside [0, 1] are clipped, and NaN counts as a tie.
        epsilon: the budget, > 0, of one label or, with `persons`, of one person. At infinity the labels 0 and 1 are
            reported unchanged.
        persons: [num_samples] public ids of the persons who gave the labels. If a person has k labels, each label has
            the budget epsilon / k. If None, each label has the budget epsilon, so a person with k labels has the budget
            k epsilon.
        key: PRNG key, for simulations. Keep it as secret as the labels. JAX's generator, Threefry, is not
            cryptographic.
        release: whether the reports are meant for untrusted people. If so, the reports are drawn from random words of
            the operating system instead of a key, by an integer threshold that is rounded towards more privacy. Keep
            the reports, because a second call would report the labels again and cost epsilon once more.

    Returns:
        The reports, the budget of each report, and the claim.

    Raises:
        ValueError: if labels are not a vector of real numbers, epsilon is not > 0 or is too small for JAX's default
            float type, or persons are not one id for each label, all text or all integers; if a key is given although
            release is True, or missing although release is False; or if epsilon is infinite in a release.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one label; with `persons`, all labels of one person. Adjacency: replace-one; persons' ids and the number
          of each person's labels are public.
        - Why: Reports are randomized independently. With `persons`, the k reports of a person have epsilon / k each and
          compose to epsilon.

    Source:
        Warner (1965); see `mechanisms.randomized_response`.

    Examples:
        >>> private = private_labels([1, 0, 0.5], epsilon=2.0, persons=["a", "a", "b"], key=jax.random.key(0))
        >>> print(private.claim, private.epsilons)
        2-DP, local, one person [1. 1. 2.]
    """
    epsilon = check_epsilon(epsilon)
    if check_flag("release", release) == (key is not None):
        key_text = "no key" if key is None else "a key"
        raise ValueError(f"key must be given if release is False, and only then, got {key_text} and release={release}")
    if release and epsilon == float("inf"):
        raise ValueError("epsilon must be finite for a release, got inf")
    refuse_masked("labels", labels)
    values = np.asarray(labels)
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise ValueError(f"labels must be a vector of real numbers, got {values.dtype} of shape {values.shape}")
    counts = np.ones(len(values), np.int64)
    if persons is not None:
        _, index, number = count_labels(persons)
        if index.shape != values.shape:
            raise ValueError(f"persons must have one id for each label, {len(values)}, got shape {index.shape}")
        counts = number[index]
    budgets = epsilon / counts
    chances = np.clip(np.nan_to_num(values.astype(float), nan=0.5), 0, 1)
    claim = label_randomizer().guarantee(epsilon=epsilon)
    if key is None:
        reports = _release(chances, epsilon, counts)
        claim = dataclasses.replace(claim, numerical_delta=0.0)
    else:
        key_ties, key_reports = jax.random.split(check_key(key))
        bits = jax.random.bernoulli(key_ties, jnp.asarray(chances, default_float())).astype(jnp.int32)
        shares = jnp.asarray(budget_shares(epsilon, counts))
        reports = _randomize(jax.random.split(key_reports, len(values)), bits, shares)
    if persons is not None:
        argument = "randomized response with epsilon / k for each of a person's k labels; ids and k are public"
        claim = dataclasses.replace(claim, privacy_unit="one person", unit="person", argument=argument)
    return PrivateLabels(np.asarray(reports), budgets, claim)


def _release(chances: np.ndarray, epsilon: float, counts: np.ndarray) -> np.ndarray:
    """Draws bits that are 1 with probabilities `chances`, and reports each bit by randomized response.

    The budget of a bit is exactly epsilon / count. Both draws use secret random words of the operating system. All
    arrays are [num_samples].
    """
    words = np.frombuffer(secrets.token_bytes(8 * len(chances)), np.uint64)
    bits = (words >> np.uint64(11)).astype(float) < chances * 2.0**53
    reports = np.empty(len(chances), np.int32)
    for count in np.unique(counts):  # one threshold for each budget
        is_chosen = counts == count
        reports[is_chosen] = secret_randomized_response(bits[is_chosen], Fraction(epsilon) / int(count))
    return reports


@jax.jit
@jax.vmap
def _randomize(key: jax.Array, label: jax.Array, epsilon: jax.Array) -> jax.Array:
    return randomized_response(key, label, epsilon)


def debiased_loss(margins: ArrayLike, reports: ArrayLike, epsilon: ArrayLike) -> jax.Array:
    """Returns unbiased estimates of the logistic loss of labels, computed from the labels' reports.

    The estimate at margin m is log(1 + e^m) - y m, where y = 1/2 + (report - 1/2) / tanh(epsilon / 2) is an unbiased
    estimate of the label. At any margin, the expectation of the estimate over the noise of the report is the loss of
    the label. The estimate may be negative. Its variance, m^2 / (4 sinh(epsilon / 2)^2), grows with the margin, so at
    small epsilon models without a bound on margins need weight decay or early stopping. You can differentiate and jit
    the function. The mean estimate of a linear model is convex in the model's parameters.

    Args:
        margins: [...] numbers, the model's log odds that the first item of the pair is preferred. They are the
            difference of two rewards or, for DPO, beta times the difference of two log ratios, of the policy to its
            reference.
        reports: [...] integers in {0, 1}.
        epsilon: [] or [...] float > 0, the epsilon of each report. A wrong value makes the loss biased.

    Returns:
        [...] float, the estimate from each report, at least in JAX's default precision.

    Raises:
        ValueError: if shapes do not match; if reports are not 0 or 1, or epsilon is not > 0 or is too small for floats
            (JAX arrays are not checked); or if an entry is masked or not a real number.

    Privacy:
        - Post-processing of reports, which costs no privacy.

    Source:
        Natarajan et al. (2013), Lemma 1; Ray Chowdhury, Kini & Natarajan (2024), arXiv 2403.00409, for DPO. The loss
        `loss_type="robust"` of TRL's DPO trainer, with the flip probability as `label_smoothing`, is this estimate.

    Examples:
        >>> losses = debiased_loss(jnp.array([0.5, 0.5]), jnp.array([1, 0], jnp.int32), jnp.inf)
        >>> [f"{loss:.3f}" for loss in losses]
        ['0.474', '0.974']
    """
    for name, values in (("margins", margins), ("reports", reports), ("epsilon", epsilon)):
        refuse_masked(name, values)
    is_checked = not isinstance(reports, jax.Array)  # reading an array's values would wait for the device
    margins, reports = jnp.asarray(margins), jnp.asarray(reports)
    has_arrays = any(isinstance(entry, jax.Array) for entry in jax.tree.leaves(epsilon))  # maybe traced ones in a list
    epsilon = jnp.asarray(epsilon) if has_arrays else np.asarray(epsilon)
    for name, values in (("margins", margins), ("reports", reports), ("epsilon", epsilon)):
        if not any(jnp.issubdtype(values.dtype, kind) for kind in (jnp.bool_, jnp.integer, jnp.floating)):
            raise ValueError(f"{name} must be real numbers, got {values.dtype}")
    if is_checked and not isinstance(reports, Tracer):  # a list may have traced entries
        refuse_private("reports", "0 or 1", ~np.isin(np.asarray(reports), (0, 1)))
    dtype = (
        jnp.float64 if margins.dtype == jnp.float64 else default_float()
    )  # not epsilon's dtype, because float16 would round epsilon
    least = 2 * float(jnp.finfo(dtype).tiny)  # devices take the half of a smaller number as 0
    if isinstance(epsilon, np.ndarray) and not (epsilon.astype(float) >= least).all():
        raise ValueError(f"epsilon must be > 0, and at least {least:.3g} for floats, got {epsilon.min():g}")
    if reports.shape != margins.shape or epsilon.shape not in ((), margins.shape):
        raise ValueError(
            f"reports must have the shape of margins, {margins.shape}, and epsilon this shape or (), got "
            f"{reports.shape} and {epsilon.shape}"
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
    """Writes reported preferences as JSON lines, with the columns of TRL's DPO trainer and the flip probability.

    Each line has `prompt`, `chosen`, `rejected` and `flip_prob`. `chosen` is the response that the report prefers; the
    label may prefer the other response. If all flip probabilities are equal, pass this number to TRL as
    `label_smoothing` with `loss_type="robust"`.

    Args:
        private: the reports.
        path: path of the new file.
        prompts: [num_samples] texts.
        first: [num_samples] texts, the responses that label 1 prefers.
        second: [num_samples] texts, the other responses.

    Raises:
        ValueError: if a column and the reports differ in length, or a text has a lone surrogate, which UTF-8 cannot
            encode.
        FileExistsError: if the file exists.
        OSError: if the file cannot be written.
    """
    columns = {"prompts": prompts, "first": first, "second": second}
    for name, column in columns.items():
        if len(column) != len(private.reports):
            raise ValueError(f"{name} must have one text for each report, {len(private.reports)}, got {len(column)}")
        for row, text in enumerate(column):
            if isinstance(text, str) and _LONE_SURROGATE.search(text):
                raise ValueError(f"{name} must be texts that UTF-8 can encode, got {text!r} in row {row}")
    rows = zip(prompts, first, second, private.reports.tolist(), private.flip_probs.tolist(), strict=True)
    lines = []
    for prompt, first_text, second_text, report, flip_prob in rows:
        chosen, rejected = (first_text, second_text) if report else (second_text, first_text)
        row = {"prompt": prompt, "chosen": chosen, "rejected": rejected, "flip_prob": flip_prob}
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    data = "".join(lines).encode()
    with Path(path).open("xb") as file:  # opened last: an error in a row leaves no file
        file.write(data)
