"""Exact audits on tiny instances: laws by enumeration, which the programs follow, lie below the claims."""

import dataclasses
import functools
import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import jaxdp
from jaxdp import experts
from jaxdp.audit import exact_epsilon, exact_rho, g_test
from tests.golden import numpy_tracking as exact

DRAWS = 20_000
KEY = partial(jax.random.key, 41)
ROUNDS = 3
MARGIN = -9.0  # so low that epochs of a few rounds may end
SEQUENCES = [np.asarray(bits, float).reshape(ROUNDS, 2) for bits in itertools.product((0, 1), repeat=2 * ROUNDS)]


def neighbours():
    """Pairs of sequences that differ in one round."""
    for one, other in itertools.combinations(range(len(SEQUENCES)), 2):
        if (SEQUENCES[one] != SEQUENCES[other]).any(axis=1).sum() == 1:
            yield one, other


def worst(law):
    """The largest exact epsilon between neighbours, of laws that a function of a loss sequence tells."""
    laws = [law(losses) for losses in SEQUENCES]
    return max(exact_epsilon(laws[one], laws[other]) for one, other in neighbours())


def thresholds(epsilon, margin=MARGIN):
    return exact.Thresholds(num_experts=2, horizon=ROUNDS, epsilon=epsilon, failure_prob=0.5, margin=margin)


@functools.cache
def spent_by_restarts(epsilon, margin=MARGIN, **variant):
    return worst(lambda losses: exact.svt_restarts_law(losses, epsilon, thresholds(epsilon, margin), **variant))


# ---- what is spent ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_limited_updates_spend_their_claim(epsilon):
    """From two experts two losses apart to equal ones: the whole of it."""
    spent = worst(lambda losses: exact.limited_updates_law(losses, epsilon))
    assert 0.5 * epsilon <= spent <= epsilon * (1 + 1e-9)
    with pytest.raises(AssertionError):
        assert worst(lambda losses: exact.limited_updates_law(losses, 2 * epsilon)) <= epsilon  # half the noise


def test_restarts_stay_below_their_claim():
    """Each half of the budget alone, and both. So few rounds spend little of the tests' half."""
    epsilon = 4.0
    whole = spent_by_restarts(epsilon)
    tests, selections = spent_by_restarts(epsilon, selects=False), spent_by_restarts(epsilon, asks=False)
    assert max(tests, selections) <= epsilon / 2 * (1 + 1e-6)
    assert max(tests, selections) < whole <= tests + selections + 1e-6
    assert whole >= 0.5 * epsilon
    with pytest.raises(AssertionError):
        assert spent_by_restarts(2 * epsilon) <= epsilon  # half of all noise


START, BAD, END = 1024, 384, 2047  # a block of rounds, and how many of them are bad
CLOSE = 0.0  # margin beyond the largest question, times epsilon: of a user's choice, which privacy must not need


def told_of_plateau(epsilon):
    return exact.Thresholds(num_experts=2, horizon=END, epsilon=epsilon, failure_prob=0.5, margin=0.0)


