"""Cost of privacy for optimistic learners of linear models on the user's contexts and rewards."""

import os
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxdp import plotting
from jaxdp.bandits._uniform_log import REFUTED, NonuniformLogWarning
from jaxdp.bandits.contextual import context_sequence, logged_contexts, on_logged
from jaxdp.core import Environment
from jaxdp.preferences.files import file_error, short_repr
from jaxdp.simulation import Run, simulator
from jaxdp.stats._replay_interval import replay_errors, replay_half_width, replay_sample_size
from jaxdp.studies import comparison as shared
from jaxdp.studies.command import mean_and_half_width
from jaxdp.studies.linear_learners import LEARNERS, are_refused, bind_delta, check_learners, labels_of

TILE_SIZE = 32
NOT_PRIVATE = "a simulation: not private"


class Data(NamedTuple):
    """A user's contexts and rewards.

    Attributes:
        contexts: [horizon, num_arms, dim] finite numbers; the norm of each context is at most 1.
        rewards: [horizon, num_arms], the reward of every arm; or [horizon], the logged rewards.
        actions: [horizon] integers, the logged arms; None if the rewards of all arms are known.
        propensities: [horizon, num_arms] in (0, 1], the probabilities with which the logging policy chose arms, with
            sum 1 in each round; or [horizon], the probabilities of the logged arms. None if logged arms were drawn
            uniformly.
        min_propensity: [] number in (0, 1], at most the propensity of any arm in any round; needed if propensities are
            [horizon]. None means the smallest entry of propensities [horizon, num_arms].
    """

    contexts: np.ndarray
    rewards: np.ndarray
    actions: np.ndarray | None = None
    propensities: np.ndarray | None = None
    min_propensity: np.ndarray | None = None


