"""Learners that use only each person's first visits, so that the privacy unit is a person."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.checks import check_made
from jaxdp.core import BestActionFn, Guarantee, Interface, Learner, State, Visit, factory
from jaxdp.core.interface import is_space
from jaxdp.core.person_values import person_claim, record_values
from jaxdp.core.visited import ANY_VISIT
from jaxdp.mechanisms import tape
from jaxdp.mechanisms.branches import branch
from jaxdp.validation import check_choice, check_count

RESTS = ("best", "act")
UNITS = ("round", "person")


class PersonReport(NamedTuple):
    """The report of one round. `per_person` defines which rounds are heard.

    Attributes:
        visit: the person who comes, and the number of this person's earlier visits; public.
        report: the wrapped learner's report; all zeros in a round that is not heard.
    """

    visit: Visit
    report: Any


@factory
def per_person(learner: Learner, *, reports: int = 1, rest: str = "best") -> Learner:
    """Returns a learner that uses only each person's first visits, so that its claim is for a person.

    A round is heard if it is one of the first `reports` visits of its person. In all other rounds, neither `privatize`
    nor `update` of `learner` is called. The schedule of visits is public, so everybody knows in advance which rounds
    are heard. Phases, blocks and the horizon of `learner` count only heard rounds. If `learner` needs a horizon, use
    `visits.num_heard(reports, rounds)`, where `rounds` is the number of rounds of the run.

    Args:
        learner: for bandits, duels or experts, without contexts.
        reports: k >= 1, the number of heard visits of each person. These are the person's first k visits in the whole
            run, not in each arm, phase or block.
        rest: the action of a round that is not heard. "best": the best action by the released state, from
            `Learner.best_action`, or from `Learner.recommend` if recommendations are actions. "act": the action of
            the learner's `act`, as if the round were heard.

    Returns:
        A learner for environments with `visits=`, such as `jaxdp.bandits.bernoulli_bandit(means, visits=visits)`. A run
        uses the engine "rounds" or, with rest="best" and if the environment supports it, "heard". If the learner has a
        stopping time, a run ends at this time.

    Raises:
        ValueError: if learner is not a `Learner`, has no interface, reads contexts, or is already a result of
            `per_person`; if reports is not an integer >= 1; if rest is neither "best" nor "act", or is "best" for a
            learner without a best action. The result's `params` and `guarantee` raise this error for claims in the
            joint model, and for budgets that cannot be divided.

    Values:
        The values of `learner`. The budget covers all rounds of a person.

    Privacy:
        - Claim: the learner's claim and trust model, with a person as the privacy unit.
        - Unit: all data of a person; adjacency: replace one person, that is their answers in all their rounds. Who
          comes when is public.
        - Budget of a heard round, solved in float64 and rounded down: for a pure or approximate claim, a heard round
          gets epsilon / k. In the local model, in which a person's k reports compose, it gets delta / k, rho / k or mu
          / sqrt(k). In other models a person is a group of k rounds, and a heard round gets rho / k^2, mu / k or delta
          * (e^(epsilon / k) - 1) / (e^epsilon - 1).
        - Released: the same values as in `learner`.
        - Private: the same values as in `learner`, and all feedback of rounds that are not heard.
        - Proof: `docs/proofs/person.md`.

    Source:
        Group privacy: Dwork & Roth (2014), Theorem 2.2. A cap on the rounds of a person: standard, for example Amin,
        Kulesza, Munoz & Vassilvitskii (2019).

    Deviations:
        None.

    Examples:
        >>> import jax, jaxdp
        >>> visits = jaxdp.Visits.random(people=1000, each=5)
        >>> learner = jaxdp.per_person(jaxdp.bandits.ucb_central(num_arms=2), reports=2)
        >>> run = jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit([0.9, 0.1], visits=visits), horizon=5000)
        >>> print(run.guarantee(epsilon=1.0)["learner"])
        1-DP (rounding: delta 5e-10), central, one person
        >>> outputs = run(jax.random.key(0), run.params(epsilon=1.0))
        >>> bool(outputs["pseudo_regret"][-1] < 400)
        True
    """
    check_count("reports", reports)
    check_choice("rest", rest, RESTS)
    interface = _check_learner(learner)
    best_action = _best_action(learner, interface)
    if rest == "act":
        best_action = None
    elif best_action is None:
        raise ValueError(
            f'rest must be "act" for a learner without best_action or a recommended action, got "best" for {learner!r}'
        )

    def params(**values: Any) -> Any:
        _check_trust(learner.guarantee(**values))
        return learner.params(**record_values(learner.guarantee, values, reports))

    def guarantee(**values: Any) -> Guarantee:
        _check_trust(learner.guarantee(**values))
        return person_claim(learner.guarantee, values, reports)

    for function in (params, guarantee):
        function.__signature__ = inspect.signature(learner.params)  # pyright: ignore[reportFunctionMemberAccess]

    def is_heard(visit: Visit) -> jax.Array:
        return visit.nth < reports

    def act(key, params, public, visit: Visit):
        def act_next() -> Any:
            return learner.act(key, params, public, None)

        if best_action is None:
            return act_next()
        return branch(is_heard(visit), act_next, partial(best_action, params, public))

    def privatize(key, params, public, visit: Visit, action, feedback) -> PersonReport:
        def hear() -> Any:
            return learner.privatize(key, params, public, None, action, feedback)

        return PersonReport(visit, branch(is_heard(visit), hear, lambda: _zeros_like(hear)))

    def update(key, params, state: State, report: PersonReport) -> State:
        return branch(
            is_heard(report.visit),
            lambda: learner.update(key, params, state, report.report),
            lambda: jax.tree.map(jnp.asarray, state),
        )

    return learner._replace(
        params=params,
        guarantee=guarantee,
        act=act,
        privatize=privatize,
        update=update,
        blocks=(),
        counts=None,
        best_action=best_action,
        interface=interface._replace(context=ANY_VISIT),
        reports=reports,
    )


def with_unit(learner: Learner, unit: str, reports: int = 1) -> Learner:
    """Returns a learner with the given privacy unit: the learner itself, or a learner made by `per_person`.

    In rounds that are not heard, the result plays the best action by the released state (`rest="best"`) if the learner
    has a best action, and otherwise the action of the learner's `act` (`rest="act"`).

    Args:
        learner: for bandits, duels or experts, without contexts. It may already have a claim for a person.
        unit: "round" or "person".
        reports: number of heard visits of each person, if the unit is "person".

    Raises:
        ValueError: as in `per_person`; if unit is neither "round" nor "person". For a learner that already has a claim
            for a person: if unit is "round", or if reports is neither 1 nor `learner.reports` (not checked for a
            learner by `jaxdp.person_means`, which has no `reports`).
    """
    check_choice("unit", unit, UNITS)
    check_made("learner", learner, Learner)
    if learner.reports is None and learner.visits is None:
        if unit == "round":
            return learner
        best_action = _best_action(learner, _check_learner(learner))
        return per_person(learner, reports=reports, rest="act" if best_action is None else "best")
    if unit == "round":
        raise ValueError(f'unit must be "person" for a learner with a claim for a person, got "round" for {learner!r}')
    if learner.reports is not None and reports not in (1, learner.reports):
        raise ValueError(f"reports must be left out for a learner made with {learner.reports} reports, got {reports}")
    return learner


def _check_learner(learner: Any) -> Interface:
    """Returns the interface of a learner to which `per_person` applies, and rejects all other learners."""
    if not isinstance(learner, Learner):
        raise ValueError(f"learner must be a Learner, got {type(learner).__name__}")
    if learner.interface is None:
        raise ValueError(f"learner must declare an interface, got none from {learner!r}")
    if learner.reports is not None:
        raise ValueError(f"learner must use every round, got a result of per_person: {learner!r}")
    if learner.interface.context is not None:
        raise ValueError(f"learner must not read contexts, because a person's contexts are private, got {learner!r}")
    return learner.interface


def _best_action(learner: Learner, interface: Interface) -> BestActionFn | None:
    if learner.best_action is not None:
        return learner.best_action
    if learner.recommend is not None and is_space(interface.action) and interface.recommendation == interface.action:
        return learner.recommend
    return None


def _check_trust(claim: Guarantee) -> None:
    if claim.trust_model == "joint":
        raise ValueError(
            f"learner must not claim joint privacy, which does not compose over a person's visits, got {claim}"
        )


def _zeros_like(function: Callable[[], Any]) -> Any:
    """Returns zeros with the shapes and dtypes of the function's result, and records nothing for audits."""
    with tape.recording():  # hides an outer tape
        shapes = jax.eval_shape(function)
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