def plateau(epsilon, replaced):
    """Expert 0 is played throughout. It is worse by 1 in some rounds, and then by as much as chance explains."""
    told = told_of_plateau(epsilon)
    rounds = np.arange(1, END - START + 2)
    slack = rounds * told.per_round(START) + (math.sqrt(told.own) + math.sqrt(told.best)) * np.sqrt(rounds)
    losses = np.zeros((END, 2))
    losses[START - 1 : START - 1 + BAD, 0] = 1.0
    losses[START - 1 + BAD :, 0] = np.diff(slack)[BAD - 1 :]
    losses[START - 1 + BAD // 2] = replaced
    return losses


def questions(losses, epsilon):
    """What is asked after each round, if expert 0 is played throughout."""
    told = told_of_plateau(epsilon)
    slack = np.cumsum([0.0, *(told.per_round(local) for local in range(1, END + 1))])
    sums = np.concatenate([np.zeros((1, 2)), np.cumsum(losses[:, :1] - losses, axis=0)])
    roots = (math.sqrt(told.own) + math.sqrt(told.best)) * np.sqrt(np.arange(END + 1))
    excess = (np.max(sums[now] - sums[:now], axis=1) - (slack[now] - slack[:now]) for now in range(1, END + 1))
    return np.asarray([np.max(each - roots[now:0:-1]) for now, each in enumerate(excess, start=1)])


def shares_of_plateau(epsilon, sensitivity=2.0):
    """What each half leaks of one bad round, as shares of its budget.

    The transcript: expert 0 in every round, without a restart, and then once more.
    """
    budget = epsilon / 2
    sequences = [plateau(epsilon, replaced) for replaced in ([1.0, 0.0], [0.0, 1.0])]
    queries = [questions(losses, epsilon) for losses in sequences]
    places, weights = exact.laplace_grid(2 * sensitivity / budget)
    margin = queries[0].max() + CLOSE / epsilon
    noise = scipy.stats.laplace(scale=4 * sensitivity / budget)
    stays = [np.exp(noise.logcdf(places[:, None] + margin - each).sum(1)) @ weights for each in queries]
    chosen = [exact.permute_and_flip(losses[START - 1 :].sum(0), budget)[0] for losses in sequences]
    return [math.log(high / low) / budget for low, high in (stays, chosen)]


def test_share_of_each_half_of_restarts():
    """Many rounds in which no test restarts: the noise of the threshold is spent, that of the questions is not."""
    tests, selections = shares_of_plateau(4.0)
    assert 0.45 < tests <= 1
    assert 0.95 < selections <= 1 + 1e-9
    with pytest.raises(AssertionError):
        assert shares_of_plateau(4.0, sensitivity=0.5)[0] <= 1


def test_batches_spend_most_of_their_claim():
    """Five experts, of whom one moves against all others, in all three selections."""
    epsilon, rounds = 1.5, 4
    params = experts.limited_updates_oblivious(num_experts=5, horizon=rounds).params(epsilon=epsilon, batch=1)
    others = np.full((rounds, 5), 0.5)
    first, second = others.copy(), others.copy()
    first[0], second[0] = [1, 0, 0, 0, 0], [0, 1, 1, 1, 1]
    laws = [exact.limited_updates_oblivious_law(losses, float(params.learning_rate), 1) for losses in (first, second)]
    assert 0.7 * epsilon <= exact_epsilon(laws[0], laws[1]) <= epsilon


@pytest.mark.parametrize("accounting", ["pure", "zcdp"])
def test_lazy_selections_stay_below_their_claim(accounting):
    delta = {} if accounting == "pure" else {"delta": 1e-3}
    learner, values = experts.svt_lazy(num_experts=2, horizon=ROUNDS, accounting=accounting), {"epsilon": 4.0, **delta}
    params = learner.params(**values, max_switches=1, threshold=0.5)
    rate, budget = float(params.learning_rate), float(params.monitor_epsilon)
    laws = [exact.svt_lazy_law(losses, rate, budget, 0.5, 1) for losses in SEQUENCES]
    if accounting == "pure":
        spent, claimed = max(exact_epsilon(laws[one], laws[other]) for one, other in neighbours()), 4.0
    else:
        spent = max(exact_rho(laws[one], laws[other]) for one, other in itertools.islice(neighbours(), 0, None, 4))
        claimed = float(learner.guarantee(**values).rho or 0)
    assert (0.5 if accounting == "pure" else 0.3) * claimed <= spent <= claimed


@functools.cache
def share_of_one_loss(budget, claimed=4.0):
    """Of svt_lazy's claim: the first loss moves all questions of a run, up or down, and the selection thereafter."""
    later = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
    laws = [
        exact.svt_lazy_law(np.asarray([first, *later]), claimed / 4, budget, threshold, 1)
        for threshold in (0.5, 1.5)
        for first in ([1.0, 0.0], [0.0, 1.0])
    ]
    return max(exact_epsilon(laws[0], laws[1]), exact_epsilon(laws[2], laws[3])) / claimed


def test_lazy_tests_cost_half_of_what_any_questions_would():
    """AboveThreshold at all of epsilon costs half of it here; at twice as much it would cost the other half, too."""
    assert 0.7 < share_of_one_loss(4.0) <= 1
    assert share_of_one_loss(8.0) > 1  # planted


# ---- the programs follow these laws ----------------------------------------------------------------------------------
def sampled(learner, losses, values, read, **leaves):
    """What `read` tells of the public state at the start and after each round, in many lanes."""
    run = jaxdp.simulator(learner, experts.loss_sequence(losses), len(losses), checkpoints=len(losses), record=read)
    params = run.params(**values)
    params["learner"] = dataclasses.replace(params["learner"], **leaves)
    params = jax.tree.map(jnp.asarray, params)
    found = jax.jit(jax.vmap(run, in_axes=(0, None)))(jax.random.split(KEY(), DRAWS), params)
    return {name: np.asarray(found[name]) for name in read}


HARD = np.asarray([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
EXPERT = {"expert": lambda look: look.public.expert}
SELECTION = {"expert": lambda look: look.public.selection.expert, "restarts": lambda look: look.public.restarts}
LAZY = {**EXPERT, "waits": lambda look: look.public.played < 0}


def check_law(samples, law):
    assert g_test(samples, law) > 1e-6


def after_the_first(law, taken):
    """The distribution of what a look at `public` after each round tells: not who played the first round."""
    found = {}
    for key, chance in law.items():
        found[taken(key)] = found.get(taken(key), 0.0) + chance
    return found


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
def test_limited_updates_have_their_law(noise):
    learner = experts.limited_updates(num_experts=2, noise=noise)
    found = sampled(learner, HARD[:3], {"epsilon": 1.0}, EXPERT)["expert"]
    samples = [tuple(row) for row in found.tolist()]
    law, wrong = (
        after_the_first(exact.limited_updates_law(HARD[:3], epsilon), lambda experts: experts[1:])
        for epsilon in (1.0, 1.2)
    )
    if noise == "gumbel":
        assert g_test(samples, law) < 1e-6
        return
    check_law(samples, law)
    with pytest.raises(AssertionError):
        check_law(samples, wrong)


@pytest.mark.parametrize("windows", ["all", "dyadic"])
def test_restarts_have_their_law(windows):
    """Four rounds have all their windows among the dyadic ones but for one, of three rounds, that begins in round 2."""
    epsilon, rounds = 16.0, len(HARD)
    learner = experts.svt_restarts(num_experts=2, horizon=rounds, windows=windows)
    values = {"epsilon": epsilon, "failure_prob": 0.5, "margin": -4.0}
    found = sampled(learner, HARD, values, SELECTION)
    restarts = np.diff(found["restarts"], axis=1, prepend=0)
    ends = [tuple((np.flatnonzero(row) + 1).tolist()) for row in restarts]
    samples = [(tuple(row), end) for row, end in zip(found["expert"].tolist(), ends, strict=True)]
    told = exact.Thresholds(num_experts=2, horizon=rounds, epsilon=epsilon, failure_prob=0.5, margin=-4.0)

    def law_at(epsilon):
        return after_the_first(exact.svt_restarts_law(HARD, epsilon, told), lambda each: (each[0][1:], each[1]))

    law = law_at(epsilon)
    assert 0.05 < np.mean([len(end) > 0 for end in ends]) < 0.95
    check_law(samples, law)
    told.margin += 1
    for wrong in (law_at(epsilon), law_at(0.8 * epsilon)):
        with pytest.raises(AssertionError):
            check_law(samples, wrong)


def test_batches_have_their_law():
    leaves = {"learning_rate": np.float32(0.7), "batch": np.int32(2)}
    learner = experts.limited_updates_oblivious(num_experts=2, horizon=4)
    cast = {name: leaf.astype(getattr(learner.params(epsilon=1.0), name).dtype) for name, leaf in leaves.items()}
    read = {**EXPERT, "action": lambda look: look.action}
    found = sampled(learner, HARD, {"epsilon": 1.0}, read, **cast)
    samples = [tuple(row) for row in found["action"][:, [0, 2]].tolist()]
    check_law(samples, exact.limited_updates_oblivious_law(HARD, 0.7, 2))
    with pytest.raises(AssertionError):
        check_law(samples, exact.limited_updates_oblivious_law(HARD, 0.8, 2))


def test_lazy_selections_have_their_law():
    learner = experts.svt_lazy(num_experts=2, horizon=4)
    values = {"epsilon": 8.0, "max_switches": 1, "threshold": 1.0}
    params = learner.params(**values)
    found = sampled(learner, HARD, values, {**LAZY, "action": lambda look: look.action})
    ends = [tuple((np.flatnonzero(row) + 1).tolist()) for row in found["waits"]]
    experts_ = np.concatenate([found["action"][:, :1], found["expert"]], axis=1).tolist()
    samples = [(tuple(row), end) for row, end in zip(experts_, ends, strict=True)]
    rate = float(params.learning_rate)
    check_law(samples, exact.svt_lazy_law(HARD, rate, 8.0, 1.0, 1))
    for wrong in ((rate, 10.0, 1.0, 1), (0.6 * rate, 8.0, 1.0, 1), (rate, 8.0, 1.5, 1)):
        with pytest.raises(AssertionError):
            check_law(samples, exact.svt_lazy_law(HARD, *wrong))


def test_thresholds_are_those_of_the_definition():
    learner = experts.svt_restarts(num_experts=3, horizon=1000, check_every=4)
    params = learner.params(epsilon=2.0, failure_prob=0.02)
    told = exact.Thresholds(num_experts=3, horizon=1000, epsilon=2.0, failure_prob=0.02, check_every=4)
    rounds = [told.per_round(local) for local in range(1, 1001)]
    blocks = [local.bit_length() - 1 for local in range(1, 1001)]
    np.testing.assert_allclose(params.block_slack[blocks], rounds, rtol=1e-6)
    np.testing.assert_allclose(params.slack_before[9], sum(rounds[:511]), rtol=1e-6)
    assert params.window_slack == pytest.approx(math.sqrt(told.own) + math.sqrt(told.best), rel=1e-6)
    assert params.margin == pytest.approx(told.margin, rel=1e-6)
