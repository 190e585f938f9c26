"""Releases one private ranking, which is the only output of the ranking study that may be published."""

import math
import secrets

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from jaxdp.core import Estimator
from jaxdp.estimation import (
    ConfidenceSet,
    ballot_objective_perturbation,
    confidence_set,
    estimate,
    objective_perturbation,
    quieter_noise,
    with_confidence,
)
from jaxdp.preferences import Ballots, ComparisonTable, pair_features
from jaxdp.preferences.ballots import pair_indices
from jaxdp.preferences.connected import check_connected
from jaxdp.studies.command import root_key
from jaxdp.studies.tables import columns
from jaxdp.validation import check_epsilon, check_number

FAILURE_PROB = 0.05
LARGEST_ABILITY = 3.0  # default bound on the root mean square ability, in log odds
LARGEST_DELTA = 1e-6  # maximum of the default delta
ON_THE_BOUND = 0.999  # abilities are on their bound if their norm is at least this number times the radius
PAIRS_OF_BALLOTS = "A whole ballot makes many comparisons. It is not protected, nor are the items that it ranks."
READINGS = {
    "unknown": "Items that a ballot leaves out are not compared; elections count them as beaten (--unranked last).",
    "last": "Items that a ballot leaves out count as beaten by the items that it ranks.",
}


def default_radius(num_items: int) -> float:
    """Returns the default bound on the norm of the abilities, which depends only on the number of items."""
    return LARGEST_ABILITY * math.sqrt(num_items)


def default_delta(num_records: int) -> float:
    """Returns the default delta of Gaussian noise, at most 0.01 / num_records; num_records must be public."""
    return min(LARGEST_DELTA, num_records**-1.5)


def release_key(seed: int | None) -> jax.Array:
    """Returns the key of a release, from a seed or from 64 bits of the operating system's entropy.

    Args:
        seed: in [0, 2**32), for a reproducible release. Anyone who knows the seed, or tries all seeds, can remove the
            noise, so the release is not private. None for fresh entropy, which is not stored.

    Raises:
        ValueError: if seed is out of range.
    """
    if seed is not None:
        return root_key(seed)
    words = np.frombuffer(secrets.token_bytes(8), np.uint32)  # a seed of `jax.random.key` has 32 bits
    return jax.random.wrap_key_data(jnp.asarray(words), impl="threefry2x32")


