"""Planted wrong algorithms; each fails one contract check."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxdp.audit import UserData
from jaxdp.core import State
from jaxdp.testing import checks_of
from jaxdp.testing.checks import Check, failures
from jaxdp.testing.mechanisms import MechanismPrograms
from tests.contract import tiny

LANES = 500


def key():
    """Returns the key of all checks here."""
    return jax.random.key(7)


def rounds(**changes):
    """Returns the tiny learner with changes, by rounds alone."""
    return tiny.takes_turns()._replace(blocks=(), counts=None)._replace(**changes)


def blocks(**changes):
    learner = tiny.takes_turns()
    return learner._replace(blocks=(learner.blocks[0]._replace(**changes),), counts=None)


def counts(**changes):
    learner = tiny.takes_turns()
    assert learner.counts is not None
    return learner._replace(blocks=(), counts=learner.counts._replace(**changes))


RIGHT = tiny.takes_turns()
(BLOCKS,) = RIGHT.blocks
COUNTS: Any = RIGHT.counts


# ---- faults of all kinds of algorithms --------------------------------------------------
def rounded(x):
    """Returns x by a product of factors that a GPU rounds."""
    return (
        jnp.vdot(x[None], jnp.ones(1, x.dtype), precision="default")
        if x.ndim == 0
        else jnp.matmul(x, jnp.eye(len(x), dtype=x.dtype), precision="default")
    )


def no_refusal(*, epsilon):
    return tiny.scale_of(epsilon=abs(epsilon) or 1.0) if epsilon == epsilon else tiny.scale_of(epsilon=1.0)


def other_claim(*, epsilon):
    return tiny.claim(epsilon=epsilon / 2)


def other_default(*, epsilon: float = 1.0):
    return tiny.claim(epsilon=epsilon)


def other_structure(*, epsilon):
    params = tiny.scale_of(epsilon=epsilon)
    return params if np.isfinite(epsilon) else params._replace(scale=np.float64(params.scale).astype(np.float16))


@jax.custom_batching.custom_vmap
def same(number):
    return number


@same.def_vmap
def more_in_a_batch(axis_size, in_batched, number):
    return number + 1, in_batched[0]


def one_if_traced(number):
    return jnp.asarray(isinstance(number, Tracer), number.dtype)


def reused(key, params):
    """Draws noise with the scale of one draw, from two draws with one key."""
    return tiny.noise(key, params) / 2 + tiny.noise(key, params) / 2


# ---- learners ----------------------------------------
def reports(change):
    """Returns a `privatize` with a changed report: (key, params, feedback, report) -> report."""

    def privatize(key, params, public, context, action, feedback):
        report = RIGHT.privatize(jax.random.fold_in(key, 1), params, public, context, action, feedback)[1]
        return action, change(key, params, feedback, report)

    return privatize


def renamed(key, params, public, seen):
    return RIGHT.act(key, params, public, seen)


def loses_a_dtype(key, params, state, report):
    after = RIGHT.update(key, params, state, report)
    return after._replace(public=after.public._replace(sums=after.public.sums.astype(jnp.float16)))


def plays_outside_late(key, params, public, context):
    return jnp.where(public.round == 5, 2, RIGHT.act(key, params, public, context))


def plans(change):
    """Returns a plan of blocks that is changed: (plan, limit) -> plan."""

    def plan(keys, params, public, contexts, limit):
        return change(BLOCKS.plan(keys, params, public, contexts, limit), limit)

    return plan


def adds_after_whole_blocks(keys, params, state, plan, report):
    """Adds one more after two whole blocks, which inner checkpoints cut."""
    after, used = BLOCKS.update_block(keys, params, state, plan, report)
    more = jnp.where((plan.length == tiny.BLOCK) & (state.public.round == 3), 1.0, 0.0).astype(tiny.FLOAT)
    return after._replace(public=after.public._replace(sums=after.public.sums + more)), used


def adds_at_the_start(keys, params, state, plan, report):
    more = jnp.where(state.public.round == 0, 1.0, 0.0).astype(tiny.FLOAT)
    state = state._replace(public=state.public._replace(sums=state.public.sums + more))
    return BLOCKS.update_block(keys, params, state, plan, report)


def owes_plays(key, params, public, limit):
    plan = COUNTS.plan(key, params, public, limit)
    owed = jnp.where(limit == tiny.HORIZON, 9, 0)
    return plan._replace(counts=plan.counts + jnp.stack([-owed, owed]))


def plays_once_more(key, params, public, limit):
    """Plays one more round at the end, of an arm that is not among the outcomes; nothing of it is released."""
    plan = COUNTS.plan(key, params, public, limit)
    return plan._replace(counts=plan.counts.at[0].add(jnp.where(public.round + limit == tiny.HORIZON, 1, 0)))


def forgets_the_extra_round(key, params, state, plan, report):
    extra = jnp.where(state.public.round + plan.counts.sum() > tiny.HORIZON, 1, 0)
    counts = plan.counts.at[0].add(-extra)
    report = report.at[0].add(-extra.astype(report.dtype))
    return COUNTS.update_counts(key, params, state, plan._replace(counts=counts), report)


def quiet_totals(key, params, public, plan, totals):
    return totals + (COUNTS.privatize(key, params, public, plan, totals) - totals) / 8


WRONG_LEARNERS: dict[str, Any] = {
    "argument names": lambda: rounds(act=renamed),
    "values of params and guarantee": lambda: rounds(guarantee=other_default),
    "refusals": lambda: rounds(params=no_refusal),
    "claim depends on epsilon": lambda: rounds(guarantee=other_claim),
    "shapes fit under jit": lambda: rounds(update=loses_a_dtype),
    "one trace for all epsilons": lambda: rounds(params=other_structure),
    "jit equals eager": lambda: rounds(
        privatize=reports(lambda key, p, feedback, report: report + one_if_traced(report))
    ),
    "vmap equals loop": lambda: rounds(privatize=reports(lambda key, params, feedback, report: same(report))),
    "no key used twice": lambda: rounds(privatize=reports(lambda key, p, feedback, _: feedback + reused(key, p))),
    "runs on a GPU": lambda: rounds(privatize=reports(lambda key, params, feedback, report: rounded(report))),
    "plays are declared actions": lambda: rounds(act=plays_outside_late),
    "no noise at epsilon inf": lambda: rounds(
        privatize=reports(lambda key, params, feedback, report: report + jax.random.normal(key, dtype=report.dtype))
    ),
    "blocks play declared actions": lambda: blocks(
        plan=plans(lambda plan, limit: plan._replace(actions=jnp.where(plan.actions == 1, 2, plan.actions)))
    ),
    "checkpoints do not matter": lambda: blocks(update_block=adds_after_whole_blocks),
    "blocks end at declared rounds": lambda: blocks(
        plan=plans(lambda plan, limit: plan._replace(length=jnp.minimum(limit, tiny.BLOCK - 1)))
    ),
    "blocks equal rounds": lambda: blocks(update_block=adds_at_the_start),
    "counts play declared actions": lambda: counts(plan=owes_plays),
    "counts play every round": lambda: counts(plan=plays_once_more, update_counts=forgets_the_extra_round),
    "counts distribution": lambda: counts(privatize=quiet_totals),
}


def learner_checks(learner, **options) -> list[Check]:
    return checks_of(learner, tiny.two_arms(), tiny.VALUES, horizon=tiny.HORIZON, key=key(), num_lanes=LANES, **options)


def failing(checks) -> list[str]:
    return [names[0] for names, _ in failures(checks)]


class Drawing(NamedTuple):
    """[] int32 the arm that is played next, [] float a sum."""

    arm: jax.Array
    total: jax.Array


def draws_arms(noise_in_total=0.0):
    """Returns a learner with an `update` that draws the next arm, with noise in a private sum if asked for."""

    def init(key, params):
        return State(jnp.zeros((), params.scale.dtype), Drawing(jnp.int32(0), jnp.zeros((), params.scale.dtype)))

    def update(key, params, state, report):
        key_arm, key_noise = jax.random.split(key)
        noise = noise_in_total * jax.random.normal(key_noise, dtype=params.scale.dtype)
        arm = jax.random.randint(key_arm, (), 0, 2, jnp.int32)
        return State(state.private + report[1] + noise, Drawing(arm, state.public.total + report[1]))

    return rounds(init=init, act=lambda key, params, public, context: public.arm, update=update)


def noisy_at_the_end(key, params, state, report):
    """Adds noise at any epsilon in the last round alone."""
    after = RIGHT.update(key, params, state, report)
    noise = jnp.where(state.public.round == tiny.HORIZON - 1, jax.random.normal(key, (2,), tiny.FLOAT), 0)
    return after._replace(public=after.public._replace(sums=after.public.sums + noise))


def branches(key, params, state, report):
    return RIGHT.update(key, params, state, report if params.scale > 0 else (report[0], -report[1]))


def cuts_late(keys, params, state, plan, report):
    after, used = BLOCKS.update_block(keys, params, state, plan, report)
    return after, jnp.minimum(used + 1, len(keys))


def no_noise(key, params, public, plan, totals):
    return totals


MORE: dict[str, Any] = {
    "noise in the last round": (lambda: rounds(update=noisy_at_the_end), {}, "no noise at epsilon inf"),
    "a branch on params": (lambda: rounds(update=branches), {}, "shapes fit under jit"),
    "one claim": (lambda: rounds(guarantee=lambda *, epsilon: tiny.claim(epsilon=1.0)), {}, "claim depends on epsilon"),
    "one round too many": (lambda: blocks(update_block=cuts_late), {}, "blocks equal rounds"),
    "counts without noise": (lambda: counts(privatize=no_noise), {}, "counts distribution"),
    "draws": (draws_arms, {}, "no noise at epsilon inf"),
    "draws that are declared": (draws_arms, {"draws_in_update": True}, None),
    "noise beside draws": (lambda: draws_arms(1.0), {"draws_in_update": True}, "no noise at epsilon inf"),
    "more than epsilon": (
        lambda: rounds(guarantee=lambda *, epsilon: tiny.claim(epsilon=2 * epsilon)),
        {"may_claim_less": True},
        "claim depends on epsilon",
    ),
    "less than epsilon": (lambda: rounds(guarantee=other_claim), {"may_claim_less": True}, None),
    "another multiple": (rounds, {"multiple": 3}, "claim depends on epsilon"),
    "that multiple": (lambda: rounds(guarantee=other_claim), {"multiple": 0.5}, None),
}


# ---- estimators ----------------------------------------
MEAN = tiny.mean_of_labels()


def estimator(**changes):
    return MEAN._replace(**changes)


def labels_of(change):
    def privatize(key, params, features, labels):
        return change(key, params, MEAN.privatize(jax.random.fold_in(key, 1), params, features, labels))

    return privatize


def fits(change):
    def fit(key, params, features, report):
        return change(key, params, MEAN.fit(key, params, features, report))

    return fit


WRONG_ESTIMATORS: dict[str, Any] = {
    "argument names": lambda: estimator(privatize=lambda key, params, x, y: MEAN.privatize(key, params, x, y)),
    "values of params and guarantee": lambda: estimator(guarantee=other_default),
    "refusals": lambda: estimator(params=no_refusal),
    "claim depends on epsilon": lambda: estimator(guarantee=other_claim),
    "shapes fit under jit": lambda: estimator(
        fit=fits(lambda key, params, theta: theta if params.scale > 0 else -theta)
    ),
    "one trace for all epsilons": lambda: estimator(params=other_structure),
    "jit equals eager": lambda: estimator(fit=fits(lambda key, params, theta: theta + one_if_traced(theta))),
    "vmap equals loop": lambda: estimator(fit=fits(lambda key, params, theta: same(theta))),
    "no key used twice": lambda: estimator(fit=fits(lambda key, params, theta: theta + reused(key, params))),
    "runs on a GPU": lambda: estimator(fit=fits(lambda key, params, theta: rounded(theta))),
    "no noise at epsilon inf": lambda: estimator(
        privatize=labels_of(lambda key, params, report: report + jax.random.normal(key, report.shape, report.dtype))
    ),
    "features only through the report": lambda: estimator(features_public=False),
}


def estimator_checks(made) -> list[Check]:
    features, labels = jnp.ones((3, 2)) / 4, jnp.arange(3, dtype=jnp.int32)
    return checks_of(made, values=tiny.VALUES, features=features, labels=labels, key=key())


# ---- mechanisms ----------------------------------------
def mechanism(**changes):
    """Returns the arguments of a mechanism's checks, with changes."""
    return {
        "params": tiny.scale_of,
        "guarantee": tiny.claim,
        "release": lambda key, params, data: data + tiny.noise(key, params),
        "values": tiny.VALUES,
        "data": [jnp.ones((), tiny.FLOAT)],
        "exact": lambda data: data,
        "key": key(),
    } | changes


