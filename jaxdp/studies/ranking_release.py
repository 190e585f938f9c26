"""One private ranking for publication: the only output of the ranking study that private data may leave by."""

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
from jaxdp.studies.command import columns, root_key
from jaxdp.validation import check_epsilon, check_number

FAILURE_PROB = 0.05
LARGEST_ABILITY = 3.0  # root mean square over items, in log odds: the bound that is used where none is given
LARGEST_DELTA = 1e-6  # where none is given
ON_THE_BOUND = 0.999  # of the radius
PAIRS_OF_BALLOTS = "A whole ballot makes many comparisons and is not protected, nor is whom it ranks."
READINGS = {
    "unknown": "Ballots are read as silent about items that they leave out; elections count these as beaten"
    " (--unranked last).",
    "last": "Items that a ballot leaves out are read as beaten by those that it ranks.",
}


def default_radius(num_items: int) -> float:
    """The bound on the norm of the abilities where none is given: a function of the number of items alone."""
    return LARGEST_ABILITY * math.sqrt(num_items)


def default_delta(num_records: int) -> float:
    """Returns the failure mass of Gaussian noise where none is given: far below 1 / num_records, which is public."""
    return min(LARGEST_DELTA, num_records**-1.5)


def release_key(seed: int | None) -> jax.Array:
    """The key of a release: all 64 bits of it from the operating system's entropy, or that of a seed.

    Args:
        seed: in [0, 2**32), for a release that can be made again. Whoever knows it, or tries out all of them, takes the
            noise out: the release is then not private. None for fresh entropy, which nobody keeps.

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
    """One ranking with central privacy, and the interval of every pair of items' difference.

    Private is the outcome of one comparison. What is public is read as it is: the items and their order in the table,
    which pairs were compared and how often (and so the number of comparisons). The default radius depends on the number
    of items alone; epsilon, delta, failure_prob and the rest are to be chosen without looking at the outcomes. Where
    comparisons come from ballots (`ballots.comparisons()`), whom a voter ranked is public in this unit, and a voter who
    made k comparisons is protected at k epsilon at best.

    A whole ballot as the unit is refused: its estimators count half wins where a ballot says nothing, for which there
    is no confidence set.

    The intervals are about both privacy's noise and the comparisons' own sampling error, for all pairs at once, and
    take the truth to lie within the radius. Where there are enough comparisons they are proved (`provable_curvature`).
    Elsewhere they take the logistic curvature to be at least the least one of the compared pairs at the released
    abilities, which is a plug-in and no proof: with 10 to 20 comparisons of two items at odds of 300 to 1 and Gaussian
    noise such intervals held in 85% to 89% of 3000 runs (epsilon 0.5 to 1) where 95% were asked for, with K-norm noise,
    or more items or comparisons, in 94% and more.
    A curvature that is assumed without looking, such as 1/4, misses the truth where abilities are far apart.

    The noise is the one of smaller predicted error of the abilities, Gaussian or K-norm, which depends on epsilon,
    delta and the number of items alone (`quieter_noise`). With K-norm noise intervals may be wider, by up to a fifth,
    as its tails are heavier; in exchange there is no delta.

    Args:
        data: who was compared with whom, and who won.
        epsilon: privacy budget, in (0, inf).
        delta: of Gaussian noise, in (0, 1); or 0, for K-norm noise. None is `default_delta` of the number of
            comparisons.
        radius: bound on the norm of the abilities (log odds, mean zero), > 0; None is 3 sqrt(number of items).
        failure_prob: that some interval misses, in (0, 1).
        curvature: in [0, 1/4], to assume; 0 is what can always be proved, and holds nearly everything. None is as
            above.
        key: secret; `release_key` makes one.

    Returns:
        A dataset with `ability` (item; log odds with mean zero), `rank` (item; 1 is best), `low` and `high` (item,
        other; of the ability of item minus that of other, 0 on the diagonal), `curvature`, whether intervals are
        `proved`, `converged` and `num_comparisons`; epsilon, delta (0 with K-norm noise), `noise` ("gaussian" or
        "k_norm"), radius and failure_prob as coordinates.

    Raises:
        ValueError: if data are whole ballots, epsilon is not finite, another value is out of range, or items fall into
            groups that were never compared with one another.

    Privacy:
        - Claim: (epsilon, delta)-DP in the central model, with K-norm noise epsilon-DP.
        - Unit: the outcome of one comparison; adjacency: replace one.
        - Why: All that is returned is post-processing of one noisy statistic and of what is public, which decides the
          kind of noise. The claim takes the key to be secret; JAX's generator is no cryptographic one. Every further
          release of the same data adds its own epsilon.

    Source:
        As `objective_perturbation` and `confidence_set`.

    Deviations:
        The curvature.
    """
    check_number("epsilon", check_epsilon(epsilon))
    if delta is None:
        delta = default_delta(data.num_ballots if isinstance(data, Ballots) else data.num_comparisons)
    noise_name = quieter_noise(epsilon=epsilon, delta=delta, dim=max(1, len(data.items) - 1))
    name, estimator = _central(data, noise_name)
    if estimator.noise is None or isinstance(data, Ballots):
        raise ValueError(
            f"data must be comparisons for a release, as {name} has no confidence sets, got whole ballots; --unit pair "
            "(ballots.comparisons()) protects one comparison, which is less"
        )
    radius = default_radius(len(data.items)) if radius is None else check_number("radius", radius)
    values = {"radius": radius, "failure_prob": failure_prob, "curvature": 0.0 if curvature is None else curvature}
    budget = {"epsilon": epsilon, "delta": delta} if noise_name == "gaussian" else {"epsilon": epsilon}
    params = with_confidence(estimator).params(**budget, **values)
    check_connected("data", data)
    features, labels = data.design()
    fit = estimate(estimator, features, labels, key=key, **budget, radius=radius)
    del labels  # all that follows is post-processing
    public = jnp.asarray(features, fit.theta.dtype)
    noise, proved = estimator.noise(params.inner, public), curvature == 0
    if curvature is None:
        values["curvature"] = float(least_curvature(public, fit.theta))
    leaves = {leaf: jnp.asarray(value, public.dtype) for leaf, value in {"ridge": 0.0, **values}.items()}
    found = confidence_set(fit.theta, public, noise, **leaves)
    if curvature is None:
        provable = provable_curvature(found, public, leaves["curvature"])
        proved = bool(provable > 0)
        if proved:
            values["curvature"] = float(provable)
            found = confidence_set(fit.theta, public, noise, **{**leaves, "curvature": provable})
    if np.isnan(found.width) and np.isfinite(fit.theta).all():
        raise ValueError(
            f"data must connect items by more than long chains in {public.dtype}, got a second moment that is singular"
            " to rounding; 64-bit floats (JAX_ENABLE_X64=1) may do"
        )
    low, high = (np.asarray(end) for end in found.interval(jnp.asarray(pair_features(len(data.items)), public.dtype)))
    released = _dataset(data.items, np.asarray(fit.theta), low, high)
    known = {"curvature": values.pop("curvature"), "proved": proved, "converged": bool(fit.converged)}
    released = released.assign({**known, "num_comparisons": data.num_comparisons})
    return released.assign_coords({"delta": 0.0, **budget, "noise": noise_name, **values})


def least_curvature(features: jax.Array, theta: jax.Array) -> jax.Array:
    """The least curvature of the logistic link at these comparisons and abilities, in [0, 1/4]: [] float.

    Args:
        features: [num_comparisons, num_items] float.
        theta: [num_items] float.
    """
    margins = jnp.matmul(features, theta, precision="highest")
    return jnp.min(jax.nn.sigmoid(margins) * jax.nn.sigmoid(-margins))


def provable_curvature(found: ConfidenceSet, features: jax.Array, curvature: jax.Array) -> jax.Array:
    """A curvature with which a set around an estimate is proved, given the least one at the estimate.

    Along the segment from the truth to the estimate, which are D apart, a comparison's margin changes by at most c |D|,
    c = max |x_i|_(1/shape), and the logistic curvature by a factor of at most exp(-change) (it is self-concordant). So
    its mean over the segment is at least curvature (1 - exp(-c |D|)) / (c |D|), and |D| times that is at most G, the
    bound on the gradient at the truth: c |D| <= -ln(1 - u) for u = c G / curvature, if u < 1.

    Args:
        found: the set with ridge 0 that takes this curvature for granted, of width G / curvature.
        features: [num_comparisons, num_items] float.
        curvature: [] float, of all comparisons at the estimate.

    Returns:
        [] float; 0 where u >= 1, with too few comparisons or too much noise for this argument.
    """
    change = found.width * jnp.max(jnp.linalg.norm(found.whitened(features), axis=-1))
    return jnp.where(change < 1, curvature * change / -jnp.log1p(-jnp.minimum(change, 1)), 0)


def _central(data: ComparisonTable | Ballots, noise: str) -> tuple[str, Estimator]:
    if isinstance(data, Ballots):
        return "ballot_objective_perturbation", ballot_objective_perturbation(noise=noise)
    return "objective_perturbation", objective_perturbation(noise=noise, zero_sum=True)


def _dataset(items: tuple[str, ...], theta: np.ndarray, low: np.ndarray, high: np.ndarray) -> xr.Dataset:
    """The ranking by theta, and the intervals of all pairs, both ways round."""
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
    """What the command prints: the ranking, its intervals, and what is claimed and assumed.

    Args:
        released: of `ranking_release`.
        fresh: whether the key is of fresh entropy, and not of a seed.
        of_ballots: whether the comparisons are those of ballots.
        unranked: how items were read that a ballot leaves out. Who is first otherwise, and how many ballots are silent,
            is private and is not printed.
    """
    epsilon, delta, count = float(released.epsilon), float(released.delta), int(released.num_comparisons)
    if released.noise.item() == "k_norm":
        claim, noise = f"pure {epsilon:g}", "K-norm noise, the one of smaller predicted error here; it needs no δ."
    else:
        claim, noise = f"({epsilon:g}, {delta:g})", "Gaussian noise, the one of smaller predicted error here. "
        noise += f"δ is {delta * count:.2g} / number of comparisons."
    order = np.argsort(released["rank"].values)
    abilities, names = released.ability.values[order], released["item"].values[order]

    def lead(ahead: int, behind: int) -> str:
        places = {"item": order[ahead], "other": order[behind]}
        low, high = (float(released[end].isel(places)) for end in ("low", "high"))
        return f"{abilities[ahead] - abilities[behind]:.2f} ({low:.2f} to {high:.2f})"

    rows = [["rank  item", "ability", "lead over the next", "the first one's lead over it"]]
    last = len(order) - 1
    for place, name in enumerate(names):
        after, before = (lead(place, place + 1) if place < last else ""), (lead(0, place) if place else "")
        rows.append([f"{place + 1:>4}  {name}", f"{abilities[place] - abilities[-1]:.2f}", after, before])
    apart = int((released.low > 0).sum())
    confidence = 1 - float(released.failure_prob)
    parts = [
        f"A private ranking of {len(order)} items: {claim}-differential privacy, central model.\n"
        "Private: the outcome of one comparison. Public, and read as they are: the items, which pairs were compared"
        f" and how\noften ({count} comparisons). All else comes from one noisy statistic:\n{noise}"
        + (f"\n{PAIRS_OF_BALLOTS}\n{READINGS[unranked]}" if of_ballots else ""),
        "\n".join(columns(rows)),
        "Abilities: log odds above the last item. Leads: log odds that the one item beats the other.\n"
        f"Intervals: {confidence:.0%} {'confidence' if bool(released.proved) else 'asked for'}, for all pairs together,"
        " over privacy's noise and the comparisons' own\nsampling error, if the abilities' norm is at most"
        f" {float(released.radius):.4g} (--radius). "
        + _of_proof(bool(released.proved), float(released.curvature))
        + f"Told apart, by an interval without 0: {apart} of {last * (last + 1) // 2} pairs.",
        "Every further release of the same data spends a budget of its own, which adds to this one.\n" + _of_key(fresh),
    ]
    if delta * count > 1:
        parts.append(
            f"WARNING: δ = {delta:g} is above 1 / number of comparisons, {1 / count:.2g}: a mechanism that publishes"
            " some comparisons as\nthey are satisfies such a claim, so that it protects little. Leave --delta out: it"
            f" is {default_delta(count):.2g} then."
        )
    if not bool(released.converged):
        parts.append("note: the minimisation stopped before its tolerance.")
    if np.linalg.norm(released.ability) >= ON_THE_BOUND * float(released.radius):
        parts.append(
            f"note: the abilities lie on their bound (--radius {float(released.radius):.4g}), as noise alone can do:"
            " little was learned."
        )
    return "\n\n".join(parts)


def _of_proof(proved: bool, curvature: float) -> str:
    if proved:
        return "They are proved.\n"
    return (
        f"They assume a logistic curvature of at least {curvature:.2g},\nthe least at the released abilities:"
        " plausible, not proved. With few comparisons at extreme odds they hold less often.\n"
    )


def _of_key(fresh: bool) -> str:
    if fresh:
        return "The noise came from the operating system's entropy, which nobody kept."
    return (
        "WARNING: the noise was drawn from a given --seed. Whoever knows the seed, or tries out all 2^32 of them, takes"
        " the noise\nout, and privacy is undone: do not publish this. Leave --seed out for a release."
    )
