"""Attacks a learner's claim at the suite's sizes and horizon: flips one answer, or all answers of one person."""

import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Attack, AuditResult, audit
from jaxdp.core import Environment, Learner

TARGETS = {"arms": "arms.easy", "duels": "duels.utilities", "experts": "experts.stochastic"}  # by family
EPSILON = 1.0
WINDOW = 16  # number of plays after the changed answer that are compared one by one
LARGEST_STATE = 64  # a final public state with more numbers than this is not compared
TRIALS = {"quick": 2_000, "full": 1_000}
FLIPS = (np.int32(0), np.int32(1))
AGAIN = 5  # a second attack, which must confirm a refutation, has the trials multiplied by this number


def attack(
    key: jax.Array, learner: Learner, values: Mapping[str, Any], world: Environment, horizon: int, trials: int
) -> dict[str, Any]:
    """Attacks a learner's claim with two runs on the same data of the suite, except for one user's answer.

    There are up to two attacks: this user answers in round horizon / 3, or 64 rounds before the end. If the world has
    visits, the two runs differ in all answers of one person. This person's first visit comes after the first visits of
    a third of the people (first attack), or after all other first visits (second attack). In the local model the
    attacked output is this user's report, or the person's first report and the sum of the person's later reports. In
    other models it has the following values, if the adversary sees them: the 16 plays after the first changed answer
    (fewer if the run ends before), how often each action is played after this answer, and the public state at the end
    if it has at most 64 numbers.

    Returns:
        A record with `rounds`, the round of the first changed answer in each attack; `horizon`; `trials`, the number of
        trials of each attack; `currency`, the name of the claimed number, such as epsilon; `claimed`, the claimed
        number; `delta`; and `bound`, the largest lower bound on the true number. The bounds of all attacks hold
        together with 95% confidence. If an attack refutes the claim, all attacks are first repeated with a new key and
        five times the trials, and the record has the results of the repetition. Without the repetition, a true claim
        that a learner spends in full would be refuted in up to one of twenty cases. `refuted` is true if an attack
        refutes the claim.
    """
    claim, params = learner.guarantee(**values), (learner.params(**values), world.params())
    rounds = sorted({horizon // 3, max(horizon - 64, horizon // 3)})
    if world.visits is not None:
        first_visits = np.flatnonzero(world.visits.nth[:horizon] == 0).tolist()
        rounds = sorted({first_visits[len(first_visits) // 3], first_visits[-1]})
    is_local = claim.trust_model == "local"
    pairs = [
        Attack(_release(learner, world, horizon, changed, is_local, claim.adversary_view), params, FLIPS, claim)
        for changed in rounds
    ]

    def audit_all(key: jax.Array, trials: int) -> list[AuditResult]:
        confidence = 1 - 0.05 / len(pairs)
        keys = [jax.random.fold_in(key, index) for index in range(len(pairs))]
        return [audit(key, pair, trials=trials, confidence=confidence) for key, pair in zip(keys, pairs, strict=True)]

    audits = audit_all(key, trials)
    if any(one.verdict == "violated" for one in audits):
        trials *= AGAIN
        audits = audit_all(jax.random.fold_in(key, len(pairs)), trials)
    best = max(audits, key=lambda one: one.lower_bound)
    return {
        "rounds": rounds,
        "horizon": horizon,
        "trials": trials,
        "currency": best.currency,
        "bound": best.lower_bound,
        "claimed": best.claimed,
        "delta": best.delta,
        "refuted": any(one.verdict == "violated" for one in audits),
    }


def _release(
    learner: Learner, world: Environment, horizon: int, changed: int, is_local: bool, view: frozenset[str]
) -> Any:
    """Returns a function(key, params, flip) that plays a run and returns the attacked output."""
    data_key, visits = jax.random.key(1987), world.visits

    def is_changed(round_: jax.Array, context: Any) -> jax.Array:
        """Returns whether the answer of this round differs between the two runs."""
        return round_ == changed if visits is None else context.person == visits.person[changed]

    def play(key: jax.Array, params: Any, flip: jax.Array) -> Any:
        learner_params, world_params = params
        key_init, key_rounds = jax.random.split(key)

        def one_round(played: Any, round_: jax.Array) -> tuple[Any, Any, Any]:
            """Plays a round; returns the new states, the report of the attacked user or zeros, and the action."""
            state, data = played
            keys = jax.random.split(jax.random.fold_in(key_rounds, round_), 3)
            context = None if world.context is None else world.context(data_key, world_params, data)
            action = learner.act(keys[0], learner_params, state.public, context)
            data, feedback, _ = world.feedback(jax.random.fold_in(data_key, round_), world_params, data, action)
            is_attacked = is_changed(round_, context)
            feedback = jnp.where((flip == 1) & is_attacked, 1 - feedback, feedback)
            report = learner.privatize(keys[1], learner_params, state.public, context, action, feedback)
            after = learner.update(keys[2], learner_params, state, report)
            return (after, data), jax.tree.map(lambda leaf: jnp.where(is_attacked, leaf, 0), report), jnp.ravel(action)

        def plain_round(played: Any, round_: jax.Array) -> tuple[Any, None]:
            return one_round(played, round_)[0], None

        def watched_round(played: Any, round_: jax.Array) -> tuple[Any, jax.Array]:
            played, _, action = one_round(played, round_)
            return played, action

        def counted_round(carry: Any, round_: jax.Array) -> tuple[Any, None]:
            played, counts = carry
            played, action = watched_round(played, round_)
            return (played, counts + jax.nn.one_hot(action, num_actions, dtype=jnp.int32).sum(0)), None

        def reported_round(carry: Any, round_: jax.Array) -> tuple[Any, None]:
            played, total = carry
            played, report, _ = one_round(played, round_)
            return (played, jax.tree.map(jnp.add, total, report)), None

        rounds = jnp.arange(horizon, dtype=jnp.int32)
        played = learner.init(key_init, learner_params), world.init(data_key, world_params)
        played, _ = jax.lax.scan(plain_round, played, rounds[:changed])
        played, report, _ = one_round(played, rounds[changed])
        if is_local and visits is None:
            return report
        if is_local:
            none = jax.tree.map(jnp.zeros_like, report)
            (_, later), _ = jax.lax.scan(reported_round, (played, none), rounds[changed + 1 :])
            return report, later
        assert world.interface is not None
        num_actions = int(world.interface.action.high) + 1
        end = min(changed + 1 + WINDOW, horizon)
        played, window = jax.lax.scan(watched_round, played, rounds[changed + 1 : end])
        seen: dict[str, Any] = {}
        if "action" in view:
            counts = jax.nn.one_hot(window, num_actions, dtype=jnp.int32).sum((0, 1))
            (played, counts), _ = jax.lax.scan(counted_round, (played, counts), rounds[end:])
            seen = {"window": window.astype(jnp.int32), "counts": counts}
        else:
            played, _ = jax.lax.scan(plain_round, played, rounds[end:])
        public = played[0].public
        if "public" in view and sum(math.prod(np.shape(leaf)) for leaf in jax.tree.leaves(public)) <= LARGEST_STATE:
            seen["public"] = public
        return seen

    return play