def ranking_release(
    data: ComparisonTable | Ballots,
    *,
    epsilon: float,
    delta: float | None = None,
    radius: float | None = None,
    failure_prob: float = FAILURE_PROB,
    curvature: float | None = None,
    key: jax.Array,
) -> xr.Dataset:
    """Releases one ranking with central privacy, and an interval for the difference of every pair of items.

    The privacy unit is the outcome of one comparison. The items, their order in the table, the number of comparisons,
    and how often each pair was compared are public and used exactly. The default radius depends only on the number of
    items. Choose epsilon, delta, failure_prob, radius and curvature without looking at the outcomes. If comparisons
    come from ballots (`ballots.comparisons()`), the items that a voter ranked are public in this unit, and a voter who
    made k comparisons is protected at best at k epsilon.

    Whole ballots are rejected, because estimators for ballots count half wins for pairs that a ballot does not compare,
    and have no confidence set.

    The intervals cover the privacy noise and the sampling error of the comparisons, simultaneously for all pairs, and
    assume that the norm of the true abilities is at most the radius. With enough comparisons their coverage is proved
    (`provable_curvature`). Otherwise they assume that the logistic curvature is at least the smallest curvature of the
    compared pairs at the released abilities. This is plausible, but not proved. With 10 to 20 comparisons of two items
    at odds of 300 to 1 and Gaussian noise, such intervals covered the truth in 85% to 89% of 3000 runs (epsilon 0.5 to
    1; target 95%). With K-norm noise, or with more items or comparisons, they covered the truth in at least 94%. With a
    curvature that is assumed in advance, such as 1/4, intervals miss the truth if abilities are far apart.

    The function chooses Gaussian or K-norm noise, whichever has the smaller predicted error of the abilities. The
    prediction depends only on epsilon, delta and the number of items (`quieter_noise`). K-norm noise needs no delta,
    but it has heavier tails, so its intervals may be wider, by up to a fifth.

    Args:
        data: the comparisons and their outcomes.
        epsilon: privacy budget, in (0, inf).
        delta: delta of Gaussian noise, in (0, 1); 0 for K-norm noise. None chooses `default_delta` of the number of
            comparisons.
        radius: bound on the norm of the abilities (log odds, mean zero), > 0. None chooses 3 sqrt(number of items).
        failure_prob: probability that any interval misses the truth, in (0, 1).
        curvature: curvature to assume, in [0, 1/4]. With 0, the curvature follows from the radius: the coverage is
            always proved, but the intervals are very wide. None chooses a curvature as described above.
        key: a secret key; `release_key` makes one.

    Returns:
        A dataset with `ability` (item; log odds with mean zero), `rank` (item; 1 is best), `low` and `high` (item,
        other; interval for the ability of item minus the ability of other, 0 on the diagonal), `curvature`, `proved`
        (whether the coverage is proved), `converged` and `num_comparisons`. Coordinates are epsilon, delta (0 with
        K-norm noise), `noise` ("gaussian" or "k_norm"), radius and failure_prob.

    Raises:
        ValueError: if data are whole ballots, epsilon is not finite, another value is out of range, comparisons do not
            connect all items, or comparisons connect items only by chains so long that the second moment of the
            features is singular up to rounding.

    Privacy:
        - Claim: (epsilon, delta)-DP in the central model, with K-norm noise epsilon-DP.
        - Unit: the outcome of one comparison; adjacency: replace one outcome.
        - Why: All results are post-processing of one noisy statistic and of public values; public values determine the
          kind of noise. The claim assumes that the key is secret; JAX's generator is not cryptographic. Every further
          release of the same data adds the epsilon of that release.

    Source:
        See `objective_perturbation` and `confidence_set`.

    Deviations:
        If `curvature` is None, intervals use a curvature that is proved from the smallest curvature at the released
        abilities or, if there is no proof, assume this smallest curvature.
    """
    check_number("epsilon", check_epsilon(epsilon))
    if delta is None:
        delta = default_delta(data.num_ballots if isinstance(data, Ballots) else data.num_comparisons)
    noise_name = quieter_noise(epsilon=epsilon, delta=delta, dim=max(1, len(data.items) - 1))
    estimator_name, estimator = _central(data, noise_name)
    if estimator.noise is None or isinstance(data, Ballots):
        raise ValueError(
            f"data must be comparisons for a release, as {estimator_name} has no confidence sets, got whole ballots; "
            "--unit pair (ballots.comparisons()) protects only one comparison"
        )
    radius = default_radius(len(data.items)) if radius is None else check_number("radius", radius)
    values = {"radius": radius, "failure_prob": failure_prob, "curvature": 0.0 if curvature is None else curvature}
    budget = {"epsilon": epsilon, "delta": delta} if noise_name == "gaussian" else {"epsilon": epsilon}
    params = with_confidence(estimator).params(**budget, **values)
    check_connected("data", data)
    features, labels = data.design()
    fit = estimate(estimator, features, labels, key=key, **budget, radius=radius)
    del labels  # everything below is post-processing
    public = jnp.asarray(features, fit.theta.dtype)
    noise, proved = estimator.noise(params.inner, public), curvature == 0
    if curvature is None:
        values["curvature"] = float(least_curvature(public, fit.theta))
    leaves = {leaf: jnp.asarray(value, public.dtype) for leaf, value in {"ridge": 0.0, **values}.items()}
    confidence = confidence_set(fit.theta, public, noise, **leaves)
    if curvature is None:
        provable = provable_curvature(confidence, public, leaves["curvature"])
        proved = bool(provable > 0)
        if proved:
            values["curvature"] = float(provable)
            confidence = confidence_set(fit.theta, public, noise, **{**leaves, "curvature": provable})
    if np.isnan(confidence.width) and np.isfinite(fit.theta).all():
        raise ValueError(
            f"data must connect items by more than long chains in {public.dtype}, got a second moment that is singular"
            " up to rounding; try 64-bit floats (JAX_ENABLE_X64=1)"
        )
    low, high = (
        np.asarray(end) for end in confidence.interval(jnp.asarray(pair_features(len(data.items)), public.dtype))
    )
    released = _dataset(data.items, np.asarray(fit.theta), low, high)
    diagnostics = {"curvature": values.pop("curvature"), "proved": proved, "converged": bool(fit.converged)}
    released = released.assign({**diagnostics, "num_comparisons": data.num_comparisons})
    return released.assign_coords({"delta": 0.0, **budget, "noise": noise_name, **values})


