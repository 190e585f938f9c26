"""What privacy costs optimistic learners of linear models on a user's own contexts and rewards."""

import os
import warnings
import zipfile
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.bandits.contextual import context_sequence, logged_contexts, on_logged
from jaxdp.bandits.contextual._uniform_log import REFUTED, NonuniformLogWarning
from jaxdp.core import Environment
from jaxdp.preferences.files import file_error, short_repr
from jaxdp.simulation import Run, simulator
from jaxdp.studies import comparison as shared
from jaxdp.studies.command import mean_and_half_width
from jaxdp.studies.linear_learners import LEARNERS, at_delta, check_learners, labels_of, refused

TILE_SIZE = 32
NOT_PRIVATE = "a simulation: not private"


class Data(NamedTuple):
    """Contexts of a user, and what was paid.

    Attributes:
        contexts: [horizon, num_arms, dim] numbers, each of norm at most 1.
        rewards: [horizon, num_arms], what every arm pays; or [horizon], what the logged ones paid.
        actions: [horizon] whole numbers, the logged arms; None where rewards of all arms are known.
    """

    contexts: np.ndarray
    rewards: np.ndarray
    actions: np.ndarray | None = None


def read_contexts(path: str | os.PathLike[str]) -> Data:
    """Reads contexts and rewards from an `.npz` file, as `numpy.savez` writes it, or contexts from an `.npy` file.

    An `.npz` file holds `contexts` [horizon, num_arms, dim], and either `rewards` [horizon, num_arms], or `actions`
    [horizon] and `rewards` [horizon] as logged. An `.npy` file, as `numpy.save` writes it, is the array of contexts
    alone; every arm then pays what a linear model says, see `linear_rewards`. What they hold is checked by
    `context_sequence` and `logged_contexts`.

    Args:
        path: the file.

    Returns:
        The arrays.

    Raises:
        ValueError: if the file is malformed, lacks an array or has one of another name, with the file and the reason.
        OSError: if it cannot be read, such as FileNotFoundError.
    """
    name = os.fspath(path)
    try:
        loaded = np.load(name, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            names, found = ["contexts"], {"contexts": loaded}
        else:
            with loaded as file:
                names, found = file.files, {key: file[key] for key in Data._fields if key in file.files}
    except (ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        raise file_error(
            name, "data", f"not a readable npz or npy file of numbers ({short_repr(str(error))})"
        ) from error
    if isinstance(loaded, np.ndarray):
        if loaded.ndim != 3 or not loaded.size or loaded.dtype.kind not in "biuf":
            raise file_error(
                name, "data", f"contexts must be numbers [T, K, d], got shape {loaded.shape} of {loaded.dtype}"
            )
        return Data(loaded, linear_rewards(loaded))
    _check_names(name, names)
    for key in ("contexts", "rewards"):
        if key not in found:
            raise file_error(name, "data", f"{key} must be among its arrays")
    axes = 2 if "actions" not in found else 1
    if found["contexts"].ndim != 3 or found["rewards"].ndim != axes:
        raise file_error(
            name,
            "data",
            "contexts must be [T, K, d], and rewards [T, K], or [T] with actions [T], got shapes "
            + ", ".join(f"{key} {value.shape}" for key, value in found.items()),
        )
    return Data(**found)


def _check_names(name: str, arrays: Sequence[str]) -> None:
    """Refuses arrays that would be ignored."""
    unknown = [array for array in arrays if array not in Data._fields]
    if "propensities" in unknown:
        raise file_error(name, "data", "propensities are not supported yet: logged arms must have been drawn uniformly")
    if unknown:
        raise file_error(
            name, "data", f"arrays must be {', '.join(Data._fields)}, got {', '.join(map(short_repr, unknown))}"
        )


def linear_rewards(contexts: np.ndarray) -> np.ndarray:
    """What arms pay on contexts without rewards: x . theta, without noise, theta a point of the sphere of radius 1/2.

    Args:
        contexts: [horizon, num_arms, dim] numbers.

    Returns:
        [horizon, num_arms] float32; theta is the same in every run.
    """
    theta = np.random.default_rng(0).normal(size=contexts.shape[2])
    return np.asarray(contexts @ (theta / (2 * np.linalg.norm(theta))), np.float32)


def ldp_linear_logged(
    data: Data,
    *,
    learner: Sequence[str] = (),
    epsilon: Sequence[float],
    delta: float,
    num_seeds: int,
    key: jax.Array,
    **scheduling: Any,
) -> xr.Dataset:
    """What learners earn on given contexts, for every learner, epsilon and seed.

    With rewards of all arms they play every round. On logged data they are evaluated by replay: a round counts, for the
    learner too, if it plays the logged arm. It is a simulation, whose output is not private. Seeds differ in the
    learners' randomness alone.

    Args:
        data: of the user.
        learner: names, of `LEARNERS`; empty is all.
        epsilon: privacy budgets, > 0; infinity is no privacy.
        delta: of learners with Gaussian noise, in (0, 1).
        num_seeds: repetitions.
        key: root key.
        **scheduling: as `sweep` takes it, such as `progress` and `store`.

    Returns:
        A dataset with `played`, rounds that count, and `reward`, the mean reward of these, of dimensions (learner,
        epsilon, seed); NaN where no round counts, or a learner has no proof. `mean_reward`: of uniform play, or of who
        logged, and then with its standard error `mean_error`. `best_reward`: of who knows what every arm pays; NaN of
        logged data, which have `round_error`, the standard error of `reward` over the rounds that count.

    Raises:
        ValueError: if a value is out of range, or tests refute that logged arms were drawn uniformly (a p-value below
            1e-6), which replay takes for granted.
    """
    names, is_logged = check_learners(learner), data.actions is not None
    if data.actions is not None:
        environment = _with_squares(_uniform_log(data))
    else:
        environment = context_sequence(data.contexts, data.rewards)
    horizon, num_arms, dim = data.contexts.shape

    def build(learner: str) -> Run:
        made = LEARNERS[learner].make(num_arms, dim, horizon)
        run = simulator(on_logged(made) if is_logged else made, environment, horizon)
        return at_delta(run, learner, delta, horizon)

    results = shared.compare(
        build, {"learner": names}, epsilon=epsilon, num_seeds=num_seeds, key=key, tile=TILE_SIZE, **scheduling
    ).isel(round=-1, drop=True)
    played = results.matched if is_logged else xr.full_like(results.reward, horizon)
    left_out = xr.DataArray([[refused(name, float(e)) for e in epsilon] for name in names], dims=("learner", "epsilon"))
    found = xr.Dataset({"played": played, "reward": results.reward / played.where(played > 0)}).where(~left_out)
    if is_logged:
        spread = (results.square / played - found.reward**2).clip(0) * played / (played - 1).where(played > 1)
        found["round_error"] = (spread / played) ** 0.5
    best = float("nan") if is_logged else float(np.max(data.rewards, axis=1).mean(dtype=np.float64))
    return (
        found.transpose("learner", "epsilon", "seed", ...)
        .assign_coords(
            delta=delta, mean_reward=float(np.mean(data.rewards, dtype=np.float64)), best_reward=best, horizon=horizon
        )
        .assign_coords(
            mean_error=np.std(data.rewards, dtype=np.float64, ddof=1) / horizon**0.5 if is_logged else np.nan
        )
        .assign_coords(is_logged=is_logged, beyond=float(np.mean(np.abs(data.rewards) > 1)))
        .assign_attrs(results.attrs, privacy=NOT_PRIVATE)
    )


def _uniform_log(data: Data) -> Environment:
    """The environment of a log, which is refused where its arms were not drawn uniformly."""
    assert data.actions is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error", NonuniformLogWarning)
        try:
            return logged_contexts(data.contexts, data.actions, data.rewards)
        except NonuniformLogWarning as warning:
            raise ValueError(f"contexts must be of a log whose arms were drawn uniformly: {warning}") from None


def _with_squares(environment: Environment) -> Environment:
    """Adds the outcome `square`, the squared reward of rounds that count, from which their sampling error follows."""

    def feedback(*arguments):
        world, answer, outcome = environment.feedback(*arguments)
        return world, answer, {**outcome, "square": jnp.square(outcome["reward"])}

    return environment._replace(feedback=feedback)


def _half_width(results: xr.Dataset) -> xr.DataArray:
    """The half width of the 95% confidence interval of mean rewards, over seeds and, in a log, over rounds.

    Seeds share the rounds of a log. So their sampling errors count as one, and its variance is added to that of the
    mean over seeds. One seed has no variance over seeds that is known.
    """
    _, half = mean_and_half_width(results.reward)
    if not bool(results.is_logged):
        return half
    rounds = half if results.sizes["seed"] > 1 else xr.zeros_like(half)
    played = results.played.mean("seed")
    error = results.round_error.mean("seed")  # of one seed's mean
    quantile = xr.apply_ufunc(scipy.stats.t.ppf, 0.975, (played - 1).where(played > 1))
    return ((quantile * error) ** 2 + rounds**2) ** 0.5


def figure(results: xr.Dataset) -> Figure:
    """The figure: the mean reward against epsilon."""
    results = results.sortby("epsilon")
    figure = plotting.panels(width=5.2, height=4.2)
    (ax,) = figure.axes
    style: dict[str, Any] = {"hue": "learner", "labels": labels_of(results), "yscale": "linear"}
    plotting.cost_of_privacy(results.reward, ax=ax, ylabel="mean reward of a round", **style)
    who = "who logged" if bool(results.is_logged) else "uniform play"
    plotting.bound(ax, results.epsilon.values, float(results.mean_reward), label=who)
    figure.explain(
        title=f"Linear bandits on {int(results.horizon):,} rounds of yours",
        note="Logged rounds count where the learner plays what was logged. Bands: over seeds alone."
        if results.is_logged
        else "",
    )
    return figure


def report(results: xr.Dataset) -> str:
    """What the command prints: mean rewards, rounds that count, and what that means."""
    rows = shared.mean_rows(results.reward, labels_of(results), half=_half_width(results), digits=4, dash=True)
    head, counts = shared.budgets(results), []
    for name, label in labels_of(results).items():
        played = results.played.sel(learner=name).mean("seed").values
        counts.append([label, *("-" if np.isnan(value) else f"{value:,.0f}" for value in played)])
    is_logged = bool(results.is_logged)
    known = f"{float(results.mean_reward):.4f}"
    if is_logged:
        known += f" +- {1.96 * float(results.mean_error):.4f}"
    rows.append(["who logged" if is_logged else "uniform play", *[known] * len(head)])
    if not is_logged:
        rows.append(["the best arm of each round", *[f"{float(results.best_reward):.4f}"] * len(head)])
    parts = [shared.titled(f"mean reward of a round, {int(results.horizon):,} rounds", head, rows)]
    if is_logged:
        parts.append(shared.titled("rounds that count", head, counts))
        parts.append(
            "By replay: a round counts if the learner plays what was logged. If logged arms were drawn uniformly, and "
            "rounds are independent, the mean reward is what the learner would earn in as many rounds of its own. No "
            f"test of arms alone, or against contexts, refutes uniform arms (p >= {REFUTED:g}), which proves nothing."
        )
    if float(results.beyond) > 0:
        parts.append(f"Learners clip rewards to [-1, 1]; {float(results.beyond):.1%} of yours lie beyond.")
    seeds = plotting.seed_count(results.sizes["seed"])
    if is_logged:
        intervals = (
            f"+-: 95% confidence (Student's t) over the logged rounds that count and over {seeds}, which share the log."
            " Bands: over seeds alone."
        )
        if results.sizes["seed"] == 1:
            intervals += " One seed does not show how seeds differ."
    else:
        intervals = (
            f"+- and bands: 95% confidence (Student's t) over {seeds}, which differ in the learners' randomness alone."
        )
    parts.append(
        f"{intervals} delta = {float(results.delta):g} where noise is Gaussian. This text is computed from your data "
        "and is not private."
    )
    return "\n\n".join(parts)
