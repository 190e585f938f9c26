"""Makes a run of a learner in an environment, by rounds, blocks, counts or heard rounds."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp.checks import check_leaves, check_made
from jaxdp.core import Environment, Guarantee, Learner, MadeBy, check_interfaces
from jaxdp.core.interface import text
from jaxdp.numerics.platforms import is_cpu
from jaxdp.persons import with_unit
from jaxdp.simulation.run import outcomes as sums
from jaxdp.simulation.run.branches import with_operations_in_branches
from jaxdp.simulation.run.checkpoints import LogSpaced, resolve
from jaxdp.simulation.run.clipping import CLIPPED, count_clipped, warn_outside
from jaxdp.simulation.run.engines import MAKERS, choose_engine, play_round, play_until
from jaxdp.simulation.run.fit import begin, check_many, check_round, check_state, trace_once
from jaxdp.simulation.run.heard import (
    NEXT_HEARD,
    check_unheard,
    next_heard_rounds,
    rounds_heard,
    warn_few_heard,
    warn_returning_people,
)
from jaxdp.simulation.run.lane_run import Run
from jaxdp.simulation.run.late import hear_late
from jaxdp.simulation.run.late_steps import play_late
from jaxdp.simulation.run.pieces import known_turns, play_pieces
from jaxdp.simulation.run.products import with_full_products
from jaxdp.simulation.run.rounds import Keys, Play, round_keys, split_lane_key
from jaxdp.simulation.run.snapshot import (
    AT_STOP,
    STOPPING,
    RecordFn,
    at_stop,
    is_at_stop,
    merge_outputs,
    read_checkpoint,
)
from jaxdp.simulation.run.values import check_point, check_taken, maker, once, parameters, select_values, with_names
from jaxdp.validation import check_horizon, check_key, warn_large_delta


def simulator(
    learner: Learner,
    environment: Environment,
    horizon: int,
    *,
    checkpoints: int | Sequence[int] | LogSpaced | None = None,
    record: Mapping[str, RecordFn] | None = None,
    engine: str = "auto",
    outcomes: Sequence[str] | None = None,
    unit: str | None = None,
    reports: int = 1,
) -> Run:
    """Returns a run of the learner in the environment, which you can call or pass to `sweep`.

    Each purpose (context, feedback, action, user, update) has a key, and round t, counted from 0, uses fold_in(key, t).
    The environment's keys do not depend on the learner, so the world is the same for every learner and every epsilon.
    Results do not depend on the checkpoints, except with the engine "counts" and, in the rounding of sums of floats,
    with the engine "heard". Compile time does not depend on the horizon. Memory depends on the horizon only through
    tables of visits, delays and heard rounds.

    Engines:

    - "rounds" simulates round by round.
    - "blocks" simulates many rounds at a time, as the learner plans them. Results equal the results of "rounds" bit for
      bit.
    - "counts" draws totals over the rounds that the learner plans. Results have the same distribution as the results of
      "rounds". The random feedback differs between values of epsilon and depends on the checkpoints.
    - "heard" is for learners made by `per_person`, which get reports only from some rounds, the heard rounds. This
      engine simulates the heard rounds, and adds the outcomes of all rounds between two heard rounds in one step.
      Worlds, states and actions equal the results of "rounds" bit for bit; sums of floats may differ by rounding. The
      learner must have rest="best". The environment must have `unheard`, which environments with delays and with losses
      of experts lack. Outcomes that are drawn in each round cannot be summed.
    - "auto" is "heard" if the learner and the environment support it, some rounds are not heard, and no outcome to sum
      is drawn in each round; otherwise "blocks" if the learner and the environment support it; otherwise "rounds".

    Warns:
        UserWarning: if the environment declares an interface and the learner does not, so that the learner's actions
            are not checked; if the horizon is shorter than the learner's `min_horizon`; if a learner made by
            `per_person` gets reports from fewer than 100 rounds per arm or from fewer rounds than its `min_horizon`, or
            expects more reports from each person than any person has visits. `params` warns if the environment's mean
            rewards lie outside the interval to which the learner clips rewards; if a person may have several visits,
            the claim is for one round, and no unit is given; or if a delta is given and the claim's delta is above 1 /
            horizon (1 / number of people for a person's claim). Python shows each warning once for a learner and a line
            of your code.

    Args:
        learner: the algorithm.
        environment: the problem that the learner plays.
        horizon: number of rounds, in [1, 2^31 - 1]; larger numbers require 64-bit mode.
        checkpoints: the rounds after which outputs are recorded, as increasing round numbers, a number of evenly spaced
            rounds, or `log_spaced(n)`. None means only the horizon.
        record: functions keyed by name. Each function is called at the checkpoints with a `Snapshot` (params, public,
            world, action, round), and returns an array. With the engine "counts" the action is None.
        engine: "rounds", "blocks", "counts", "heard" or "auto".
        outcomes: names of the environment's outcomes to sum; None means all. Other outcomes are not computed. If the
            learner clips feedback, as bandits with `rewards="bounded"` do, the name "clipped" is also valid. It is the
            number of rounds in which feedback lies outside the learner's interval.
        unit: the privacy unit. "round" requires a learner with a claim for one round, and does not change the learner.
            "person" adapts such a learner by `jaxdp.per_person` (with rest="act" if the learner has no best action,
            otherwise rest="best"), and does not change a learner with a claim for a person. So `unit` may be a static
            axis of a sweep. None does not change the learner.
        reports: with the unit "person", the number of visits of each person from which the learner gets a report.

    Returns:
        A run. Its outputs have the dimension `round` (the checkpoints): every outcome summed over rounds, every metric
        of the environment's `hindsight`, the environment's `evaluate` of the learner's `recommend`, and every record. A
        learner with a stopping time has further outputs: `rounds` ([] integer) is the number of rounds played;
        `censored` ([] bool) is true if the learner did not stop within the horizon; `NAME_at_stop` is the result of
        `evaluate` at the stop, or at the horizon if the learner did not stop. After the stop, sums do not change.
        `params` and `guarantee` of the run take the learner's and the environment's values together. The environment's
        `params` is called once for each distinct set of values, so that a sweep keeps only one copy of the
        environment's arrays. `guarantee` returns the learner's claim; if the environment has `user_level`, it also
        returns the claim for one person, unless the learner's claim is already for a person. The name of this claim is
        the environment's word for a person.

    Raises:
        ValueError: if learner or environment has the wrong type (for example a factory that was not called); if the
            learner does not support the unit, the environment's delays or its visits; if reports is not 1 although no
            unit is given; if the horizon is out of range, exceeds the environment's horizon, or differs from the
            learner's horizon (for a learner by `per_person`, if the number of heard rounds differs from it); if
            checkpoints are not increasing integers in [1, horizon]; if record is not a dict of functions with strings
            as names, or outcomes is not iterable; if learner and environment have a parameter of the same name; if
            their interfaces do not fit; if the engine is unknown, or one of the two does not support it. `params` and
            `guarantee` raise if neither learner nor environment has a parameter with a given name, or if a required
            value is missing. The run raises, before anything is compiled, if its key is not a typed key, its parameters
            were not made by its `params`, shapes do not fit, two outputs have the same name, or an outcome is unknown.
    """
    check_made("learner", learner, Learner)
    check_made("environment", environment, Environment)
    if unit is not None:
        learner = with_unit(learner, unit, reports)
    elif reports != 1:
        raise ValueError(f'reports must come with unit="person", or use jaxdp.per_person, got {reports} without a unit')
    horizon = check_horizon(horizon)
    if not (record is None or (isinstance(record, Mapping) and all(map(callable, record.values())))):
        raise ValueError(f"record must be a dict of functions keyed by name, got {record!r}")
    if not all(isinstance(name, str) for name in record or ()):
        raise ValueError(f"record must have strings as names, got {', '.join(map(repr, record or ()))}")
    if not (outcomes is None or isinstance(outcomes, Iterable)):
        raise ValueError(f"outcomes must be a list of names, got {outcomes!r}")
    outcomes = outcomes if outcomes is None or isinstance(outcomes, str) else tuple(outcomes)
    if environment.horizon is not None and horizon > environment.horizon:
        raise ValueError(f"horizon must be <= the environment's {environment.horizon}, got {horizon}")
    heard = rounds_heard(learner, environment, horizon)
    late = None
    if environment.delays is not None:
        late = hear_late(learner, environment.delays.table(horizon), environment.visits)
        learner = late.adapt()
    if learner.horizon is not None and learner.horizon != heard:
        if learner.reports is None:
            raise ValueError(f"horizon must be the learner's {learner.horizon}, got {horizon}")
        raise ValueError(
            f"the learner's horizon must be the number of heard rounds, {heard} of {horizon}, got {learner.horizon}: "
            f"make the learner with horizon={heard}"
        )
    looks = resolve(checkpoints, horizon)
    check_interfaces(learner.interface, environment.interface)
    _warn(learner, environment, horizon, heard)
    counts_clipped = learner.clip is not None and CLIPPED in (outcomes or ())
    played_world = count_clipped(learner, environment) if counts_clipped else environment
    engine = choose_engine(learner, played_world, engine, outcomes=outcomes, hears_all=heard == horizon)
    by_heard = engine == "heard"
    tables = {NEXT_HEARD: next_heard_rounds(learner, environment, horizon)} if by_heard else {}
    entries = ("learner", "environment", *tables)
    # Whether lanes play by the steps of `play_late`. If feedback is the same for all actions, all lanes use reports in
    # the same rounds, and steps gain nothing. With `per_person`, lanes also play rounds together. In steps, lanes would
    # be in different rounds, so that a round without a report could not be a branch, and results might differ in bits.
    in_steps = late is not None and not late.same_for_all and learner.reports is None
    turns = None if in_steps else known_turns(learner, engine, looks)
    # All lanes play the same number of rounds, so the loop does not select between states of stopped lanes.
    same_length = engine in ("rounds", "heard") and learner.done is None
    recorded = dict(record or {})
    learner_name = maker(learner.act) if learner.made_by is None else learner.made_by.name
    owners = f"the learner {learner_name}", f"the environment {maker(environment.feedback)}"
    checked = [f"params of {owner}" for owner in owners]
    takers = list(zip(owners, (learner.params, environment.params), strict=True))
    clash = set(parameters(learner.params)) & set(parameters(environment.params))
    if clash:
        raise ValueError(
            f"names of learner's and environment's values must differ, got {', '.join(sorted(clash))} in both"
        )

    make_world = once(environment.params)

    def params(**values: Any) -> dict[str, Any]:
        """Returns the parameters of one grid point, on the host, from the learner's and the environment's values."""
        check_taken(values, takers)
        point = {
            "learner": check_leaves(checked[0], learner.params(**select_values(learner.params, values))),
            "environment": check_leaves(checked[1], make_world(**select_values(environment.params, values))),
            **tables,
        }
        warn_outside(learner, environment, point, owners[0], parameters(learner.params))
        if environment.visits is not None and unit is None:
            warn_returning_people(environment.visits, guarantee(**values)["learner"])
        if values.get("delta") and (claim := guarantee(**values)["learner"]).is_private:
            people = environment.visits if claim.unit == "person" else None
            warn_large_delta(claim.delta, horizon if people is None else people.num_people)
        return point

    def guarantee(**values: Any) -> dict[str, Guarantee]:
        """Returns the learner's claim and, with `user_level`, the claim for one person, for the values of `params`."""
        check_taken(values, takers)
        claim = learner.guarantee(**select_values(learner.params, values))
        user_level = environment.user_level
        if user_level is None or claim.unit == "person":
            return {"learner": claim}
        return {
            "learner": claim,
            user_level.name: claim.at_user_level(user_level.rounds_per_user, privacy_unit=f"one {user_level.name}"),
        }

    def start_parts(learner: Learner, played_world: Environment, key: jax.Array, params: Any) -> tuple[Any, Any, Keys]:
        """Returns the learner's and the environment's states before the first round, and the keys of rounds."""
        key_state, key_world, roots = split_lane_key(check_key(key))
        state = check_state(begin("the learner's init", learner.init, key_state, params["learner"]))
        return state, begin("the environment's init", played_world.init, key_world, params["environment"]), roots

    def start(learner: Learner, played_world: Environment, key: jax.Array, params: Any) -> tuple[Keys, Play]:
        state, world, roots = start_parts(learner, played_world, key, params)
        keys = jax.eval_shape(lambda: round_keys(roots, jnp.zeros((), jnp.result_type(int)), horizon))
        shapes = check_round(learner, played_world, keys, params, state, world)
        if engine in ("blocks", "counts"):
            check_many(learner, played_world, engine, keys, params, state, world, shapes)
        action = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes.action)
        selected = _select_outcomes(shapes.outcome, outcomes)
        if by_heard:
            check_unheard(played_world, params, world, action, selected)
        return roots, Play(
            round=jnp.zeros((), jnp.result_type(int)),
            state=state,
            world=world,
            outcomes=sums.empty(selected),
            action=action if recorded and engine != "counts" else None,
            stopped=None if learner.done is None else jnp.asarray(False),
        )

    @with_full_products
    def init(key: jax.Array, params: Any) -> tuple[Any, Any]:
        check_point(params, entries)
        params = jax.tree.map(jnp.asarray, params)  # as in `simulate`
        state, world, _ = start_parts(learner, played_world, key, both_params(params))
        return state, world

    def both_params(params: Any) -> Any:
        """Returns the parameters for playing. To count clipped rounds, the environment also gets the learner's."""
        return {**params, "environment": params} if counts_clipped else params

    def look(learner: Learner, params: Any, play: Play) -> dict[str, jax.Array]:
        return read_checkpoint(learner, environment, recorded, params, play)

    @with_full_products
    def simulate(key: jax.Array, params: Any) -> dict[str, jax.Array]:
        check_point(params, entries)
        params = jax.tree.map(jnp.asarray, params)  # NumPy arrays cannot be indexed by traced integers
        inputs = both_params(params)
        traced, world = trace_once(learner), trace_once(played_world)
        roots, play = start(traced, world, key, inputs)
        stages = [
            stage._replace(advance=with_operations_in_branches(stage.advance))
            for stage in MAKERS[engine](traced, world, horizon)
        ]
        step = stages[0].advance

        def until(stop: jax.Array, play: Play) -> Play:
            if late is not None and in_steps:
                return play_late(late, world, horizon, roots, inputs, play, stop)
            if same_length and by_heard:
                return jax.lax.while_loop(
                    lambda play: play.round < stop, lambda play: step(roots, inputs, play, stop), play
                )
            if same_length:
                return jax.lax.fori_loop(play.round, stop, lambda _, play: step(roots, inputs, play, stop), play)
            return play_until(stages, roots, inputs, play, stop)

        def segment(play: Play, stop: jax.Array) -> tuple[Play, dict[str, jax.Array]]:
            play = until(stop, play)
            return play, look(traced, params, play)

        stops = jnp.asarray(looks, play.round.dtype)
        if turns is None or is_cpu():
            play, outputs = jax.lax.scan(segment, play, stops)
        else:
            play, outputs = play_pieces(
                turns, lambda play, index: step(roots, inputs, play, stops[index]), partial(look, traced, params), play
            )
        if looks[-1] < horizon and learner.done is not None:
            play = until(jnp.asarray(horizon, play.round.dtype), play)
        return outputs if play.stopped is None else merge_outputs(outputs, at_stop(traced, environment, params, play))

    @with_full_products
    def by_round(key: jax.Array, params: Any, num_rounds: int) -> dict[str, Any]:
        if num_rounds > horizon:
            raise ValueError(f"num_rounds must be <= the horizon {horizon}, got {num_rounds}")
        check_point(params, entries)
        params = jax.tree.map(jnp.asarray, params)  # as in `simulate`
        inputs = both_params(params)
        traced, world = trace_once(learner), trace_once(played_world)
        roots, play = start(traced, world, key, inputs)

        def step(play: Play, _: None) -> tuple[Play, dict[str, Any]]:
            after, events = play_round(traced, world, horizon, roots, inputs, play)
            events = events._replace(outcome={})  # outcomes are in the sums
            return after, {
                "events": {**events._asdict(), "public": after.state.public},
                "stopped": after.stopped,
                "sums": look(traced, params, after),
            }

        return jax.lax.scan(step, play, length=num_rounds)[1]

    def dims(outputs: Mapping[str, jax.ShapeDtypeStruct]) -> dict[str, tuple[str, ...]]:
        def dims_of(name: str, size: int) -> tuple[str, ...]:
            return environment.dims.get(name) or tuple(f"{name}_{axis}" for axis in range(size))

        def dims_with_round(name: str, leaf: jax.ShapeDtypeStruct) -> tuple[str, ...]:
            if name in STOPPING:
                return ()
            if is_at_stop(name, outputs):
                return dims_of(name.removesuffix(AT_STOP), leaf.ndim)
            return ("round", *dims_of(name, leaf.ndim - 1))

        return {name: dims_with_round(name, leaf) for name, leaf in outputs.items()}

    return Run(
        simulate=simulate,
        params=with_names(params, takers),
        guarantee=with_names(guarantee, takers),
        dims=dims,
        coords={"round": looks},
        by_round=None if engine == "counts" else by_round,
        init=init,
        made_by=MadeBy(
            "simulator",
            {"learner": learner, "environment": environment, "horizon": horizon, "engine": engine},
            unnamed=("learner", "environment"),
        ),
    )


def _warn(learner: Learner, environment: Environment, horizon: int, heard: int) -> None:
    if learner.interface is None and environment.interface is not None:
        warnings.warn(
            f"the learner {maker(learner.act)} declares no interface, so its actions are not checked: declare one "
            f"with action {text(environment.interface.action)}, or test the learner with jaxdp.testing.check_learner",
            UserWarning,
            stacklevel=3,
        )
    warn_few_heard(learner, environment, horizon, heard)
    if learner.reports is None and horizon < learner.min_horizon:
        warnings.warn(
            f"the horizon {horizon} is too short for the learner {maker(learner.act)}, which needs at least "
            f"{learner.min_horizon} rounds",
            UserWarning,
            stacklevel=3,
        )


def _select_outcomes(all_outcomes: Mapping[str, Any], names: Sequence[str] | None) -> dict[str, Any]:
    if names is None:
        return dict(all_outcomes)
    for name in [names] if isinstance(names, str) else names:
        if isinstance(names, str) or name not in all_outcomes:
            only = f" (only learners that clip feedback have {CLIPPED})" if name == CLIPPED else ""
            raise ValueError(f"outcomes must be a list of some of {', '.join(all_outcomes)}, got {names!r}{only}")
    return {name: all_outcomes[name] for name in names}
