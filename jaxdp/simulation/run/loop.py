"""The one loop over rounds: an online learner against an environment."""

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp.checks import check_leaves, check_made
from jaxdp.core import Environment, Guarantee, Learner, MadeBy, check_interfaces
from jaxdp.core.interface import text
from jaxdp.numerics.platforms import is_cpu
from jaxdp.simulation.run import outcomes as sums
from jaxdp.simulation.run.checkpoints import LogSpaced, resolve
from jaxdp.simulation.run.clipping import CLIPPED, count_clipped, warn_outside
from jaxdp.simulation.run.engines import MAKERS, choose_engine, has_totals, play_round, play_until
from jaxdp.simulation.run.fit import begin, check_many, check_round
from jaxdp.simulation.run.lane_run import Run
from jaxdp.simulation.run.look import AT_STOP, STOPPING, RecordFn, at_stop, is_at_stop, merged, seen
from jaxdp.simulation.run.pieces import play_pieces
from jaxdp.simulation.run.products import with_full_products
from jaxdp.simulation.run.rounds import Keys, Play, round_keys, split_lane_key
from jaxdp.simulation.run.values import check_point, check_taken, maker, once, parameters, taken, with_names
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
) -> Run:
    """A run of the learner against the environment, for a sweep or to be called directly.

    Round t (from 0) uses fold_in(key, t) of a key for each purpose. The environment's keys do not depend on the
    learner's, so every learner and every epsilon meets the same world; and results do not depend on the checkpoints.
    Compile time and memory do not depend on the horizon.

    Engines: "rounds" plays round by round. "blocks" plays many rounds at once where the learner plans them, with the
    same results bit for bit; of a learner whose blocks draw the sum of their reports (`Blocks.total`) the same in
    distribution, and they depend on the checkpoints. "counts" draws totals of the rounds that the learner plans, the
    same in distribution; its worlds are not the same for every epsilon, and depend on the checkpoints. "auto" is blocks
    where both sides have them, without totals, and else rounds.

    Warns:
        UserWarning: if the learner declares no interface, where the environment does: its plays are then not known to
            be among the environment's actions; or if the horizon ends before the learner does all that it is made for.
            (Python shows each once for a learner and a line that calls.) From `params`: if the environment's mean
            rewards lie outside the interval to which the learner clips rewards, or if a given delta leaves the claim a
            delta above one over the horizon.

    Args:
        learner: the algorithm.
        environment: what it plays against.
        horizon: rounds, in [1, 2^31 - 1], or beyond under x64.
        checkpoints: after which rounds to look: how many, evenly spaced; or increasing round numbers; or
            `log_spaced(n)`; None is the horizon alone.
        record: functions of one `Look` (params, public, world, action, round) -> array, read at the checkpoints, by
            name. By counts the action is None.
        engine: "rounds", "blocks", "counts" or "auto".
        outcomes: which of the environment's outcomes to sum; None is all. Those left out cost nothing. For a learner
            that clips feedback, as bandits with `rewards="bounded"` do, `clipped` may be among them: the number of
            rounds whose feedback lies outside its interval, which over `round` is their share.

    Returns:
        A run whose outputs have the dimension `round` (the checkpoints): every outcome summed over rounds, every metric
        of the environment's `summary`, what its `judge` says of the learner's `answer`, every record. For a learner
        with a stopping time also `rounds` ([] integer), the rounds played, and `censored` ([] bool), that it did not
        stop within the horizon; sums stay as they are from the stop on, and `NAME_at_stop` is what `judge` says there.
        `params` and `guarantee` take the learner's and the environment's values together; the environment's `params`
        are called once for each distinct set of its own, so that a sweep holds its arrays once. `guarantee` has the
        learner's claim, and of an environment with `persons` that of one person as well, under the person's name.

    Raises:
        ValueError: if learner or environment is none, as a factory that was not called; if the horizon is out of range
            or not the learner's own; if checkpoints are not increasing within
            it; if names of parameters clash; if learner and environment declare other interfaces; if one of them lacks
            the engine. From the run itself, before anything is compiled: if its key is not a typed one, its
            parameters are not made by its `params`, shapes do not fit, outputs clash, or an outcome is not the
            environment's.
    """
    check_made("learner", learner, Learner)
    check_made("environment", environment, Environment)
    horizon = check_horizon(horizon)
    if learner.horizon is not None and learner.horizon != horizon:
        raise ValueError(f"horizon must be the learner's own {learner.horizon}, got {horizon}")
    if environment.horizon is not None and horizon > environment.horizon:
        raise ValueError(f"horizon must be <= the environment's {environment.horizon}, got {horizon}")
    looks = resolve(checkpoints, horizon)
    check_interfaces(learner.interface, environment.interface)
    _warn(learner, environment, horizon)
    counts_clipped = learner.clip is not None and CLIPPED in (outcomes or ())
    played_world = count_clipped(learner, environment) if counts_clipped else environment
    engine = choose_engine(learner, played_world, engine)
    stages = MAKERS[engine](learner, played_world, horizon)
    step = stages[0].advance
    same_length = engine == "rounds" and learner.done is None  # as many rounds for every lane: no masks
    recorded = dict(record or {})
    named = maker(learner.act) if learner.made_by is None else learner.made_by.name
    whose = f"the learner {named}", f"the environment {maker(environment.feedback)}"
    takers = list(zip(whose, (learner.params, environment.params), strict=True))
    clash = set(parameters(learner.params)) & set(parameters(environment.params))
    if clash:
        raise ValueError(
            f"names of learner's and environment's values must differ, got {', '.join(sorted(clash))} in both"
        )

    made_world = once(environment.params)

    def params(**values: Any) -> dict[str, Any]:
        """Returns the parameters of one grid point, on the host, from the learner's and the environment's values."""
        check_taken(values, takers)
        made = {
            "learner": check_leaves(whose[0], learner.params(**taken(learner.params, values))),
            "environment": check_leaves(whose[1], made_world(**taken(environment.params, values))),
        }
        warn_outside(learner, environment, made, whose[0], parameters(learner.params))
        if values.get("delta") and (claim := guarantee(**values)["learner"]).is_private:
            warn_large_delta(claim.delta, horizon)
        return made

    def guarantee(**values: Any) -> dict[str, Guarantee]:
        """Returns what is claimed for the same values as `params` takes, by whose claim it is."""
        check_taken(values, takers)
        claim = learner.guarantee(**taken(learner.params, values))
        persons = environment.persons
        if persons is None:
            return {"learner": claim}
        return {"learner": claim, persons.name: claim.of_person(persons.rounds, privacy_unit=f"one {persons.name}")}

    def start(key: jax.Array, params: Any) -> tuple[Keys, Play]:
        key_state, key_world, roots = split_lane_key(check_key(key))
        state = begin("the learner's init", learner.init, key_state, params["learner"])
        world = begin("the environment's init", played_world.init, key_world, params["environment"])
        keys = jax.eval_shape(lambda: round_keys(roots, jnp.zeros((), jnp.result_type(int)), horizon))
        shown = check_round(learner, played_world, keys, params, state, world)
        if engine != "rounds":
            check_many(learner, played_world, engine, keys, params, state, world, shown)
        action = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shown.action)
        return roots, Play(
            round=jnp.zeros((), jnp.result_type(int)),
            state=state,
            world=world,
            outcomes=sums.empty(_summed(shown.outcome, outcomes)),
            action=action if recorded and engine != "counts" else None,
            stopped=None if learner.done is None else jnp.asarray(False),
        )

    def played(params: Any) -> Any:
        """The params with which rounds are played: those of `played_world` are the params of both sides."""
        return {**params, "environment": params} if counts_clipped else params

    def look(params: Any, play: Play) -> dict[str, jax.Array]:
        return seen(learner, environment, recorded, params, play)

    @with_full_products
    def simulate(key: jax.Array, params: Any) -> dict[str, jax.Array]:
        check_point(params, ("learner", "environment"))
        params = jax.tree.map(jnp.asarray, params)  # NumPy arrays do not take traced indices
        inputs = played(params)
        roots, play = start(key, inputs)

        def until(stop: jax.Array, play: Play) -> Play:
            if same_length:
                return jax.lax.fori_loop(play.round, stop, lambda _, play: step(roots, inputs, play, stop), play)
            return play_until(stages, roots, inputs, play, stop)

        def segment(play: Play, stop: jax.Array) -> tuple[Play, dict[str, jax.Array]]:
            play = until(stop, play)
            return play, look(params, play)

        if same_length and len(looks) > 1 and not is_cpu():
            play, outputs = play_pieces(
                looks, lambda play: step(roots, inputs, play, play.round), partial(look, params), play
            )
        else:
            play, outputs = jax.lax.scan(segment, play, jnp.asarray(looks, play.round.dtype))
        if looks[-1] < horizon and learner.done is not None:
            play = until(jnp.asarray(horizon, play.round.dtype), play)
        return outputs if play.stopped is None else merged(outputs, at_stop(learner, environment, params, play))

    @with_full_products
    def by_round(key: jax.Array, params: Any, num_rounds: int) -> dict[str, Any]:
        if num_rounds > horizon:
            raise ValueError(f"num_rounds must be <= the horizon {horizon}, got {num_rounds}")
        check_point(params, ("learner", "environment"))
        params = jax.tree.map(jnp.asarray, params)  # NumPy arrays do not take traced indices
        inputs = played(params)
        roots, play = start(key, inputs)

        def step(play: Play, _: None) -> tuple[Play, dict[str, Any]]:
            after, events = play_round(learner, played_world, horizon, roots, inputs, play)
            events = events._replace(outcome={})  # in the sums
            return after, {
                "events": {**events._asdict(), "public": after.state.public},
                "stopped": after.stopped,
                "sums": look(params, after),
            }

        return jax.lax.scan(step, play, length=num_rounds)[1]

    def dims(outputs: Mapping[str, jax.ShapeDtypeStruct]) -> dict[str, tuple[str, ...]]:
        def own(name: str, size: int) -> tuple[str, ...]:
            return environment.dims.get(name) or tuple(f"{name}_{axis}" for axis in range(size))

        def named(name: str, leaf: jax.ShapeDtypeStruct) -> tuple[str, ...]:
            if name in STOPPING:
                return ()
            if is_at_stop(name, outputs):
                return own(name.removesuffix(AT_STOP), leaf.ndim)
            return ("round", *own(name, leaf.ndim - 1))

        return {name: named(name, leaf) for name, leaf in outputs.items()}

    return Run(
        simulate=simulate,
        params=with_names(params, takers),
        guarantee=with_names(guarantee, takers),
        dims=dims,
        coords={"round": looks},
        by_round=None if engine == "counts" or (engine == "blocks" and has_totals(learner)) else by_round,
        made_by=MadeBy(
            "simulator",
            {"learner": learner, "environment": environment, "horizon": horizon, "engine": engine},
            unnamed=("learner", "environment"),
        ),
    )


def _warn(learner: Learner, environment: Environment, horizon: int) -> None:
    if learner.interface is None and environment.interface is not None:
        warnings.warn(
            f"the learner {maker(learner.act)} is not checked, as it declares no interface: give it one, whose action "
            f"is {text(environment.interface.action)}, or try it by jaxdp.testing.check_learner",
            UserWarning,
            stacklevel=3,
        )
    if horizon < learner.min_horizon:
        warnings.warn(
            f"the horizon {horizon} ends before the learner {maker(learner.act)} gets to what it is made for: it needs "
            f"at least {learner.min_horizon} rounds",
            UserWarning,
            stacklevel=3,
        )


def _summed(found: Mapping[str, Any], names: Sequence[str] | None) -> dict[str, Any]:
    """The outcomes that are asked for.

    Raises:
        ValueError: if there is no such outcome.
    """
    if names is None:
        return dict(found)
    for name in [names] if isinstance(names, str) else names:
        if isinstance(names, str) or name not in found:
            only = f" ({CLIPPED} is one of learners that clip feedback)" if name == CLIPPED else ""
            raise ValueError(f"outcomes must be some of {', '.join(found)}, got {names!r}{only}")
    return {name: found[name] for name in names}