def read_contexts(path: str | os.PathLike[str]) -> Data:
    """Reads contexts and rewards from an `.npz` file, or only contexts from an `.npy` file.

    An `.npz` file (of `numpy.savez`) contains `contexts` [horizon, num_arms, dim], and either `rewards` [horizon,
    num_arms], or logged `actions` [horizon] and `rewards` [horizon]. A log may also contain `propensities` [horizon,
    num_arms] or [horizon], and `min_propensity` []. An `.npy` file (of `numpy.save`) contains only contexts; in this
    case the rewards follow a linear model (`linear_rewards`). `context_sequence` and `logged_contexts` check the values
    later.

    Args:
        path: the file.

    Returns:
        The arrays.

    Raises:
        ValueError: if the file is malformed, lacks an array or has an unknown array. The message names the file and the
            reason.
        OSError: if the file cannot be read, such as FileNotFoundError.
    """
    name = os.fspath(path)
    try:
        loaded = np.load(name, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            names, arrays = ["contexts"], {"contexts": loaded}
        else:
            with loaded as file:
                names, arrays = file.files, {key: file[key] for key in Data._fields if key in file.files}
    except (ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile, zlib.error) as error:
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
        if key not in arrays:
            raise file_error(name, "data", f"{key} must be among its arrays")
    axes = 2 if "actions" not in arrays else 1
    if arrays["contexts"].ndim != 3 or arrays["rewards"].ndim != axes:
        raise file_error(
            name,
            "data",
            "contexts must be [T, K, d], and rewards [T, K], or [T] with actions [T], got shapes "
            + ", ".join(f"{key} {value.shape}" for key, value in arrays.items()),
        )
    for key in ("propensities", "min_propensity"):
        if key in arrays and "actions" not in arrays:
            raise file_error(name, "data", f"{key} must come with logged actions, got none")
    if (floor := arrays.get("min_propensity")) is not None and (floor.ndim or floor.dtype.kind not in "iuf"):
        raise file_error(name, "data", f"min_propensity must be one number, got shape {floor.shape} of {floor.dtype}")
    return Data(**arrays)


def _check_names(name: str, arrays: Sequence[str]) -> None:
    """Raises ValueError if a name in `arrays` is not a field of `Data`; the message shows `name`, the file's name."""
    unknown = [array for array in arrays if array not in Data._fields]
    if unknown:
        raise file_error(
            name, "data", f"arrays must be {', '.join(Data._fields)}, got {', '.join(map(short_repr, unknown))}"
        )


def linear_rewards(contexts: np.ndarray) -> np.ndarray:
    """Returns rewards x^T theta ([T, K] float32) for contexts x [T, K, d] and one random theta of norm 1/2."""
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
    """Simulates the rewards of learners on the user's contexts, for every learner, epsilon and seed.

    If the rewards of all arms are known, learners play every round. On logged data learners are evaluated by replay: a
    round counts only if the learner chooses the logged arm and, if propensities are given, the round is also accepted
    by rejection sampling. Learners learn only from rounds that count. This is a simulation, and its output is not
    private. Seeds differ only in the learners' randomness and in the rejection sampling.

    Args:
        data: the user's data.
        learner: names in `LEARNERS`; empty for all learners.
        epsilon: privacy budgets, > 0; infinity for a non-private learner.
        delta: delta of learners with Gaussian noise, in (0, 1).
        num_seeds: number of repetitions.
        key: root PRNG key.
        **scheduling: further arguments of `sweep`, such as `progress` and `store`.

    Returns:
        A dataset with `played`, the number of rounds that count, and `reward`, the mean reward of these rounds, of
        dimensions (learner, epsilon, seed). `reward` is NaN if no round counts; both are NaN if the learner's privacy
        is not proved. `mean_reward` is the mean reward of uniform play; for logged data it is the mean reward of the
        logging policy, with the standard error `mean_error`. `best_reward` is the mean reward of the best arm of each
        round; NaN for logged data. Logged data also have `round_error`, the standard error of `reward` over the rounds
        that count, and `shared_error`, the part of `round_error` that is common to all seeds. `beyond` is the fraction
        of rewards outside [-1, 1].

    Raises:
        ValueError: if a value is out of range, or if tests reject (with a p-value below 1e-6) that logged arms were
            drawn uniformly or with the given propensities, as replay assumes.
    """
    names, is_logged = check_learners(learner), data.actions is not None
    environment = _checked_log(data) if is_logged else context_sequence(data.contexts, data.rewards)
    horizon, num_arms, dim = data.contexts.shape

    def build(learner: str) -> Run:
        model = LEARNERS[learner].make(num_arms, dim, horizon)
        run = simulator(on_logged(model) if is_logged else model, environment, horizon)
        return bind_delta(run, learner, delta, horizon)

    results = shared.compare(
        build, {"learner": names}, epsilon=epsilon, num_seeds=num_seeds, key=key, tile=TILE_SIZE, **scheduling
    ).isel(round=-1, drop=True)
    played = results.matched if is_logged else xr.full_like(results.reward, horizon)
    is_left_out = are_refused(names, epsilon)
    means = replay_errors(results) if is_logged else xr.Dataset({"reward": results.reward / played})
    rewards = xr.Dataset({"played": played}).assign(means).where(~is_left_out)
    best = float("nan") if is_logged else float(np.max(data.rewards, axis=1).mean(dtype=np.float64))
    return (
        rewards.transpose("learner", "epsilon", "seed", ...)
        .assign_coords(
            delta=delta, mean_reward=float(np.mean(data.rewards, dtype=np.float64)), best_reward=best, horizon=horizon
        )
        .assign_coords(
            mean_error=np.std(data.rewards, dtype=np.float64, ddof=1) / horizon**0.5 if is_logged else np.nan
        )
        .assign_coords(is_logged=is_logged, has_propensities=data.propensities is not None)
        .assign_coords(beyond=float(np.mean(np.abs(data.rewards) > 1)))
        .assign_attrs(results.attrs, privacy=NOT_PRIVATE)
    )


def _checked_log(data: Data) -> Environment:
    """Returns the environment of a log; raises ValueError if tests reject that arms were drawn as replay assumes."""
    assert data.actions is not None
    floor = None if data.min_propensity is None else float(data.min_propensity)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NonuniformLogWarning)
        try:
            return logged_contexts(
                data.contexts, data.actions, data.rewards, propensities=data.propensities, min_propensity=floor
            )
        except NonuniformLogWarning as warning:
            rule = "contexts must come from a log with uniformly drawn arms"
            if data.propensities is not None:
                rule = "propensities must be the probabilities with which arms were drawn"
            raise ValueError(f"{rule}: {warning}") from None


