"""What privacy costs optimistic learners of linear models on a user's own contexts and rewards."""

import os
import zipfile
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.bandits.contextual import context_sequence, logged_contexts, on_logged
from jaxdp.preferences.files import malformed, shown
from jaxdp.simulation import Run, simulator, sweep
from jaxdp.studies.command import columns, mean_and_half_width
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
        ValueError: if the file is malformed or lacks an array, with the file and the reason.
        OSError: if it cannot be read, such as FileNotFoundError.
    """
    name = os.fspath(path)
    try:
        loaded = np.load(name, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            found = {"contexts": loaded}
        else:
            with loaded as file:
                found = {key: file[key] for key in Data._fields if key in file.files}
    except (ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        raise malformed(name, "data", f"not a readable npz or npy file of numbers ({shown(str(error))})") from error
    if isinstance(loaded, np.ndarray):
        if loaded.ndim != 3 or not loaded.size or loaded.dtype.kind not in "biuf":
            raise malformed(
                name, "data", f"contexts must be numbers [T, K, d], got shape {loaded.shape} of {loaded.dtype}"
            )
        return Data(loaded, linear_rewards(loaded))
    for key in ("contexts", "rewards"):
        if key not in found:
            raise malformed(name, "data", f"{key} must be among its arrays")
    axes = 2 if "actions" not in found else 1
    if found["contexts"].ndim != 3 or found["rewards"].ndim != axes:
        raise malformed(
            name,
            "data",
            "contexts must be [T, K, d], and rewards [T, K], or [T] with actions [T], got shapes "
            + ", ".join(f"{key} {value.shape}" for key, value in found.items()),
        )
    return Data(**found)


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
        logged. `best_reward`: of who knows what every arm pays; NaN of logged data.

    Raises:
        ValueError: if a value is out of range.
    """
    names, is_logged = check_learners(learner), data.actions is not None
    if data.actions is not None:
        environment = logged_contexts(data.contexts, data.actions, data.rewards)
    else:
        environment = context_sequence(data.contexts, data.rewards)
    horizon, num_arms, dim = data.contexts.shape

    def build(learner: str) -> Run:
        made = LEARNERS[learner].make(num_arms, dim, horizon)
        return at_delta(simulator(on_logged(made) if is_logged else made, environment, horizon), learner, delta)

    results = sweep(
        build,
        axes={"epsilon": list(epsilon)},
        static_axes={"learner": names},
        num_seeds=num_seeds,
        key=key,
        tile_size=TILE_SIZE,
        **scheduling,
    ).isel(round=-1, drop=True)
    played = results.matched if is_logged else xr.full_like(results.reward, horizon)
    left_out = xr.DataArray([[refused(name, float(e)) for e in epsilon] for name in names], dims=("learner", "epsilon"))
    found = xr.Dataset({"played": played, "reward": results.reward / played.where(played > 0)}).where(~left_out)
    best = float("nan") if is_logged else float(np.max(data.rewards, axis=1).mean(dtype=np.float64))
    return (
        found.transpose("learner", "epsilon", "seed", ...)
        .assign_coords(
            delta=delta, mean_reward=float(np.mean(data.rewards, dtype=np.float64)), best_reward=best, horizon=horizon
        )
        .assign_coords(is_logged=is_logged, beyond=float(np.mean(np.abs(data.rewards) > 1)))
        .assign_attrs(results.attrs, privacy=NOT_PRIVATE)
    )


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
        note="Of logged rounds those count in which the learner plays what was logged." if results.is_logged else "",
    )
    return figure


def report(results: xr.Dataset) -> str:
    """What the command prints: mean rewards, rounds that count, and what that means."""
    mean, half = mean_and_half_width(results.reward)
    head = ["", *(plotting.epsilon_label(value) for value in results.epsilon.values)]
    rows, counts = [head], [head]
    for name, label in labels_of(results).items():
        cells = zip(mean.sel(learner=name).values, half.sel(learner=name).values, strict=True)
        rows.append([label, *("-" if np.isnan(m) else f"{m:.4f} +- {h:.4f}" for m, h in cells)])
        played = results.played.sel(learner=name).mean("seed").values
        counts.append([label, *("-" if np.isnan(value) else f"{value:,.0f}" for value in played)])
    is_logged = bool(results.is_logged)
    rows.append(
        ["who logged" if is_logged else "uniform play", *[f"{float(results.mean_reward):.4f}"] * (len(head) - 1)]
    )
    if not is_logged:
        rows.append(["the best arm of each round", *[f"{float(results.best_reward):.4f}"] * (len(head) - 1)])
    parts = ["\n".join([f"mean reward of a round, {int(results.horizon):,} rounds", *columns(rows)])]
    if is_logged:
        parts.append("\n".join(["rounds that count", *columns(counts)]))
        parts.append(
            "By replay: a round counts if the learner plays what was logged. If logged arms were drawn uniformly, and "
            "rounds are independent, the mean reward is what the learner would earn in as many rounds of its own."
        )
    if float(results.beyond) > 0:
        parts.append(f"Learners clip rewards to [-1, 1]; {float(results.beyond):.1%} of yours lie beyond.")
    parts.append(
        f"+- and bands: 95% confidence (Student's t) over {plotting.seed_count(results.sizes['seed'])}, which differ "
        f"in the learners' randomness alone. delta = {float(results.delta):g} where noise is Gaussian. This text is "
        "computed from your data and is not private."
    )
    return "\n\n".join(parts)
