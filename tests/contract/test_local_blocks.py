"""A local learner by blocks and counts: accepted and refused forms in `check_learner`."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.bandits import bernoulli_bandit
from jaxdp.core import State
from jaxdp.mechanisms import label_randomizer
from jaxdp.testing import check_learner
from jaxdp.testing.distributions import check_distribution
from tests.contract.local_commit import local_commit

KEY = jax.random.key(23)
TOTAL: Any = label_randomizer().total
BANDIT = bernoulli_bandit([0.3, 0.5, 0.6])
VALUES, ROUNDS = {"epsilon": 1.0}, 50


def make(total=None):
    return local_commit(num_arms=3, explore_rounds=30, total=total)


def check(learner):
    check_learner(learner, BANDIT, VALUES, horizon=ROUNDS, key=KEY, num_lanes=2048)


def test_a_local_learner_with_blocks_and_counts_keeps_the_contract():
    check(make())


@pytest.mark.parametrize(
    "total",
    [
        lambda key, params, totals, count: totals,
        lambda key, params, totals, count: TOTAL(key, replace(params, epsilon=2 * params.epsilon), totals, count),
        pytest.param(
            lambda key, params, totals, count: TOTAL(key, params, totals, count) + jnp.where(params.epsilon < 100, 1, 0)
        ),
    ],
    ids=["no noise", "half the noise", "one more"],
)
def test_a_wrong_distribution_of_counts_is_refused(total):
    how = {"horizon": ROUNDS, "num_lanes": 8192, "key": KEY, "tolerance": 1e-4}
    with pytest.raises(AssertionError, match="counts must have the distribution of rounds"):
        check_distribution(make(total), BANDIT, VALUES, **how)


def test_a_report_that_reads_what_changes_inside_a_block_is_refused():
    """Makes another report in odd rounds; in blocks the round is the block's start."""
    learner = make()

    def privatize(key, params, public, context, action, feedback):
        action, won = learner.privatize(key, params, public, context, action, feedback)
        return action, jnp.where(public.round % 2 == 1, 1 - won, won)

    with pytest.raises(AssertionError, match="not equal"):
        check(learner._replace(privatize=privatize, counts=None))


def test_a_report_that_reads_it_and_moves_no_outcome_is_refused():
    """Stops learning in the last rounds, so that only the release shows the fault."""
    learner = make()

    def privatize(key, params, public, context, action, feedback):
        action, won = learner.privatize(key, params, public, context, action, feedback)
        return action, jnp.where(public.round == 29, 1, won)

    def act(key, params, public, context):
        return jnp.where(public.round < 30, learner.act(key, params, public, context), 0)

    def plan(keys, params, public, contexts, limit):
        planned = learner.blocks[0].plan(keys, params, public, contexts, limit)
        return planned._replace(actions=jnp.where(public.round < 30, planned.actions, 0))

    blocks = (learner.blocks[0]._replace(plan=plan),)
    check(learner._replace(act=act, blocks=blocks, counts=None))
    with pytest.raises(AssertionError, match="not equal"):
        check(learner._replace(act=act, privatize=privatize, blocks=blocks, counts=None))


def test_a_report_that_reads_it_and_is_forgotten_at_the_horizon_is_refused():
    """Drops the counts with the last round, which ends a phase."""
    learner = make()._replace(counts=None)
    blocks = learner.blocks[0]

    def forgets(state):
        public: Any = state.public
        return State((), public._replace(wins=jnp.where(public.round == 24, 0, public.wins)))

    def privatize(key, params, public, context, action, feedback):
        action, won = learner.privatize(key, params, public, context, action, feedback)
        return action, jnp.where(public.round % 2 == 1, 1 - won, won)

    def update_block(*arguments):
        state, used = blocks.update_block(*arguments)
        return forgets(state), used

    forgetful = learner._replace(
        update=lambda key, params, state, report: forgets(learner.update(key, params, state, report)),
        blocks=(blocks._replace(update_block=update_block),),
    )
    values = {"epsilon": 1.0}
    check_learner(forgetful, BANDIT, values, horizon=24, key=KEY)
    with pytest.raises(AssertionError, match="not equal"):
        check_learner(forgetful._replace(privatize=privatize), BANDIT, values, horizon=24, key=KEY)


def test_defaults_may_be_arrays():
    learner = make()._replace(counts=None, blocks=())

    def taking(function, weights):
        def takes(*, epsilon, weights=weights):
            return function(epsilon=epsilon)

        return takes

    check(learner._replace(params=taking(learner.params, np.ones(3)), guarantee=taking(learner.guarantee, np.ones(3))))


def test_other_names_for_the_claim_are_refused():
    learner = make()
    renamed = learner._replace(guarantee=lambda *, eps: learner.guarantee(epsilon=eps))
    with pytest.raises(AssertionError, match=r"guarantee must take the names that params takes, got \['eps'\]"):
        check(renamed)

    def guarantee(*, epsilon: float = 1.0):
        return learner.guarantee(epsilon=epsilon)

    with pytest.raises(AssertionError, match=r"guarantee must have the defaults of params, got 1\.0"):
        check(learner._replace(guarantee=guarantee))
