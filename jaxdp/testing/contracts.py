"""Contract checks, one for each kind of algorithm."""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.checks import check_made
from jaxdp.core import Blocks, Environment, Estimator, Guarantee, Learner
from jaxdp.core.interface import text as described
from jaxdp.simulation import simulator
from jaxdp.simulation.run.engines import has_totals
from jaxdp.simulation.run.look import is_at_stop
from jaxdp.simulation.run.rounds import interact, root_keys, round_keys
from jaxdp.simulation.run.values import taken
from jaxdp.testing.laws import check_law, released
from jaxdp.testing.plays import OUTSIDE, PLAYED, counting, first_outside
from jaxdp.validation import check_count

NUM_SEEDS = 3
EXACT, RELEASE = ("params", "public", "context", "action", "feedback"), ("key", "params", "public", "sums", "length")


def check_estimator(
    estimator: Estimator,
    values: Mapping[str, float],
    features: jax.Array,
    labels: jax.Array,
    *,
    key: jax.Array,
    tolerance: float = 1e-4,
) -> None:
    """Checks an estimator's contract on one data set.

    Argument names; that `params` and `guarantee` take the same values and refuse a bad epsilon; jit = eager; vmap over
    seeds and epsilons = loop, with one trace for all epsilons; that no key which a function gets is used twice there;
    at epsilon = inf the report does not depend on the key. A guarantee that claims something must depend on epsilon.
    Where features are not declared public, the estimate depends on them through the report alone.

    It does not see whether noise is fresh, or enough: a key made inside a function, such as `jax.random.key(0)`,
    passes, and so does noise of any scale. `jaxdp.audit.audit` attacks the claim itself.

    Args:
        estimator: to check.
        values: a grid point; `epsilon` is varied if it is among them.
        features: [num_samples, dim] float.
        labels: [num_samples] int32.
        key: of the checks.
        tolerance: between programs that should compute the same, relative and absolute.
    """
    check_made("estimator", estimator, Estimator)
    _check_arguments(estimator.privatize, ("key", "params", "features", "labels"))
    _check_arguments(estimator.fit, ("key", "params", "features", "report"))
    _check_values(estimator.params, estimator.guarantee)
    claim = estimator.guarantee(**values)
    assert isinstance(claim, Guarantee), f"guarantee must return a Guarantee, got {claim!r}"
    _check_refusals(estimator.params, values)

    def run(key: jax.Array, params: Any) -> Any:
        key_privatize, key_fit = jax.random.split(key)
        report = estimator.privatize(key_privatize, params, features, labels)
        return estimator.fit(key_fit, params, features, report)

    def report(key: jax.Array, params: Any) -> Any:
        return estimator.privatize(key, params, features, labels)

    _check_programs(run, estimator.params, values, key, tolerance)
    if "epsilon" in values and claim.is_private:
        _check_claim(estimator.guarantee, values)
        clear = estimator.params(**{**values, "epsilon": np.inf})
        first, second = (report(k, clear) for k in jax.random.split(key))
        chex.assert_trees_all_equal(first, second)
    if not estimator.features_public:
        key_report, key_fit = jax.random.split(key)
        params = estimator.params(**values)
        released = report(key_report, params)
        first, second = (estimator.fit(key_fit, params, seen, released) for seen in (features, 1 - 2 * features))
        chex.assert_trees_all_equal(first, second, custom_message="fit must not read features that are not public")