def least_curvature(features: jax.Array, theta: jax.Array) -> jax.Array:
    """Returns the smallest curvature of the logistic loss over comparisons, a scalar in [0, 1/4].

    The curvature is the derivative of the sigmoid at features @ theta, with features [n, num_items].
    """
    margins = jnp.matmul(features, theta, precision="highest")
    return jnp.min(jax.nn.sigmoid(margins) * jax.nn.sigmoid(-margins))


def provable_curvature(assumed: ConfidenceSet, features: jax.Array, curvature: jax.Array) -> jax.Array:
    """Returns a curvature for which the confidence set's coverage is proved; 0 if there is no proof.

    Let |D| be the distance of the truth from the estimate in the norm of the confidence set, and c the largest whitened
    norm of a comparison's features. Between truth and estimate, the margin of a comparison changes by at most c |D|.
    The logistic curvature decreases at most by the factor exp(-change), because the logistic loss is self-concordant.
    So the mean curvature between truth and estimate is at least curvature * (1 - exp(-c |D|)) / (c |D|). This mean
    times |D| is at most G, the bound on the gradient at the truth. With u = c G / curvature < 1, it follows that
    c |D| <= -ln(1 - u), and so the mean curvature is at least curvature * u / -ln(1 - u), which is the result.

    Args:
        assumed: the confidence set with ridge 0 that assumes `curvature`; its width is G / curvature.
        features: [num_comparisons, num_items] float.
        curvature: [] float, the smallest curvature over all comparisons at the estimate.

    Returns:
        [] float; 0 if u >= 1, which happens with too few comparisons or too much noise.
    """
    change = assumed.width * jnp.max(jnp.linalg.norm(assumed.whitened(features), axis=-1))
    return jnp.where(change < 1, curvature * change / -jnp.log1p(-jnp.minimum(change, 1)), 0)


def _central(data: ComparisonTable | Ballots, noise: str) -> tuple[str, Estimator]:
    if isinstance(data, Ballots):
        return "ballot_objective_perturbation", ballot_objective_perturbation(noise=noise, max_dim=len(data.items))
    return "objective_perturbation", objective_perturbation(noise=noise, zero_sum=True, max_dim=len(data.items))


def _dataset(items: tuple[str, ...], theta: np.ndarray, low: np.ndarray, high: np.ndarray) -> xr.Dataset:
    """Returns a dataset of abilities, ranks, and intervals for all ordered pairs of items.

    `low` and `high` [num_pairs] are limits for the ability of the first item minus the ability of the second item.
    """
    least, largest = (np.zeros((len(items), len(items)), theta.dtype) for _ in range(2))
    first, second = pair_indices(len(items)).T
    least[first, second], largest[first, second] = low, high
    least[second, first], largest[second, first] = -high, -low
    ability = theta - theta.mean()
    rank = np.empty(len(items), np.int32)
    rank[np.argsort(-ability, kind="stable")] = np.arange(1, len(items) + 1)
    variables = {
        "ability": ("item", ability),
        "rank": ("item", rank),
        "low": (("item", "other"), least),
        "high": (("item", "other"), largest),
    }
    return xr.Dataset(variables, {"item": list(items), "other": list(items)})