def _half_width(results: xr.Dataset) -> xr.DataArray:
    """Returns half widths of 95% confidence intervals of mean rewards, over seeds and, for a log, over rounds."""
    if not bool(results.is_logged):
        return mean_and_half_width(results.reward)[1]
    return replay_half_width(results, results.played, "seed", 0.95)


def figure(results: xr.Dataset) -> Figure:
    """Draws the mean reward against epsilon."""
    results = results.sortby("epsilon")
    figure = plotting.panels(width=5.2, height=4.2)
    (ax,) = figure.axes
    style: dict[str, Any] = {"hue": "learner", "labels": labels_of(results), "yscale": "linear"}
    plotting.cost_of_privacy(results.reward, ax=ax, ylabel="mean reward per round", **style)
    reference = "logging policy" if bool(results.is_logged) else shared.UNIFORM
    plotting.bound(ax, results.epsilon.values, float(results.mean_reward), label=reference)
    figure.explain(
        title=f"Linear bandits on {int(results.horizon):,} rounds of your data",
        note="Logged rounds count by replay. Bands: only over seeds." if results.is_logged else "",
    )
    return figure


def report(results: xr.Dataset) -> str:
    """Formats mean rewards, rounds that count, and notes."""
    rows = shared.mean_rows(results.reward, labels_of(results), half=_half_width(results), digits=4, dash=True)
    head = shared.epsilon_headers(results)
    is_logged = bool(results.is_logged)
    reference_reward = f"{float(results.mean_reward):.4f}"
    if is_logged:
        reference_reward += f" +- {1.96 * float(results.mean_error):.4f}"
    rows.append(["logging policy" if is_logged else shared.UNIFORM, *[reference_reward] * len(head)])
    if not is_logged:
        rows.append(["the best arm of each round", *[f"{float(results.best_reward):.4f}"] * len(head)])
    parts = [shared.format_table(f"mean reward per round, {int(results.horizon):,} rounds", head, rows)]
    if is_logged:
        size = replay_sample_size(results, results.played, "seed")
        for title, rounds in (("rounds that count", results.played.mean("seed")), ("effective sample size", size)):
            rows = shared.format_rows(labels_of(results), _format_rounds, rounds)
            parts.append(shared.format_table(title, head, rows))
        parts.append(_replay_note(bool(results.has_propensities)))
    if float(results.beyond) > 0:
        parts.append(f"Learners clip rewards to [-1, 1]; {float(results.beyond):.1%} of your rewards lie outside.")
    seeds = plotting.seed_count(results.sizes["seed"])
    if is_logged:
        intervals = (
            f"+-: 95% confidence (Student's t) over the logged rounds that count and over {seeds}, which share the log."
            " Effective sample size: the mean of this many independent rounds has the same error over rounds."
            " Bands: only over seeds."
        )
        if results.sizes["seed"] == 1:
            intervals += " One seed does not show how seeds differ."
    else:
        intervals = (
            f"+- and bands: 95% confidence (Student's t) over {seeds}, which only differ in the learners' randomness."
        )
    parts.append(
        f"{intervals} delta = {float(results.delta):g} for Gaussian noise. This text is computed from your data "
        "and is not private."
    )
    return "\n\n".join(parts)


def _format_rounds(rounds: float) -> str:
    return "-" if np.isnan(rounds) else f"{rounds:,.0f}"


def _replay_note(has_propensities: bool) -> str:
    """Formats sentences on the rounds that count in replay, and on the assumptions of replay."""
    coin, drawn, tested = "", "uniformly", "uniform arms"
    if has_propensities:
        coin = ", and a public coin keeps it with probability (smallest propensity) / (propensity of the arm)"
        drawn, tested = "with the log's propensities", "uniform arms in rounds that coins keep"
    return (
        f"By replay: a round counts if the learner plays the logged arm{coin}. If logged arms were drawn {drawn}, and "
        "rounds are independent, the mean reward estimates the learner's mean reward if it played as many rounds. No "
        f"test of the arms, or of arms against contexts, refutes {tested} (p >= {REFUTED:g}); this is no proof."
    )