def check_learner(
    learner: Learner,
    environment: Environment,
    values: Mapping[str, float],
    *,
    horizon: int,
    key: jax.Array,
    tolerance: float = 1e-4,
    num_lanes: int = 10_000,
    draws_in_update: bool = False,
    may_claim_less: bool = False,
    multiple: float = 1.0,
) -> None:
    """Checks a learner's contract on one environment.

    Argument names; that `params` and `guarantee` take the same values and refuse a bad epsilon; that shapes fit and
    states are stable; jit = eager; vmap over seeds and epsilons = loop, with one trace for all epsilons; in single
    rounds, that no key which a function gets is used twice there; that results do not depend on the checkpoints; that
    every play is one of the actions that the environment declares, in each lane and round, by blocks and by counts too;
    by blocks = by rounds, bit for bit, in what is released too, where both sides have blocks; by counts, and by blocks
    with totals, as many rounds at every checkpoint, and the law of rounds: outcomes, metrics and what has been released
    have the same distributions, at epsilon and at smaller ones. At epsilon = inf neither `privatize` nor `update`
    depends on its key, in any round; of `update` see `draws_in_update`. A guarantee that claims something must depend
    on epsilon.

    It does not see whether noise is fresh, or enough: a key made inside a function, such as `jax.random.key(0)`, passes
    with the same noise in every round, and so does noise of any scale. `jaxdp.audit.grey_box` finds both. What the law
    of counts or totals is compared in must have happened within the horizon, which should be longer than two blocks.

    Args:
        learner: to check.
        environment: what it plays against.
        values: a grid point of both; `epsilon` is varied if it is among them.
        horizon: rounds to play, >= 2.
        key: of the checks.
        tolerance: between programs that should compute the same, relative and absolute.
        num_lanes: by how many lanes of each engine the laws are compared, >= 1; 10,000 of them find noise of half the
            scale where it decides about as much as the data does.
        draws_in_update: whether `update` draws what is played next, without privacy as well: from weights, or among
            equal scores. Then its key may, at epsilon = inf, decide whole numbers of the public state, and nothing
            else: no float of it, and nothing private. That these numbers have the distribution of the non-private
            algorithm is not checked.
        may_claim_less: whether the guarantee may be a smaller epsilon than the one among the values, of which the
            learner spends no more than it needs.
        multiple: how many times the epsilon among the values the guarantee has to be, as of an algorithm whose
            published claim is too small.
    """
    check_made("learner", learner, Learner)
    check_made("environment", environment, Environment)
    check_count("num_lanes", num_lanes)
    totals = [blocks.total for blocks in learner.blocks if isinstance(blocks, Blocks) and blocks.total]
    for function, expected in (
        (learner.init, ("key", "params")),
        (learner.act, ("key", "params", "public", "context")),
        (learner.privatize, ("key", "params", "public", "context", "action", "feedback")),
        (learner.update, ("key", "params", "state", "report")),
        *([(learner.done, ("params", "public"))] if learner.done else []),
        *([(learner.answer, ("params", "public"))] if learner.answer else []),
        *((total.exact, EXACT) for total in totals),
        *((total.release, RELEASE) for total in totals),
    ):
        _check_arguments(function, expected)
    _check_values(learner.params, learner.guarantee)
    space = next((side.interface.action for side in (environment, learner) if side.interface), None)
    learner = learner._replace(interface=learner.interface or environment.interface)  # its plays are checked below
    counted = counting(environment, space)
    rounds = simulator(learner, counted, horizon, engine="rounds")
    claim = rounds.guarantee(**values)["learner"]
    assert isinstance(claim, Guarantee), f"guarantee must return a Guarantee, got {claim!r}"
    _check_refusals(rounds.params, values)
    keys, points, expected = _check_programs(rounds, rounds.params, values, key, tolerance)

    def check_plays(engine: str, outputs: Any) -> None:
        where = np.argwhere(np.asarray(outputs[OUTSIDE])[..., -1] != 0)
        if space is not None and len(where):
            point, seed = where[0]
            lane = keys[seed], jax.tree.map(lambda leaf: leaf[point], points)
            text = first_outside(learner, environment, space, horizon, engine, *lane)
            raise AssertionError(f"actions must be {described(space)}, as declared, got {text} by {engine}")

    check_plays("rounds", expected)
    if "epsilon" in values and claim.is_private:
        _check_claim(lambda **point: rounds.guarantee(**point)["learner"], values, multiple, or_less=may_claim_less)
        clear = rounds.params(**{**values, "epsilon": np.inf})
        _check_noiseless(learner, environment, clear, horizon, key, draws_in_update=draws_in_update)

    # The last round may be one after which the learner forgets. What changes inside a block and is read in `privatize`
    # need not move an outcome: the releases tell.
    looks = sorted({1, horizon - 1, horizon})
    record = released(learner, learner.params(**taken(learner.params, values))) if learner.blocks else {}

    def looked(engine: str) -> Any:
        run = simulator(learner, counted, horizon, engine=engine, checkpoints=looks, record=record)
        return _batched(run)(keys, points)

    def check_law_of(engine: str) -> None:
        how = {"engine": engine, "horizon": horizon, "num_lanes": num_lanes, "key": key, "tolerance": tolerance}
        check_law(learner, environment, values, **how)

    seen = looked("rounds")
    last = {name: seen[name] if is_at_stop(name, seen) else seen[name][:, :, -1:] for name in expected}
    _close(last, expected, 0.0)
    if learner.blocks and environment.block and (environment.contexts or not environment.context):
        blocks = looked("blocks")
        check_plays("blocks", blocks)
        if has_totals(learner):
            chex.assert_trees_all_equal_shapes_and_dtypes(blocks, seen)
            chex.assert_trees_all_equal(blocks[PLAYED], seen[PLAYED], custom_message="blocks must play as many rounds")
            check_law_of("blocks")
        else:
            chex.assert_trees_all_equal(blocks, seen)
    if learner.counts and environment.tally:
        counts = _batched(simulator(learner, counted, horizon, engine="counts"))(keys, points)
        check_plays("counts", counts)
        chex.assert_trees_all_equal_shapes_and_dtypes(counts, expected)
        if learner.done is None:
            looks = sorted({1, horizon // 2, horizon - 1, horizon})
            run = simulator(learner, counted, horizon, engine="counts", checkpoints=looks)
            played = jax.jit(run)(key, rounds.params(**values))[PLAYED]
            assert played.tolist() == looks, f"counts must play {looks} rounds, got {played.tolist()}"
        check_law_of("counts")


def _check_noiseless(
    learner: Learner, environment: Environment, params: Any, horizon: int, key: jax.Array, *, draws_in_update: bool
) -> None:
    """At epsilon = inf other keys of `privatize` and `update`, with the same for plays and world, change nothing.

    Each round begins for both keys with the state that the first one led to.
    """
    params = jax.tree.map(jnp.asarray, params)
    key_init, key_world, *roots = jax.random.split(key, 5)

    @jax.jit
    def run() -> Any:
        start = learner.init(key_init, params["learner"]), environment.init(key_init, params["environment"])

        def step(carry: Any, round_: jax.Array) -> Any:
            keys, *noises = (round_keys(root_keys(key_world, root), round_, horizon) for root in roots)
            rounds = [
                interact(learner, environment, keys._replace(user=noise.user, update=noise.update), params, *carry)
                for noise in noises
            ]
            (state, world, _), _ = rounds
            return (state, world), [(events.report, state) for state, _, events in rounds]

        return jax.lax.scan(step, jax.tree.map(jnp.asarray, start), jnp.arange(horizon, dtype=jnp.int32))[1]

    first, second = run()
    if draws_in_update:
        (_, state), (_, other) = first, second
        second = second[0], other._replace(public=jax.tree.map(_whole_numbers_of, state.public, other.public))
    chex.assert_trees_all_equal(first, second)


def _whole_numbers_of(one: jax.Array, other: jax.Array) -> jax.Array:
    """The other, or the one where it is made of whole numbers, which then are equal."""
    return other if jnp.issubdtype(other.dtype, jnp.inexact) else one


def check_mechanism(
    params: Callable[..., Any],
    guarantee: Callable[..., Guarantee],
    release: Callable[[jax.Array, Any, jax.Array], jax.Array],
    values: Mapping[str, float],
    data: jax.Array,
    *,
    exact: Callable[[jax.Array], jax.Array] | None,
    key: jax.Array,
) -> None:
    """Checks a mechanism's contract on one input.

    As `check_estimator`, and that at epsilon = inf the release is `exact(data)`.

    Args:
        params: (**values) -> pytree.
        guarantee: (**values) -> Guarantee.
        release: (key, params, data) -> output.
        values: a grid point; `epsilon` is varied if it is among them.
        data: the input, arrays as the mechanism takes them ([...], of any dtype).
        exact: the mechanism without noise, or None.
        key: of the checks.
    """
    claim = guarantee(**values)
    assert isinstance(claim, Guarantee), f"guarantee must return a Guarantee, got {claim!r}"
    _check_refusals(params, values)
    if "epsilon" in values:
        _check_claim(guarantee, values)

    def run(key: jax.Array, params: Any) -> jax.Array:
        return release(key, params, data)

    _check_programs(run, params, values, key, 1e-6)
    if exact is not None and "epsilon" in values:
        chex.assert_trees_all_equal(run(key, params(**{**values, "epsilon": np.inf})), exact(data))


def _check_arguments(function: Callable[..., Any], expected: tuple[str, ...]) -> None:
    names = tuple(inspect.signature(function).parameters)
    assert names == expected, f"arguments must be {expected}, got {names}"


def _check_values(params: Callable[..., Any], guarantee: Callable[..., Guarantee]) -> None:
    mine, theirs = (
        {name: one.default for name, one in inspect.signature(function).parameters.items()}
        for function in (params, guarantee)
    )
    assert mine.keys() == theirs.keys(), f"guarantee must take the names that params takes, got {[*theirs]}, {[*mine]}"
    for name, default in mine.items():
        same = default is theirs[name] or np.array_equal(default, theirs[name])
        assert same, f"guarantee must have the defaults of params, got {theirs[name]} and {default} for {name}"


def _check_refusals(params: Callable[..., Any], values: Mapping[str, float]) -> None:
    for epsilon in (0.0, -1.0, float("nan")) if "epsilon" in values else ():
        try:
            params(**{**values, "epsilon": epsilon})
        except ValueError as error:
            refusal = str(error)
        else:
            refusal = ""
        assert "epsilon" in refusal, f"params must refuse epsilon = {epsilon} and name it, got {refusal or 'no error'}"


def _check_claim(
    guarantee: Callable[..., Guarantee],
    values: Mapping[str, float],
    multiple: float = 1.0,
    *,
    or_less: bool = False,
) -> None:
    for epsilon in (values["epsilon"], np.inf):
        claim, due = guarantee(**{**values, "epsilon": epsilon}), multiple * epsilon
        if claim.kind in ("zcdp", "gaussian"):  # calibrated so that it implies (epsilon, delta), up to rounding
            assert "delta" in values, f"values must have a delta, at which a claim of {claim} has an epsilon"
            implied = claim.epsilon_at(values["delta"])
            assert math.isclose(implied, due, rel_tol=1e-6) or (or_less and 0 < implied < due < np.inf), (
                f"guarantee must imply epsilon = {due} at delta = {values['delta']}, got {implied}"
            )
        else:
            less = or_less and 0 < claim.epsilon < due * (1 + 1e-6) < np.inf  # up to rounding
            assert claim.epsilon == due or less, f"guarantee must claim epsilon = {due}, got {claim.epsilon}"


def _check_programs(run, params, values, key, tolerance) -> tuple[jax.Array, Any, Any]:
    """One program, many ways to run it: eager, jit, vmap over seeds and epsilons. Returns these, and the outputs."""
    epsilons = [values["epsilon"], values["epsilon"] / 2, np.inf] if "epsilon" in values else [None]
    points = [params(**({**values, "epsilon": e} if e is not None else values)) for e in epsilons]
    stacked = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *points)
    keys = jax.random.split(key, NUM_SEEDS)
    traces = []

    @jax.jit
    def traced(key, params):
        traces.append(key)
        return run(key, params)

    loop = [[traced(k, point) for k in keys] for point in points]
    assert len(traces) == 1, f"one trace must serve every epsilon, got {len(traces)}"
    loop = jax.tree.map(
        lambda *leaves: jnp.stack(leaves), *(jax.tree.map(lambda *x: jnp.stack(x), *row) for row in loop)
    )
    batched = _batched(run)(keys, stacked)
    _close(batched, loop, tolerance)
    with jax.debug_key_reuse(True):
        eager = run(keys[0], points[0])
    _close(eager, jax.tree.map(lambda leaf: leaf[0, 0], loop), tolerance)
    return keys, stacked, batched


def _batched(run: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled, over stacked parameters and over seeds: one axis in another, as users nest them."""
    return jax.jit(jax.vmap(jax.vmap(run, (0, None)), (None, 0)))


def _close(left: Any, right: Any, tolerance: float) -> None:
    """Floats within tolerance; what is counted or decided from them (steps used) may differ by rounding."""
    chex.assert_trees_all_equal_shapes_and_dtypes(left, right)

    def floats(tree: Any) -> list[Any]:
        return [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)]

    chex.assert_trees_all_close(floats(left), floats(right), rtol=tolerance, atol=tolerance)