def release_report(released: xr.Dataset, *, fresh: bool, of_ballots: bool, unranked: str = "unknown") -> str:
    """Formats the ranking, its intervals, its claim and its assumptions.

    Args:
        released: a dataset of `ranking_release`.
        fresh: whether the key comes from fresh entropy instead of a seed.
        of_ballots: whether the comparisons come from ballots.
        unranked: how the comparisons treat items that a ballot leaves out, "unknown" or "last". The report contains
            neither the winner for the other choice nor the number of ballots without a comparison, because both are
            private.
    """
    epsilon, delta, count = float(released.epsilon), float(released.delta), int(released.num_comparisons)
    if released.noise.item() == "k_norm":
        claim, noise = f"pure {epsilon:g}", "K-norm noise, which has the smaller predicted error here; it needs no δ."
    else:
        claim, noise = f"({epsilon:g}, {delta:g})", "Gaussian noise, which has the smaller predicted error here. "
        noise += f"δ is {delta * count:.2g} / number of comparisons."
    order = np.argsort(released["rank"].values)
    abilities, names = released.ability.values[order], released["item"].values[order]

    def lead(ahead: int, behind: int) -> str:
        pair = {"item": order[ahead], "other": order[behind]}
        low, high = (float(released[end].isel(pair)) for end in ("low", "high"))
        return f"{abilities[ahead] - abilities[behind]:.2f} ({low:.2f} to {high:.2f})"

    rows = [["rank  item", "ability", "lead over the next item", "lead of the first item over it"]]
    last = len(order) - 1
    for index, name in enumerate(names):
        lead_over_next, lead_of_first = (
            (lead(index, index + 1) if index < last else ""),
            (lead(0, index) if index else ""),
        )
        ability = f"{abilities[index] - abilities[-1]:.2f}"
        rows.append([f"{index + 1:>4}  {name}", ability, lead_over_next, lead_of_first])
    num_separated = int((released.low > 0).sum())
    confidence = 100 * (1 - float(released.failure_prob))
    parts = [
        f"A private ranking of {len(order)} items: {claim}-differential privacy, central model.\n"
        "Private: the outcome of one comparison. Public, and used exactly: the items, which pairs were compared"
        f" and how\noften ({count} comparisons). Everything else comes from one noisy statistic:\n{noise}"
        + (f"\n{PAIRS_OF_BALLOTS}\n{READINGS[unranked]}" if of_ballots else ""),
        "\n".join(columns(rows)),
        "Abilities: log odds above the last item. Leads: log odds that one item beats the other.\n"
        f"Intervals: {confidence:.12g}% {'confidence' if bool(released.proved) else 'target'}, for all pairs together,"
        " over the privacy noise and the sampling\nerror of the comparisons, if the norm of the abilities is at most"
        f" {float(released.radius):.4g} (--radius). "
        + _proof_text(bool(released.proved), float(released.curvature))
        + f"Pairs with an interval that excludes 0: {num_separated} of {last * (last + 1) // 2}.",
        "Every further release of the same data has a budget, which adds to this budget.\n" + _key_text(fresh),
    ]
    if delta * count > 1:
        parts.append(
            f"WARNING: δ = {delta:g} is above 1 / number of comparisons, {1 / count:.2g}: a mechanism that publishes"
            " some comparisons\nunchanged satisfies such a claim, so it protects little. Without --delta, δ is"
            f" {default_delta(count):.2g}."
        )
    if not bool(released.converged):
        parts.append("note: the minimisation stopped before it reached its tolerance.")
    if np.linalg.norm(released.ability) >= ON_THE_BOUND * float(released.radius):
        parts.append(
            f"note: the abilities lie on their bound (--radius {float(released.radius):.4g}), which noise can"
            " cause: the ranking carries little information."
        )
    return "\n\n".join(parts)


def _proof_text(proved: bool, curvature: float) -> str:
    if proved:
        return "They are proved.\n"
    return (
        f"They assume a logistic curvature of at least {curvature:.2g},\nthe smallest at the released abilities:"
        " this is plausible, not proved. With few comparisons at extreme odds they hold less often.\n"
    )


def _key_text(fresh: bool) -> str:
    if fresh:
        return "The noise came from the operating system's entropy, which was not stored."
    return (
        "WARNING: the noise was drawn from a given --seed. Anyone who knows the seed, or tries all 2^32 seeds, can"
        " remove\nthe noise, and with it privacy: do not publish this. Leave --seed out for a release."
    )
