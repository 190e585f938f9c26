"""Version 1 of the benchmark: 33 frozen instances in six families, and the protocol for playing them.

An instance is an ordinary world, or a problem of estimators, so `jaxdp.sweep` and `jaxdp.compare` play it:

>>> import jax, jaxdp
>>> easy = INSTANCES["arms.easy"]
>>> result = jaxdp.compare(
...     {"UCB": jaxdp.bandits.ucb}, easy.make(), epsilon=1.0, horizon=300, num_seeds=5, key=jax.random.key(0)
... )
>>> bool(result.values().mean() < 300 * 0.4)
True

Answers that are 0, 1 or one of a few levels come from comparing a random 32-bit word with committed integer thresholds
or, in experts.seasons, from the results of games. So these answers are equal on every version of JAX, in both
precisions and on every processor. `answers` computes an instance's first answers. `frozen.json` in this folder has the
SHA-256 of these instances' first answers and thresholds, the first answers of all other instances, the delays, the
reference abilities of rankings, and the unit of scores (`Instance.uniform`). These numbers never change.

One instance in each of the families arms, duels and experts has late feedback, by `jaxdp.delayed`. The other families
have no late feedback, because learners that play in a delayed world must have finitely many actions and no contexts,
and estimators get all labels at once.

Every world without contexts can also be played for claims about a person (`make_for`). Then `horizon` rounds have
`horizon / 20` people with 20 visits each, by a fixed public schedule. A learner uses the first visit of each person.
The arms of bandits and duels then have other numbers, because many learners play arm 0 before their first release.
"""

import functools
import hashlib
import importlib.resources
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.bandits import bernoulli_bandit, convex
from jaxdp.core import Environment, Problem, Visits, default_float, delayed
from jaxdp.dueling import matrix_duels
from jaxdp.estimation import ballot_election, comparison_table
from jaxdp.experts import loss_sequence
from jaxdp.preferences import Ballots, baseball1987
from jaxdp.suite._worlds import (
    arms_world,
    contexts_world,
    duels_world,
    experts_world,
    first_arm,
    ranking_problem,
    rewards_problem,
    with_people,
)
from jaxdp.validation import check_choice

FAMILIES = ("arms", "duels", "experts", "contextual", "convex", "rewards")
EPSILONS = (0.1, 1.0, 10.0, math.inf)
DELTA = 1e-6
SEEDS = 100
QUICK_SEEDS = 10
ROOT_SEEDS = {"scores": 71, "verify": 72}  # "verify" is for checks of published numbers
HORIZONS = {"arms": 100_000, "duels": 100_000, "experts": 100_000, "contextual": 20_000, "convex": 100_000}
QUICK_HORIZONS = {"arms": 2_000, "duels": 2_000, "experts": 2_000, "contextual": 1_000, "convex": 2_000}
NUM_ANSWERS = 10_000
UNITS = ("round", "person")  # privacy units for which instances are played
VISITS = 20  # number of visits of each person, if the unit is a person
VISITS_SEED = 1987  # seed of the order of visits


@dataclass(frozen=True)
class Instance:
    """One frozen problem.

    Attributes:
        name: the instance's name, such as "arms.easy".
        make: () -> the world, or the problem of estimators.
        metric: the output that is compared; smaller is better.
        exact: whether answers are integers or few levels, so that their SHA-256 is committed.
        sizes: further arguments of factories that the instance determines, such as features of arms.
        rounds: maximum horizon; None if there is no maximum.
    """

    name: str
    make: Callable[[], Any]
    metric: str = "pseudo_regret"
    exact: bool = True
    sizes: Mapping[str, Any] = field(default_factory=dict)
    rounds: int | None = None

    @property
    def family(self) -> str:
        """The name of the family: the part of `name` before the dot."""
        return self.name.partition(".")[0]

    def horizon(self, quick: bool) -> int:
        """Returns the number of rounds; 0 for a problem of estimators."""
        rounds = (QUICK_HORIZONS if quick else HORIZONS).get(self.family, 0)
        return rounds if self.rounds is None else min(rounds, self.rounds)

    def make_for(self, unit: str, quick: bool) -> Any:
        """Returns the world or problem for a privacy unit.

        For a person, the world has the public `schedule`. In bandits and duels, arm 0 is then an arm in the middle of
        the instance's list.

        Raises:
            ValueError: if the unit is unknown, or is a person and the instance is a problem of estimators or has
                contexts.
        """
        made = self.make()
        if check_choice("unit", unit, UNITS) == "round":
            return made
        if isinstance(made, Problem):
            raise ValueError(
                f'unit must be "round" for estimators, whose data have no visits, got "person": {self.name}'
            )
        return with_people(made, schedule(self.horizon(quick)))

    def sizes_for(self, unit: str) -> dict[str, Any]:
        """Returns `sizes`; for a person, features are in the order in which `make_for` numbers the arms."""
        sizes = dict(self.sizes)
        if check_choice("unit", unit, UNITS) == "person" and "features" in sizes:
            features = sizes["features"]
            first = first_arm(len(features))
            sizes["features"] = [*features[first:], *features[:first]]
        return sizes

    def uniform(self, quick: bool) -> float:
        """Returns the unit of scores: the metric of uniform play, or of the estimate 0 in the family "rewards"."""
        return frozen()[self.name]["uniform"]["quick" if quick else "full"]


