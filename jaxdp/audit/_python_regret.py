"""Plays environments of jaxdp with learners written in ordinary Python, round by round on the host."""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Environment, Space, arms, pairs
from jaxdp.numerics.jax_options import current_options
from jaxdp.random import key_from_data
from jaxdp.simulation import lane_keys
from jaxdp.simulation.run.checkpoints import resolve
from jaxdp.simulation.run.rounds import round_keys, split_lane_key
from jaxdp.simulation.sweeps.progress import is_seen, make_bar
from jaxdp.validation import check_key

if TYPE_CHECKING:
    import xarray as xr


def play_worlds(
    learner: Any,
    world: Environment,
    *,
    horizon: int,
    num_seeds: int,
    key: jax.Array,
    checkpoints: Any,
    jobs: int,
    progress: bool,
    values: dict[str, float],
) -> "xr.Dataset":
    """Plays one run of a `PythonLearner` in `world` for each seed; returns outcomes by seed and checkpoint.

    `values` are arguments of `world.params`, and `jobs` is the maximum number of processes.
    """
    _check_world(learner, world, horizon)
    recorded_rounds = resolve(checkpoints, horizon)
    keys, params = lane_keys(check_key(key), num_seeds), world.params(**values)
    _check_metrics(learner, world, params)
    task = learner, world, params, horizon, recorded_rounds, str(jax.random.key_impl(keys))
    data = np.asarray(jax.random.key_data(keys))
    with make_bar(total=num_seeds, unit="seed", leave=False, disable=not (progress and is_seen())) as bar:
        runs = []
        for run in _runs(task, data, min(jobs, num_seeds)):
            runs.append(run)
            bar.update()
    import xarray as xr  # takes as long to import as the rest of this package

    dims = "seed", "round"
    arrays = {name: (dims, np.stack([run[name] for run in runs])) for name in runs[0]}
    return xr.Dataset(arrays, coords={"seed": np.arange(num_seeds), "round": recorded_rounds})


def _check_world(learner: Any, world: Environment, horizon: int) -> None:
    """Raises ValueError if the world does not fit the learner's problem, ends too early, or has delays or visits."""
    if world.horizon is not None and horizon > world.horizon:
        raise ValueError(f"horizon must be <= the world's {world.horizon}, got {horizon}")
    if world.delays is not None or world.visits is not None:
        what = "delays of feedback" if world.visits is None else "visits of persons"
        raise ValueError(f"world must have no {what}, which the learner would not see, got {world!r}")
    if world.interface is None:
        return
    problem, num_actions, context_shape, _ = learner.setting
    action = pairs(num_actions) if problem == "duel" else arms(num_actions)
    shapes = (num_actions,) if problem == "experts" else (), context_shape or None
    spaces = world.interface.feedback, world.interface.context
    world_shapes = tuple(space.shape if isinstance(space, Space) else None for space in spaces)
    if world.interface.action != action or world_shapes != shapes:
        raise ValueError(
            f"world must have the learner's actions ({action}) and feedback and contexts of shapes {shapes}, got "
            f"{world.interface.action} and {world_shapes}"
        )


def _check_metrics(learner: Any, world: Environment, params: Any) -> None:
    """Raises ValueError if an outcome or a hindsight metric of the world is not a scalar."""

    def metrics(key: jax.Array) -> dict[str, jax.Array]:
        action = jnp.zeros((2,) if learner.setting.problem == "duel" else (), jnp.int32)
        state, _, outcomes = world.feedback(key, params, world.init(key, params), action)
        return {**outcomes, **({} if world.hindsight is None else world.hindsight(params, state))}

    for name, metric in jax.eval_shape(metrics, jax.random.key(0)).items():
        if metric.shape:
            raise ValueError(f"world must have outcomes and metrics that are scalars, got {name} of {metric.shape}")


def _runs(task: tuple[Any, ...], data: np.ndarray, jobs: int) -> Iterator[dict[str, np.ndarray]]:
    if jobs == 1:
        play = _player(*task)
        yield from (play(words) for words in data)
        return
    pickled = cloudpickle.dumps((task, current_options()))
    with ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker, initargs=(pickled,)
    ) as pool:
        yield from pool.map(_play_in_worker, data)


_in_worker: dict[str, Any] = {}


def _start_worker(pickled: bytes) -> None:
    task, options = cloudpickle.loads(pickled)
    for name, value in options.items():
        jax.config.update(f"jax_{name}", value)
    _in_worker["play"] = _player(*task)


def _play_in_worker(words: np.ndarray) -> dict[str, np.ndarray]:
    return _in_worker["play"](words)


def _player(
    learner: Any, world: Environment, params: Any, horizon: int, recorded_rounds: list[int], implementation: str
) -> Any:
    """Returns a function: words of a seed's key -> outcome sums and hindsight metrics after the `recorded_rounds`."""

    @jax.jit
    def start(words: jax.Array) -> tuple[Any, Any]:
        _, key_world, roots = split_lane_key(key_from_data(words, implementation))
        return roots, world.init(key_world, params)

    draw_context = world.context or (lambda key, params, state: None)

    @jax.jit
    def context(roots: Any, round_: jax.Array, state: Any) -> Any:
        return draw_context(round_keys(roots, round_, horizon).context, params, state)

    @jax.jit
    def feedback(roots: Any, round_: jax.Array, state: Any, action: Any) -> Any:
        return world.feedback(round_keys(roots, round_, horizon).feedback, params, state, action)

    recorded = frozenset(recorded_rounds)
    hindsight = None if world.hindsight is None else jax.jit(world.hindsight)

    def play(words: np.ndarray) -> dict[str, np.ndarray]:
        roots, state = start(words)
        sums: dict[str, float] = {}
        rows: dict[str, list[float]] = {}

        def answer(round_: int, action: Any) -> Any:
            nonlocal state
            state, answer_, outcomes = feedback(roots, np.int32(round_), state, jnp.asarray(action, jnp.int32))
            for name, value in outcomes.items():
                sums[name] = sums.get(name, 0.0) + float(value)
            if round_ + 1 in recorded:
                more = {} if hindsight is None else hindsight(params, state)
                for name, value in {**sums, **more}.items():
                    rows.setdefault(name, []).append(float(value))
            array = np.array(answer_)  # a copy: the learner may write into it
            return array if array.ndim else array.item()

        def context_of(round_: int) -> Any:
            return np.array(context(roots, np.int32(round_), state))

        learner.play_rounds(words, horizon, None if world.context is None else context_of, answer)
        return {name: np.asarray(values) for name, values in rows.items()}

    return play
