"""Wrong versions of `per_person`, and a learner with one Gaussian release."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import Guarantee, Interface, Learner, Space, State, Visit, arms, guarantee_for
from jaxdp.core.params import pytree_dataclass, scalar_leaf
from jaxdp.mechanisms import gaussian
from jaxdp.persons import _zeros_like, per_person


class Counted(NamedTuple):
    """A learner's public state, and how many reports of a person count towards each cap, [people, caps]."""

    learner: Any
    counts: jax.Array


class CountedReport(NamedTuple):
    """A report, with who gave it, on which action, and whether it is heard."""

    visit: Visit
    slot: jax.Array
    is_heard: jax.Array
    report: Any


def keep_whole_budget(learner: Learner, reports: int) -> Learner:
    """Gives each of a person's reports the whole budget."""
    return per_person(learner, reports=reports, rest="act")._replace(params=learner.params)


def limit_visits(learner: Learner, reports: int, *, people: int, caps: int = 1, slot=None, ended=None) -> Learner:
    """Hears at most `reports` visits of a person for each cap; with one cap it is right.

    Args:
        learner: that hears.
        reports: of a person, for each cap.
        people: their number.
        caps: their number.
        slot: action -> index of its cap; None for one cap.
        ended: (public before, public after) -> whether a phase ended, which starts all caps again; None for never.
    """

    def cap_of(action: Any) -> jax.Array:
        return jnp.int32(0) if slot is None else slot(action)

    def init(key, params) -> State:
        private, public = learner.init(key, params)
        return State(private, Counted(public, jnp.zeros((people, caps), jnp.int32)))

    def act(key, params, public: Counted, visit: Visit):
        return learner.act(key, params, public.learner, None)

    def privatize(key, params, public: Counted, visit: Visit, action, feedback) -> CountedReport:
        def hear() -> Any:
            return learner.privatize(key, params, public.learner, None, action, feedback)

        is_heard = public.counts[visit.person, cap_of(action)] < reports
        return CountedReport(visit, cap_of(action), is_heard, jax.lax.cond(is_heard, hear, lambda: _zeros_like(hear)))

    def update(key, params, state: State, report: CountedReport) -> State:
        private, (public, counts) = state

        def learn() -> State:
            after = learner.update(key, params, State(private, public), report.report)
            counted = counts.at[report.visit.person, report.slot].add(1)
            if ended is not None:
                counted = jnp.where(ended(public, after.public), 0, counted)
            return State(after.private, Counted(after.public, counted))

        is_heard = counts[report.visit.person, report.slot] < reports  # as in `privatize`
        return jax.lax.cond(is_heard, learn, lambda: state)

    return _with_claim(learner, reports)._replace(init=init, act=act, privatize=privatize, update=update)


def counts_successes(learner: Learner, reports: int, *, people: int, hears_failures: bool = True) -> Learner:
    """Counts rewards of 1 towards a person's cap, and hears rewards of 0 until then, or never: a central learner."""

    def init(key, params) -> State:
        private, public = learner.init(key, params)
        return State((private, jnp.zeros(people, jnp.int32)), public)

    def update(key, params, state: State, report) -> State:
        (private, counts), public = state
        visit, (action, reward) = report
        after = learner.update(key, params, State(private, public), (action, reward))
        is_heard = (counts[visit.person] < reports) & (hears_failures | (reward > 0))
        private, public = jax.tree.map(lambda new, old: jnp.where(is_heard, new, old), tuple(after), (private, public))
        return State((private, counts.at[visit.person].add(jnp.where(is_heard, reward, 0))), public)

    return _with_claim(learner, reports)._replace(
        init=init,
        act=lambda key, params, public, visit: learner.act(key, params, public, None),
        privatize=lambda key, params, public, visit, action, feedback: (visit, (action, feedback)),
        update=update,
    )


def _with_claim(learner: Learner, reports: int) -> Learner:
    return per_person(learner, reports=reports, rest="act")


@pytree_dataclass
class GaussianParams:
    """Traced values: [] float, the standard deviation of the noise."""

    stddev: Any


def one_gaussian_release(heard: int) -> Learner:
    """Sums rewards of `heard` rounds and releases the sum with Gaussian noise; its `epsilon` is its claim's mu."""

    def params(*, epsilon: float) -> GaussianParams:
        return GaussianParams(stddev=scalar_leaf("stddev", 1 / epsilon))

    def claim(epsilon: float) -> Guarantee:
        return Guarantee.gaussian(epsilon, trust_model="central", privacy_unit="one reward", argument="one noisy sum")

    def update(key, params, state: State, report) -> State:
        total, (round_, released) = state.private + report, state.public
        released = jax.lax.cond(
            round_ + 1 == heard, lambda: gaussian(key, total, params.stddev, l2_sensitivity=1.0), lambda: released
        )
        return State(total, (round_ + 1, released))

    zero = jnp.int32(0)
    return Learner(
        params=params,
        guarantee=guarantee_for(params, claim),
        init=lambda key, params: State(zero, (zero, jnp.zeros((), jnp.result_type(float)))),
        act=lambda key, params, public, context: zero,
        privatize=lambda key, params, public, context, action, feedback: feedback,
        update=update,
        interface=Interface(arms(2), Space("integers", (), 0, 1)),
    )