@functools.cache
def schedule(horizon: int) -> Visits:
    """Returns the public schedule of people: `VISITS` visits of each person, in a random order that never changes."""
    people = np.repeat(np.arange(horizon // VISITS), VISITS)
    return Visits.from_ids(np.random.RandomState(VISITS_SEED).permutation(people))


def _arms(means: list[int], depths: tuple[int, ...] = (0,), starts: tuple[int, ...] = (0,), spread: int = 0) -> Any:
    """Makes a bandit.

    Args:
        means: mean of each arm, in thousandths.
        depths: for each stage, the number by which all means are lower, in thousandths.
        starts: first round of each stage.
        spread: half the distance between neighbouring thresholds of an arm with five levels, in thousandths; 0 for
            rewards of 0 or 1.
    """
    levels = [3 * spread, spread, -spread, -3 * spread] if spread else [0]
    parts = [[[mean - depth + level for level in levels] for mean in means] for depth in depths]
    return arms_world(bernoulli_bandit(np.asarray(means) / 1000), parts, starts)


def _duels(above: list[list[int]], regret: str = "strong") -> Environment:
    """Makes duels from the entries above the diagonal of a matrix of winning probabilities, in thousandths, by row."""
    size = len(above) + 1
    parts = np.full((size, size), 500)
    for row, entries in enumerate(above):
        parts[row, row + 1 :] = entries
        parts[row + 1 :, row] = 1000 - np.asarray(entries)
    return duels_world(matrix_duels(parts / 1000, regret=regret), parts[None])


def _by_utilities(utilities: np.ndarray) -> list[list[int]]:
    """Returns the winning probabilities of a logistic model, in thousandths: the rows above the diagonal."""
    chances = np.rint(1000 / (1 + np.exp(-np.subtract.outer(utilities, utilities)))).astype(int)
    return [chances[row, row + 1 :].tolist() for row in range(len(utilities) - 1)]


def _cyclic() -> Environment:
    """Makes eight arms: the first three beat one another in a circle; each further arm loses to all arms before it."""
    above = [[900 if row < 3 <= other else 600 for other in range(row + 1, 8)] for row in range(7)]
    above[0][:2], above[1][0] = [750, 250], 750
    return _duels(above, "borda")


def _features() -> np.ndarray:
    """Returns the features ([16, 3]) of sixteen arms, of norm at most 1."""
    index = np.arange(16)
    return np.stack([(index % 4) / 8, (index // 4) / 8, ((7 * index) % 16) / 32], axis=1)


def _shifting(good: tuple[int, ...], size: int, gap: int, starts: tuple[int, ...]) -> Environment:
    parts = np.full((len(good), size), 500)
    parts[np.arange(len(good)), good] -= gap
    return experts_world(parts, starts, switches=len(good) - 1)


def season_losses() -> np.ndarray:
    """Returns the results of forty seasons of the games of 1987, [10920, 7] uint8: a row for each game.

    An entry is 0 for the team that won, 2 for the team that lost, and 1 for all other teams. Each season has the 273
    games of `jaxdp.preferences.baseball1987` in another order.
    """
    table = baseball1987()
    first_won = [
        won for wins, total in zip(table.wins, table.totals, strict=True) for won in [1] * wins + [0] * (total - wins)
    ]
    pairs = np.repeat(table.pairs, table.totals, axis=0)
    season = np.ones((len(pairs), len(table.items)), np.uint8)
    rows = np.arange(len(pairs))
    season[rows, pairs[:, 0]] = 2 - 2 * np.asarray(first_won)
    season[rows, pairs[:, 1]] = 2 * np.asarray(first_won)
    orders = np.random.RandomState(1987)  # the numbers of this generator never change
    return np.concatenate([season[orders.permutation(len(season))] for _ in range(40)])


def _ballots() -> Ballots:
    orders = ((0, 1, 2, 3, 4), (1, 0, 2, 4, 3), (2, 1, 0, 3, 4), (0, 2, 1), (4, 3, 2, 1, 0), (3, 1), (1, 2, 0, 3, 4))
    groups = tuple(tuple((alternative,) for alternative in order) for order in orders)
    return Ballots(("a", "b", "c", "d", "e"), groups, (230, 190, 140, 120, 90, 60, 170))


def _ranking(name: str, problem: Callable[[], Problem]) -> Callable[[], Problem]:
    return lambda: ranking_problem(problem(), frozen()[name]["abilities"])


def _convex(make: Callable[..., Environment], values: Mapping[str, Any] = {}, **arguments: Any) -> Callable[[], Any]:
    def with_values() -> Environment:
        world = make(**arguments)
        params = world.params(**values)
        return world._replace(params=lambda: params, made_by=None)

    return with_values


def _easy_arms() -> Environment:
    return _arms([900, *[500] * 7])


def _utility_duels(size: int) -> Environment:
    return _duels(_by_utilities(np.linspace(1.4, 0, size)))


def _stochastic_experts() -> Environment:
    return experts_world([[400, *[500] * 15]])


_GROWING = tuple(sorted({0, *(math.ceil(1.6**power) for power in range(1, 25))}))
_EQUAL_SHIFTS = (0, 150, 400, 700, 1_100, 1_600, 5_000, 20_000, 50_000, 75_000)
_THETA = (0.5, -0.3, 0.2, 0.6, -0.4)
_LIST = (
    Instance("arms.easy", _easy_arms),
    Instance("arms.hard", lambda: _arms([550, *[500] * 7])),
    Instance(
        "arms.drifting",
        lambda: _arms([900, 800, 700, 600], tuple(500 * (stage % 2) for stage in range(len(_GROWING))), _GROWING),
    ),
    Instance("arms.many", lambda: _arms([100 + (37 * arm) % 640 for arm in range(63)] + [900])),
    Instance(
        "arms.bounded",
        lambda: _arms([400, 450, 500, 450, 400, 600, 500, 350], spread=100),
        sizes={"rewards": "bounded"},
    ),
    Instance("arms.late", lambda: delayed(_easy_arms(), 100)),
    Instance("duels.utilities", lambda: _utility_duels(8)),
    Instance("duels.cyclic", _cyclic),
    Instance(
        "duels.borda_condorcet",  # arm 0 beats every arm by little; arm 1 beats the others by much
        lambda: _duels([[550, 550, 550, 550], [900, 900, 900], [600, 600], [600]]),
    ),
    Instance(
        "duels.many", lambda: _duels([[500 + 6 * (other - row) for other in range(row + 1, 64)] for row in range(63)])
    ),
    Instance(
        "duels.features",
        lambda: _duels(_by_utilities(_features() @ np.asarray([2.0, 1.0, 3.0]))),
        sizes={"features": _features().tolist()},
    ),
    Instance("duels.late", lambda: delayed(_utility_duels(4), 50)),  # learners may wait for each of 16 ordered pairs
    Instance("experts.stochastic", _stochastic_experts, "regret"),
    Instance("experts.many", lambda: experts_world([[500] * 40 + [350] + [500] * 23]), "regret"),
    Instance(
        "experts.shifting",
        lambda: _shifting((3, 11, 0, 7, 14, 5, 9, 1, 12, 6), 16, 250, _EQUAL_SHIFTS),
        "dynamic_regret",
        sizes={"num_switches": 9},
    ),
    Instance("experts.lazy", lambda: experts_world([[300, *[500] * 15]], punish=True), "regret"),
    Instance("experts.seasons", lambda: loss_sequence(season_losses(), scale=2), "regret", rounds=10_920),
    Instance("experts.late", lambda: delayed(_stochastic_experts(), 300), "regret"),
    Instance("contextual.linear", lambda: contexts_world(_THETA, num_arms=10), exact=False),
    Instance("contextual.wide", lambda: contexts_world([0.3, -0.2] * 5, num_arms=20), exact=False),
    Instance("contextual.few", lambda: contexts_world([0.6, -0.2, 0.7], num_arms=3), exact=False),
    Instance("contextual.logistic", lambda: contexts_world(_THETA, num_arms=10, logistic=True), exact=False),
    Instance("contextual.turning", lambda: contexts_world(_THETA, num_arms=10, turn=500), exact=False),
    Instance("convex.linear", _convex(convex.linear_losses, {"tilt": 0.25}, dim=4), exact=False),
    Instance("convex.quadratic", _convex(convex.quadratic_losses, {"tilt": 0.25}, dim=4), exact=False),
    Instance(
        "convex.two_point", _convex(convex.quadratic_losses, {"tilt": 0.25}, dim=4, feedback="difference"), exact=False
    ),
    Instance("convex.adaptive", _convex(convex.linear_losses, dim=4, adaptive=True), exact=False),
    Instance("convex.interval", _convex(convex.huber_losses, {"tilt": 0.25}, dim=1), exact=False),
    Instance("rewards.flat", lambda: rewards_problem([1.0] * 5, 2_000), "l2_error", exact=False),
    Instance("rewards.small", lambda: rewards_problem([1.0] * 5, 200), "l2_error", exact=False),
    Instance(
        "rewards.steep",
        lambda: rewards_problem([1, 1 / 2, 1 / 4, 1 / 8, 1 / 16], 2_000),
        "semi_norm_error",
        exact=False,
    ),
    Instance(
        "rewards.ballots",
        _ranking("rewards.ballots", lambda: ballot_election(_ballots())),
        "ability_error",
        exact=False,
    ),
    Instance(
        "rewards.baseball",
        _ranking("rewards.baseball", lambda: comparison_table(baseball1987())),
        "ability_error",
        exact=False,
    ),
)
INSTANCES: Mapping[str, Instance] = {instance.name: instance for instance in _LIST}


@functools.cache
def frozen() -> Mapping[str, Any]:
    """Returns the committed numbers of every instance, keyed by name."""
    return json.loads(frozen_text())


def frozen_text() -> str:
    """Returns the text of `frozen.json`."""
    return (importlib.resources.files("jaxdp.suite") / "frozen.json").read_text()


def suite_hash() -> str:
    """Returns the first 16 hexadecimal digits of the SHA-256 of `frozen_text`."""
    return hashlib.sha256(frozen_text().encode()).hexdigest()[:16]


def answers(instance: Instance, count: int = NUM_ANSWERS) -> np.ndarray:
    """Returns an instance's first answers to a fixed sequence of actions, for the key of seed 0.

    Args:
        instance: one of `INSTANCES`.
        count: number of rounds; for a problem of estimators, the maximum number of feature entries, and of labels.

    Returns:
        [count, ...] answers: uint8 if all are 0 or 1, float32 for other levels, float64 for an instance that is not
        exact. With contexts, a row has the round's contexts and then its answer. For a problem of estimators: one
        vector of features and then labels, float64.
    """
    made, key = instance.make(), jax.random.key(0)
    if isinstance(made, Problem):
        sample = jax.jit(made.sample)(key, made.params())
        return np.concatenate([np.ravel(part)[:count].astype(float) for part in (sample.features, sample.labels)])
    interface = made.interface
    assert interface is not None
    params, key_world = made.params(), jax.random.fold_in(key, 0)

    def play(world: Any, round_: jax.Array) -> Any:
        action = jax.tree.map(lambda space: _in_turn(space, round_), interface.action, is_leaf=_is_space)
        context = jnp.zeros(0) if made.context is None else jnp.ravel(made.context(key, params, world))
        world, answer, _ = made.feedback(jax.random.fold_in(key, round_ + 1), params, world, action)
        return world, answer if made.context is None else jnp.append(context, answer)

    _, replies = jax.jit(lambda: jax.lax.scan(play, made.init(key_world, params), jnp.arange(count, dtype=jnp.int32)))()
    replies = np.asarray(replies)
    if not instance.exact:
        return replies.astype(float)
    return replies.astype(np.uint8) if np.isin(replies, (0, 1)).all() else replies.astype(np.float32)


def _is_space(node: Any) -> bool:
    return hasattr(node, "kind") and hasattr(node, "radius")


def _in_turn(space: Any, round_: jax.Array) -> jax.Array:
    """Returns an action of the space that depends only on the round."""
    if space.kind == "integers":
        size = int(space.high) + 1
        digits = [round_ // size**digit for digit in range(max(1, math.prod(space.shape)))]
        return (jnp.stack(digits).reshape(space.shape) % size).astype(jnp.int32)
    points = jnp.arange(math.prod(space.shape), dtype=jnp.int32) + round_
    radius = space.radius if math.isfinite(space.radius) else space.high
    return (points % 3 - 1).reshape(space.shape).astype(default_float()) * (radius / points.size)
