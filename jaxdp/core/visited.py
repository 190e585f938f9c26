"""Adds people to environments: the public context of a round is the person who comes."""

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core.environment import Environment, UserLevel
from jaxdp.core.interface import Space
from jaxdp.core.params import pytree_dataclass
from jaxdp.core.visits import Visit, Visits

PERSON = "person"
ANY_VISIT = Visit(Space("integers", (), 0, math.inf), Space("integers", (), 0, math.inf))
ParamsOfPerson = Callable[[jax.Array, Any, jax.Array], Any]  # (key of all people, params, person) -> params


@pytree_dataclass
class VisitedParams:
    """Parameters of an environment that people visit.

    Attributes:
        world: parameters of the environment without people.
        person: [horizon] int32, the person of each round.
        nth: [horizon] int32, number of earlier visits of this person.
    """

    world: Any
    person: np.ndarray
    nth: np.ndarray


class VisitedWorld(NamedTuple):
    """The state of an environment that people visit.

    Attributes:
        round: [] integer, number of rounds played. The number is the same in all lanes, so that a branch on a visit
            stays a branch under vmap.
        key: key from which the parameters of people are drawn; () if people do not differ.
        world: state of the environment without people.
    """

    round: jax.Array
    key: Any
    world: Any


def add_visits(environment: Environment, visits: Visits | None, of_person: ParamsOfPerson | None = None) -> Environment:
    """Returns the environment with people, in which the public context of a round is the person who comes.

    Args:
        environment: an environment without contexts. Without `of_person`, its feedback, outcomes and metrics stay the
            same, bit for bit.
        visits: the schedule; if None, the environment itself is returned.
        of_person: (key, params, person) -> params, the parameters of the environment for this person. The key is the
            same for all people in a lane. If the environment has a function `unheard`, outcomes must not depend on the
            person, because `unheard` gets the parameters of the environment without people. None if people do not
            differ.

    Returns:
        An environment that is played round by round, for at most the rounds of the schedule. Its public context is a
        `Visit`. It has `user_level`, so a run's guarantee also has a claim for a person, unless the learner's claim is
        already for a person.

    Raises:
        ValueError: if visits are not a `Visits`, or the environment has contexts or no interface.
    """
    if visits is None:
        return environment
    if not isinstance(visits, Visits):
        raise ValueError(f"visits must be a jaxdp.Visits, got {type(visits).__name__}")
    if environment.context is not None or environment.interface is None:
        raise ValueError(f"visits must be of an environment with an interface and no contexts, got {environment!r}")
    interface, evaluate, hindsight = environment.interface, environment.evaluate, environment.hindsight
    means, world_unheard = environment.means, environment.unheard
    last = Visit(*(Space("integers", (), 0, size - 1) for size in (visits.num_people, visits.most)))

    def params(**values: Any) -> VisitedParams:
        return VisitedParams(world=environment.params(**values), person=visits.person, nth=visits.nth)

    params.__signature__ = inspect.signature(environment.params)  # pyright: ignore[reportFunctionMemberAccess]

    def init(key, params: VisitedParams) -> VisitedWorld:
        people_key: Any = ()
        if of_person is not None:  # without it, the environment gets the whole key: the same numbers as without people
            people_key, key = jax.random.split(key)
        return VisitedWorld(jnp.zeros((), jnp.result_type(int)), people_key, environment.init(key, params.world))

    def context(key, params: VisitedParams, world: VisitedWorld) -> Visit:
        del key
        return Visit(*(jnp.asarray(table)[world.round] for table in (params.person, params.nth)))

    def feedback(key, params: VisitedParams, world: VisitedWorld, action):
        world_params = params.world
        if of_person is not None:
            world_params = of_person(world.key, world_params, jnp.asarray(params.person)[world.round])
        after, answer, outcome = environment.feedback(key, world_params, world.world, action)
        return VisitedWorld(world.round + 1, world.key, after), answer, outcome

    def unheard(params: VisitedParams, world: VisitedWorld, action, rounds):
        assert world_unheard is not None
        after, totals = world_unheard(params.world, world.world, action, rounds)
        return VisitedWorld(world.round + rounds, world.key, after), totals

    return environment._replace(
        params=params,
        init=init,
        context=context,
        feedback=feedback,
        hindsight=hindsight and (lambda params, world: hindsight(params.world, world.world)),
        evaluate=evaluate and (lambda params, world, arm: evaluate(params.world, world.world, arm)),
        block=None,
        feedback_totals=None,
        contexts=None,
        interface=interface._replace(context=last),
        horizon=len(visits) if environment.horizon is None else min(len(visits), environment.horizon),
        user_level=UserLevel(PERSON, visits.most),
        means=means and (lambda params: means(params.world)),
        visits=visits,
        unheard=world_unheard and unheard,
    )
