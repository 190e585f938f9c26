"""Tests, with two samples, whether the engines "rounds" and "counts" give a learner's outputs the same distribution."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Environment, Learner, default_float
from jaxdp.simulation import Snapshot, simulator
from jaxdp.simulation.run.snapshot import RecordFn, is_at_stop
from jaxdp.simulation.run.values import select_values

FALSE_ALARM = 1e-9  # maximum probability that a correct learner fails any comparison, with 458 lanes or more
PARTS = 4.0 ** -np.arange(3)  # fractions of epsilon; noise should matter in at least one of them
NUM_CHECKPOINTS = 8
TILE = 1024  # lanes that are computed together; bounds the memory
ENTRIES = 16  # a larger leaf is compared at this number of evenly spaced entries, and by its mean


class Sampling(NamedTuple):
    """The lanes to draw, and their checkpoints.

    Attributes:
        learner: a learner with counts.
        environment: an environment with feedback totals.
        values: a grid point.
        epsilons: the values of epsilon at which lanes are drawn; [None] if the grid point has no epsilon.
        horizon: number of rounds to play.
        checkpoints: rounds after which outputs are compared.
        num_lanes: number of lanes at each epsilon and for each engine.
        key: key of the lanes.
        tolerance: numbers a and b count as equal if |a - b| <= tolerance * (1 + |a|); >= 0.
    """

    learner: Learner
    environment: Environment
    values: Mapping[str, float]
    epsilons: list[float | None]
    horizon: int
    checkpoints: list[int]
    num_lanes: int
    key: jax.Array
    tolerance: float


# By output: [num_lanes, num_epsilons, num_checkpoints, ...]; outputs at a learner's stop have no axis of checkpoints.
Samples = dict[str, np.ndarray]


def sampling(
    learner: Learner,
    environment: Environment,
    values: Mapping[str, float],
    *,
    horizon: int,
    num_lanes: int,
    key: jax.Array,
    tolerance: float,
) -> Sampling:
    """Returns the lanes and checkpoints at which a learner's counts are compared with its rounds.

    If the grid point `values` has `epsilon`, `num_lanes` lanes are drawn at infinity, at epsilon and at each of several
    smaller values. `Sampling` explains `tolerance`.
    """
    epsilons: list[float | None] = [None]
    if "epsilon" in values:
        epsilons = [math.inf, *(values["epsilon"] * PARTS).tolist()]
    checkpoints = {max(1, horizon * part // NUM_CHECKPOINTS) for part in range(1, NUM_CHECKPOINTS + 1)}
    checkpoints |= {1, max(1, horizon - 1)}  # so that the first and the last step between checkpoints have one round
    return Sampling(learner, environment, values, epsilons, horizon, sorted(checkpoints), num_lanes, key, tolerance)


def draw(plan: Sampling, engine: str) -> Samples:
    """Returns the outputs of the lanes with the engine "rounds" or "counts". The two engines get independent keys."""
    learner, values, epsilons, num_lanes = plan.learner, plan.values, plan.epsilons, plan.num_lanes
    key = jax.random.split(plan.key)[int(engine != "rounds")]
    record = record_public(learner, learner.params(**select_values(learner.params, values)))
    run = simulator(learner, plan.environment, plan.horizon, engine=engine, checkpoints=plan.checkpoints, record=record)
    points = [run.params(**({**values, "epsilon": e} if e is not None else values)) for e in epsilons]
    params_batch = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *points)
    lane_numbers = np.arange(num_lanes * len(epsilons))
    tile = min(TILE, len(lane_numbers))
    lane_numbers = np.append(
        lane_numbers, np.repeat(lane_numbers[-1:], -len(lane_numbers) % tile)
    )  # a partial tile would be compiled separately

    @jax.jit
    def run_all(keys: jax.Array, points: Any) -> Any:
        lanes = (
            keys[lane_numbers // len(epsilons)],
            jax.tree.map(lambda leaf: leaf[lane_numbers % len(epsilons)], points),
        )
        return jax.lax.map(lambda lane: run(*lane), lanes, batch_size=tile)

    def split(leaf: np.ndarray) -> np.ndarray:
        return leaf[: num_lanes * len(epsilons)].reshape(num_lanes, len(epsilons), *leaf.shape[1:])

    return jax.tree.map(split, jax.device_get(run_all(jax.random.split(key, num_lanes), params_batch)))


def check_same_distribution(plan: Sampling, rounds: Samples, counts: Samples) -> None:
    """Compares all outputs of two samples: one from rounds, and one from counts.

    Raises:
        AssertionError: if the empirical distributions of an outcome, a metric, the stopping time or a released number
            differ by more than chance explains, at a checkpoint or at the stop (see `FALSE_ALARM`).
    """
    pairs = list(_columns(rounds, counts, plan.epsilons, plan.checkpoints))
    # Massart's inequality for two samples of the same size (Wei & Dudley, 2012), for any distribution, and a union
    # bound. The factor 2 is proved for 458 lanes or more.
    bound = math.sqrt(math.log(2 * len(pairs) / FALSE_ALARM) / plan.num_lanes)
    for label, first, second in pairs:
        gap = distance(first, second, plan.tolerance)
        assert gap <= bound, (
            f"counts must have the distribution of rounds, got distribution functions of {label} that "
            f"differ by {gap:.3f}, for {plan.num_lanes} lanes each; chance explains a difference of {bound:.3f}"
        )


def check_distribution(learner: Learner, environment: Environment, values: Mapping[str, float], **options: Any) -> None:
    """Checks by samples that all outputs have the same distribution with the engines "rounds" and "counts".

    Args:
        learner: a learner with counts.
        environment: an environment with feedback totals.
        values: a grid point of the learner and the environment.
        **options: the other arguments of `sampling`, all required: horizon, num_lanes, key, tolerance.

    Raises:
        AssertionError: if the samples of an output differ (see `check_same_distribution`).
    """
    plan = sampling(learner, environment, values, **options)
    check_same_distribution(plan, draw(plan, "rounds"), draw(plan, "counts"))


def distance(first: np.ndarray, second: np.ndarray, tolerance: float) -> float:
    """Returns the largest distance between two empirical distribution functions.

    Values count as equal if they differ by at most tolerance * (1 + |value|). NaN counts as infinity.
    """
    first, second = (values.astype(np.float64) for values in (first, second))
    first, second = (np.sort(np.where(np.isnan(values), np.inf, values)) for values in (first, second))

    def largest_lead(values: np.ndarray, others: np.ndarray) -> float:
        slack = tolerance * (1 + np.abs(np.where(np.isfinite(values), values, 0.0)))
        later = np.searchsorted(others, values + slack, "right")
        return float(np.max(np.searchsorted(values, values, "right") / len(values) - later / len(others)))

    return max(largest_lead(first, second), largest_lead(second, first))


def record_public(learner: Learner, params: Any) -> dict[str, RecordFn]:
    """Returns functions that record the leaves of the public state, except empty leaves and random keys, keyed by name.

    For a leaf with more than `ENTRIES` entries, only `ENTRIES` of them and the mean are recorded.
    """
    shapes = jax.eval_shape(lambda: learner.init(jax.random.key(0), jax.tree.map(jnp.asarray, params)).public)

    def entries(index: int) -> RecordFn:
        def record(snapshot: Snapshot) -> jax.Array:
            leaf = jnp.asarray(jax.tree.leaves(snapshot.public)[index]).ravel()
            if leaf.size <= ENTRIES:
                return leaf
            some = leaf[np.linspace(0, leaf.size - 1, ENTRIES).astype(np.int32)].astype(default_float())
            return jnp.append(some, jnp.mean(leaf, dtype=some.dtype))

        return record

    leaves = enumerate(jax.tree_util.tree_leaves_with_path(shapes))
    return {
        f"public{jax.tree_util.keystr(path)}": entries(index)
        for index, (path, leaf) in leaves
        if leaf.size and not jnp.issubdtype(leaf.dtype, jax.dtypes.extended)
    }


def _columns(
    rounds: Samples, counts: Samples, epsilons: list[Any], checkpoints: list[int]
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yields, for each compared number, its description and the [num_lanes] values of both engines."""
    for name, values in rounds.items():
        for point, epsilon in enumerate(epsilons):
            at_epsilon = f" at epsilon = {epsilon:g}" if epsilon is not None else ""
            first_values, second_values = values[:, point], counts[name][:, point]
            whens = [f" after round {round_}" for round_ in checkpoints]
            if is_at_stop(name, rounds):
                whens, first_values, second_values = [""], first_values[:, None], second_values[:, None]
            for row, when in enumerate(whens):
                first, second = (values[:, row].reshape(len(values), -1) for values in (first_values, second_values))
                for entry in range(first.shape[1]):
                    index = f"[{entry}]" if first.shape[1] > 1 else ""
                    yield f"{name}{index}{when}{at_epsilon}", first[:, entry], second[:, entry]