def releases(change):
    def release(key, params, data):
        return change(key, params, data + tiny.noise(jax.random.fold_in(key, 1), params))

    return {"release": release}


WRONG_MECHANISMS: dict[str, Any] = {
    "values of params and guarantee": lambda: {
        "values": {"rho": 1.0},
        "params": lambda *, rho: tiny.Params(jnp.ones((), tiny.FLOAT)),
        "guarantee": lambda *, rho: rho,
        "exact": None,
    },
    "refusals": lambda: {"params": no_refusal},
    "claim depends on epsilon": lambda: {"guarantee": other_claim},
    "shapes fit under jit": lambda: releases(lambda key, params, x: x if params.scale > 0 else -x),
    "one trace for all epsilons": lambda: {"params": other_structure},
    "jit equals eager": lambda: releases(lambda key, params, x: x + one_if_traced(x) * params.scale),
    "vmap equals loop": lambda: releases(lambda key, params, x: same(x)),
    "no key used twice": lambda: {"release": lambda key, params, data: data + reused(key, params)},
    "runs on a GPU": lambda: releases(lambda key, params, x: rounded(x)),
    "no noise at epsilon inf": lambda: {"exact": lambda data: data + 1},
}


def mechanism_checks(**changes) -> list[Check]:
    return MechanismPrograms(**mechanism(**changes)).checks()


# ---- entries ----------------------------------------
ENTRY = {
    "summary": "mine",
    "factory": lambda: rounds(),
    "values": tiny.VALUES,
    "environment": tiny.two_arms,
    "horizon": tiny.HORIZON,
    "neighbours": (UserData(np.zeros((1, 2), tiny.FLOAT)), UserData(np.ones((1, 2), tiny.FLOAT))),
}
