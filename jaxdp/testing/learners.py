"""Defines the checks of a learner on one environment."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.checks import check_made
from jaxdp.core import Environment, Learner
from jaxdp.core.interface import text as describe
from jaxdp.numerics.platforms import trace_for
from jaxdp.simulation import simulator
from jaxdp.simulation.run import outcomes as sums
from jaxdp.simulation.run.engines import play_round
from jaxdp.simulation.run.rounds import Keys, Play, interact, round_keys, split_lane_key
from jaxdp.simulation.run.snapshot import AT_STOP, STOPPING, RecordFn, is_at_stop, read_checkpoint
from jaxdp.simulation.run.values import select_values
from jaxdp.testing.checks import DISTRIBUTION, STRUCTURE, Check, Shared
from jaxdp.testing.distributions import Samples, Sampling, check_same_distribution, draw, record_public, sampling
from jaxdp.testing.duties import check_close
from jaxdp.testing.keys import check_keys_of
from jaxdp.testing.plays import OUTSIDE, PLAYED, count_plays, first_outside
from jaxdp.testing.programs import TOLERANCE, Programs, compile_batch, find_reuse, stack
from jaxdp.validation import check_count

OTHER = 1  # folded into root keys on which results must not depend
ENVIRONMENTS = "[0].context", "[0].feedback", "[2].world"  # inputs of a step that only the environment gets
NUM_LANES = 10_000  # number of lanes of each engine for comparisons of distributions
EAGER_ROUNDS = 1  # number of rounds that are played eagerly


class Step(NamedTuple):
    """One round of a lane (a simulated run).

    Attributes:
        roots: the lane's keys, from which the keys of all rounds are derived.
        before: the lane before the round.
        after: the lane after the round.
        report: the report of the round's user.
        outputs: the outputs after the round.
    """

    roots: Keys
    before: Play
    after: Play
    report: Any
    outputs: dict[str, jax.Array]


class LearnerPrograms(Programs):
    """Programs that run a learner against an environment, with the engines "rounds", "blocks" and "counts".

    The class takes the arguments of `jaxdp.testing.check_learner`, except `skip` and `only`.
    """

    arguments = {  # noqa: RUF012
        "init": ("key", "params"),
        "act": ("key", "params", "public", "context"),
        "privatize": ("key", "params", "public", "context", "action", "feedback"),
        "update": ("key", "params", "state", "report"),
        "done": ("params", "public"),
        "recommend": ("params", "public"),
    }

    def __init__(
        self,
        learner: Learner,
        environment: Environment,
        values: Mapping[str, float],
        *,
        horizon: int,
        key: jax.Array,
        tolerance: float = TOLERANCE,
        num_lanes: int = NUM_LANES,
        draws_in_update: bool = False,
        may_claim_less: bool = False,
        multiple: float = 1.0,
    ) -> None:
        check_made("learner", learner, Learner)
        check_made("environment", environment, Environment)
        check_count("horizon", horizon, 2)
        check_count("num_lanes", num_lanes)
        self.space = next((side.interface.action for side in (environment, learner) if side.interface), None)
        # These checks find wrong actions, so that the simulator need not warn of a learner without an interface.
        self.algorithm = self.learner = learner._replace(interface=learner.interface or environment.interface)
        self.environment, self.counting = environment, count_plays(environment, self.space)
        self.horizon, self.num_lanes, self.draws_in_update = horizon, num_lanes, draws_in_update
        self.may_claim_less, self.multiple = may_claim_less, multiple
        run = simulator(self.learner, self.counting, horizon, engine="rounds")
        super().__init__(
            run.params, lambda **point: run.guarantee(**point)["learner"], values, key=key, tolerance=tolerance
        )
        # horizon - 1 is included, because the learner may discard state after the last round.
        self.checkpoints = sorted({1, horizon - 1, horizon})

    # ---- programs ----------------------------------------------------------------------------------------------------
    @Shared
    def record(self) -> dict[str, RecordFn]:
        """Functions that record the public state, because not every wrong state shows in an outcome."""
        return record_public(self.learner, self.learner.params(**select_values(self.learner.params, self.values)))

    @Shared
    def simulate(self) -> Any:
        """Returns the compiled run with the engine "rounds", which is traced once."""
        return jax.jit(self._simulator("rounds").simulate)

    @Shared
    def trace(self) -> Any:
        """Returns the trace of `simulate` at the first grid point; tracing fails if functions do not fit together."""
        return self.simulate.trace(self.keys[0], self.first_point)

    @Shared
    def start(self) -> Any:
        """Returns the compiled start of a lane: (key, params) -> (`Step.roots`, the lane before its first round)."""
        return jax.jit(self._start)

    @Shared
    def step(self) -> Any:
        """Returns the compiled round: (`Step.roots`, params, lane before) -> (lane after, report, outputs)."""
        return jax.jit(self._step)

    def _step(self, roots: Keys, params: Any, play: Play) -> tuple[Play, Any, dict[str, jax.Array]]:
        self.traces.append(roots)
        after, events = play_round(self.learner, self.counting, self.horizon, roots, params, play)
        after, report = _drop_weak_types((after, events.report))
        return after, report, read_checkpoint(self.learner, self.counting, self.record, params, after)

    def _start(self, key: jax.Array, params: Any) -> tuple[Keys, Play]:
        """Returns `Step.roots` of a lane, and the lane before its first round."""
        key_state, key_world, roots = split_lane_key(key)
        state = self.learner.init(key_state, params["learner"])
        world = self.counting.init(key_world, params["environment"])
        zero = jnp.zeros((), jnp.result_type(int))

        def events() -> Any:
            keys = round_keys(roots, zero, self.horizon)
            return interact(self.learner, self.counting, keys, params, state, world)[2]

        first = jax.eval_shape(events)
        action = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), first.action)
        stopped = None if self.learner.done is None else jnp.asarray(False)
        return roots, _drop_weak_types(Play(zero, state, world, sums.empty(first.outcome), action, stopped))

    @Shared
    def lanes(self) -> list[list[list[Step]]]:
        """Returns the steps of every lane: for each grid point, a list for each seed."""
        assert self.trace is not None
        return [[self._lane(key, jax.tree.map(jnp.asarray, point)) for key in self.keys] for point in self.points]

    def _lane(self, key: jax.Array, params: Any) -> list[Step]:
        roots, play = self.start(key, params)
        steps: list[Step] = []
        while len(steps) < self.horizon and not (play.stopped is not None and play.stopped):
            steps.append(Step(roots, play, *self.step(roots, params, play)))
            play = steps[-1].after
        return steps

    @Shared
    def lane_outputs(self) -> list[Any]:
        """Returns the outputs of `lanes`; axes are grid points, seeds, then checkpoints, as in `batch_outputs`."""
        shapes = self.trace.out_info

        def outputs_at_checkpoints(steps: list[Step]) -> dict[str, jax.Array]:
            rows = [steps[min(checkpoint, len(steps)) - 1].outputs for checkpoint in self.checkpoints]
            outputs = stack(rows)
            if self.learner.done is not None:
                after = steps[-1].after
                outputs |= dict(zip(STOPPING, (after.round, ~np.asarray(after.stopped)), strict=True))
                names = [name for name in shapes if is_at_stop(name, shapes) and name not in STOPPING]
                outputs |= {name: rows[-1][name.removesuffix(AT_STOP)] for name in names}
            return outputs

        return [stack([stack([outputs_at_checkpoints(steps) for steps in lanes]) for lanes in self.lanes])]

    def run(self, key: jax.Array, params: Any, *inputs: Any) -> Any:
        """Returns the outputs of one lane with the engine "rounds"."""
        return self.simulate(key, params)

    @Shared
    def eager_outputs(self) -> tuple[list[Any], jax.errors.KeyReuseError | None]:
        """Runs the first `EAGER_ROUNDS` of the first lane eagerly. Also returns the error of a reused key, or None."""
        assert self.trace is not None
        params = jax.tree.map(jnp.asarray, self.first_point)

        def play_some() -> list[Any]:
            roots, play = self._start(jax.random.clone(self.keys[0]), params)
            rounds = []
            while len(rounds) < EAGER_ROUNDS and not (play.stopped is not None and play.stopped):
                play, events = play_round(self.learner, self.counting, self.horizon, roots, params, play)
                rounds.append(_drop_weak_types((play, events.report)))
            return rounds

        return find_reuse(play_some)

    def check_traced_keys(self) -> None:
        """Checks that the learner uses no key twice, in `init` and in all rounds.

        The environment may use keys twice. For example, it may draw a round's context again to compute the feedback.
        """
        params = jax.tree.map(jnp.asarray, self.first_point)
        check_keys_of(jax.make_jaxpr(self.learner.init)(self.keys[0], params["learner"]))
        roots, play = jax.eval_shape(self._start, self.keys[0], params)
        leaves = jax.tree_util.tree_leaves_with_path((roots, params, play))
        paths = [jax.tree_util.keystr(path) for path, _ in leaves]
        free = [index for index, path in enumerate(paths) if path.startswith(ENVIRONMENTS)]
        check_keys_of(self.step.trace(roots, params, play).jaxpr, num_carried=len(jax.tree.leaves(play)), free=free)

    def check_eager(self) -> None:
        """Checks that the eager rounds have about the same floats as the compiled rounds."""
        for compiled, eager in zip(self.lanes[0][0], self.eager_outputs[0], strict=False):
            check_close(eager, (compiled.after, compiled.report), self.tolerance)

    def _simulator(self, engine: str) -> Any:
        return simulator(
            self.learner, self.counting, self.horizon, engine=engine, checkpoints=self.checkpoints, record=self.record
        )

    @Shared
    def blocks(self) -> Any:
        """Returns the outputs of all lanes with the engine "blocks"."""
        return compile_batch(self._simulator("blocks"))(self.keys, self.params_batch)

    @Shared
    def counts(self) -> Any:
        """Returns the outputs of all lanes with the engine "counts", at the horizon.

        Without earlier checkpoints, this engine plays as many rounds as possible in one step.
        """
        run = simulator(self.learner, self.counting, self.horizon, engine="counts", record=self.record)
        return compile_batch(run)(self.keys, self.params_batch)

    def _sampling(self) -> Sampling:
        return sampling(
            self.learner,
            self.counting,
            self.values,
            horizon=self.horizon,
            num_lanes=self.num_lanes,
            key=self.key,
            tolerance=self.tolerance,
        )

    @Shared
    def count_samples(self) -> Samples:
        """Returns the outputs of many lanes with the engine "counts"."""
        return draw(self._sampling(), "counts")

    # ---- checks ------------------------------------------------------------------------------------------------------
    def check_plays(self, engine: str, outputs: Any) -> None:
        """Checks that every play is an action that the environment (or else the learner) declares."""
        outside = np.argwhere(np.asarray(outputs[OUTSIDE])[..., -1] != 0)
        if len(outside):  # if no actions are declared, only negative counts are outside
            point, seed = outside[0]
            lane = self.keys[seed], self.points[point]
            text = first_outside(self.learner, self.environment, self.space, self.horizon, engine, *lane)
            actions = "played >= 0 times" if self.space is None else f"{describe(self.space)}, as declared"
            raise AssertionError(f"actions must be {actions}, got {text} by {engine}")

    def check_noiseless(self) -> None:
        """Checks that at epsilon = inf reports and states do not depend on the keys of privatize and update.

        If `draws_in_update`, integers of the public state may depend on these keys. Each round is played once more from
        the same state, with other keys for privatize and update, and the same keys for everything else.
        """
        if not self.claim.is_private:
            return
        params = jax.tree.map(jnp.asarray, self.points[-1])
        for steps in self.lanes[-1]:
            for step in steps:
                user, update = (jax.random.fold_in(root, OTHER) for root in (step.roots.user, step.roots.update))
                roots = step.roots._replace(user=user, update=update)
                replayed, report, _ = self.step(roots, params, step.before)
                first, second = step.after.state, replayed.state
                if self.draws_in_update:
                    second = second._replace(public=jax.tree.map(_ignore_integers, first.public, second.public))
                chex.assert_trees_all_equal(
                    {"report": step.report, "state": first},
                    {"report": report, "state": second},
                    custom_message=f"at epsilon = inf, round {step.after.round} must not depend on keys of noise",
                )

    def check_checkpoints(self) -> None:
        """Checks that outputs of blocks do not depend on the checkpoints."""
        alone = simulator(self.learner, self.counting, self.horizon, engine="blocks", record=self.record)
        outputs = compile_batch(alone)(self.keys, self.params_batch)
        chex.assert_trees_all_equal(_at_horizon(outputs), _at_horizon(self.blocks))

    def check_ends(self) -> None:
        """Checks that the program for a GPU, which loops over the declared number of blocks, has the same outputs."""
        with trace_for("gpu"):
            outputs = compile_batch(self._simulator("blocks"))(self.keys, self.params_batch)
        chex.assert_trees_all_equal(outputs, self.blocks)

    def check_blocks(self) -> None:
        """Checks that blocks have the same outputs as rounds, bit for bit.

        The number of plays outside the declared actions is not compared.
        """
        first, second = ({**outputs, OUTSIDE: None} for outputs in (self.blocks, self.batch_outputs[0]))
        chex.assert_trees_all_equal(first, second)

    def check_rounds_of_counts(self) -> None:
        """Checks shapes and dtypes of outputs by counts against rounds, and that counts add up to the rounds played.

        The number of rounds is not checked for a learner that may stop.
        """
        chex.assert_trees_all_equal_shapes_and_dtypes(_at_horizon(self.counts), _at_horizon(self.lane_outputs[0]))
        if self.learner.done is None:
            checkpoints = self._sampling().checkpoints
            wrong = np.argwhere(self.count_samples[PLAYED] != np.asarray(checkpoints))
            played = [] if not len(wrong) else self.count_samples[PLAYED][tuple(wrong[0][:2])].tolist()
            assert not len(wrong), f"counts must play {checkpoints} rounds, got {played}"

    def check_counts(self) -> None:
        """Checks that outputs by counts have the same distribution as outputs by rounds."""
        plan = self._sampling()
        rounds, counts = (
            {name: values for name, values in samples.items() if name not in (OUTSIDE, PLAYED)}
            for samples in (draw(plan, "rounds"), self.count_samples)
        )
        check_same_distribution(plan, rounds, counts)

    def checks(self) -> list[Check]:
        """Returns all checks that apply to the learner, the environment and the parameter values."""
        learner, environment = self.learner, self.environment
        plays_blocks = learner.blocks and environment.block and (environment.contexts or not environment.context)
        checks = self.duties()
        checks.append(
            Check("plays are declared actions", STRUCTURE, lambda: self.check_plays("rounds", self.lane_outputs[0]))
        )
        if self.has_epsilon:
            checks += [Check("no noise at epsilon inf", STRUCTURE, self.check_noiseless)]
        if plays_blocks:
            checks += [
                Check("blocks play declared actions", DISTRIBUTION, lambda: self.check_plays("blocks", self.blocks)),
                Check("checkpoints do not matter", DISTRIBUTION, self.check_checkpoints),
                Check("blocks equal rounds", DISTRIBUTION, self.check_blocks),
            ]
            if any(blocks.ends is not None for blocks in learner.blocks):
                checks += [Check("blocks end at declared rounds", DISTRIBUTION, self.check_ends)]
        if learner.counts and environment.feedback_totals:
            checks += [
                Check("counts play declared actions", DISTRIBUTION, lambda: self.check_plays("counts", self.counts)),
                Check("counts play every round", DISTRIBUTION, self.check_rounds_of_counts),
                Check("counts distribution", DISTRIBUTION, self.check_counts),
            ]
        return checks


def _at_horizon(outputs: Any) -> dict[str, jax.Array]:
    """Returns the outputs at the horizon or at the stop."""
    return {name: leaf if is_at_stop(name, outputs) else leaf[:, :, -1:] for name, leaf in outputs.items()}


def _drop_weak_types(tree: Any) -> Any:
    """Returns a tree of arrays that have no weak types, like the results of JAX's loops."""

    def drop(leaf: Any) -> jax.Array:
        is_key = jnp.issubdtype(jnp.result_type(leaf), jax.dtypes.prng_key)
        return leaf if is_key else jnp.asarray(leaf, jnp.result_type(leaf))

    return jax.tree.map(drop, tree)


def _ignore_integers(first: jax.Array, second: jax.Array) -> jax.Array:
    """Returns `second` if it has floats, otherwise `first`, so that a comparison with `first` ignores integers."""
    return second if jnp.issubdtype(second.dtype, jnp.inexact) else first
