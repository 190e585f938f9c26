"""Every registered mechanism, learner and estimator keeps the contract; a broken one does not."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp import Guarantee, registry
from jaxdp.estimation import debiased_rr
from jaxdp.mechanisms import analytic_gaussian, gaussian, round_up, zcdp_gaussian, zcdp_rho
from jaxdp.registry import ESTIMATORS, LEARNERS, MECHANISMS
from jaxdp.registry.table import paper
from jaxdp.testing import check_estimator, check_learner, check_mechanism, check_registered

# They draw as others do, which are checked in both precisions.
ONCE = ("shuffled_randomized_response", "toeplitz_counter", "doubling_counter", "moment_channel_paper", "noisy_leads")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.once] * (n in ONCE)) for n in MECHANISMS])
def test_mechanism(name):
    check_registered(name)


@pytest.mark.parametrize("native", ["zcdp", "gaussian"])
@pytest.mark.parametrize("by_rho", [True, False])
def test_a_mechanism_that_claims_no_epsilon(native, by_rho):
    about = {"trust_model": "central", "privacy_unit": "one number", "argument": "Gaussian noise"}

    def stddev(**values):
        if by_rho:
            return zcdp_gaussian(**values)
        return analytic_gaussian(**values) if native == "gaussian" else zcdp_gaussian(zcdp_rho(**values))

    def guarantee(**values):
        scale = stddev(**values)
        if native == "gaussian":
            return Guarantee.gaussian(1 / scale if scale else np.inf, **about)
        return Guarantee.zcdp(1 / (2 * scale**2) if scale else np.inf, **about)

    def params(**values):
        return round_up(stddev(**values), jnp.zeros(()).dtype)

    def release(key, params, data):
        return gaussian(key, data, params, l2_sensitivity=1.0)

    values = {"rho": 0.1} if by_rho else {"epsilon": 0.5, "delta": 1e-6}
    data, key = jnp.ones(2), jax.random.key(0)
    check_mechanism(params, guarantee, release, values, data, exact=lambda data: data, key=key)
    if not by_rho:
        more = {**values, "epsilon": 1.0}
        with pytest.raises(AssertionError, match="guarantee must imply epsilon"):
            check_mechanism(params, lambda **_: guarantee(**more), release, values, data, exact=None, key=key)


# One of each way to fit: the golden versions try every estimator in both precisions.
WIDE = ("debiased_rr", "sgd_krr", "objective_perturbation_full", "exponential_weights_gaussian")


# These share their functions with others that are always tried, or take longest to compile and are always compared
# with an independent version or with their plain steps.
ALIKE = (
    "ebs_elimination_gaussian",
    *("sgd", "sgd_objective_perturbation", "literal_objective_perturbation", "thurstone_rr", "ballot_mle", "mle_rr"),
    *("plackett_luce_mle", "plackett_luce_debiased_krr", "explore_then_commit_bounded", "exponential_weights"),
    *("lazy_weights", "lazy_weights_markov", "limited_updates_binary"),
    *("limited_updates_oblivious_zcdp", "svt_lazy_zcdp", "counter_weights", "counter_weights_switching", "hedge"),
    *("mirror_descent_noisy_losses", "mirror_descent_clipped", "mirror_descent_intervals", "mirror_descent_paper"),
    *("fkm_gaussian", "fkm_laplace", "fkm_box", "two_point_gaussian", "two_point_strongly_convex"),
    "strongly_convex_one_point",
    *("linear_ucb_ball", "linear_ucb_joint_tree", "generalized_linear_ball"),
    *("tsallis_inf_gaussian", "tsallis_inf", "thompson", "exp3_laplace", "ucb_central_tree"),
    *("lil_ucb_gaussian", "successive_elimination_bounded", "barrier_smooth_gaussian", "stochastic_1d_gaussian"),
    *("objective_perturbation_cut", "objective_perturbation_cut_k_norm", "ballot_objective_perturbation"),
    *("plackett_luce_objective_perturbation", "plackett_luce_objective_perturbation_cut_k_norm"),
    *("versatile_sparring", "ebs_shuffle", "double_thompson_blocks", "g_optimal_elimination"),
    *("double_thompson", "limited_updates_oblivious", "svt_lazy", "barrier_smooth", "rucb", "successive_elimination"),
    *("fixed_share", "sgd_rr", "lazy_weights_switching", "ebs_phased", "successive_elimination_central", "two_point"),
    *("generalized_linear", "versatile_sparring_gaussian", "stochastic_1d", "sgd_objective_perturbation_cut_k_norm"),
    *("linear_ucb_joint", "ucb_central", "mirror_descent", "barrier_strongly_convex", "rucb_blocks"),
)
FEWER = 2000  # lanes of each engine, by which laws are compared; the slow form takes all


def precisions(names):
    marks = {name: [] if name in WIDE else [pytest.mark.once] for name in names}
    slow = [pytest.mark.slow]
    return [pytest.param(name, marks=[*own, *(slow if name in ALIKE else [])]) for name, own in marks.items()]


@pytest.mark.parametrize("name", precisions(ESTIMATORS))
def test_estimator(name):
    check_registered(name)


@pytest.mark.parametrize("name", precisions(name for name in LEARNERS if name not in ALIKE))
def test_learner(name):
    check_registered(name, num_lanes=FEWER)


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_learner_by_many_lanes(name):
    check_registered(name)


def _broken(**changes):
    return debiased_rr()._replace(**changes)


def _reuses_its_key(key, params, features, report):
    estimate = debiased_rr().fit(key, params, features, report)
    noise = jax.random.normal(key, estimate.theta.shape) + jax.random.normal(key, estimate.theta.shape)
    return estimate._replace(theta=estimate.theta + noise.astype(estimate.theta.dtype))


def _branches_on_epsilon(key, params, features, report):
    if params.epsilon > 1:
        return debiased_rr().fit(key, params, features, 1 - report)
    return debiased_rr().fit(key, params, features, report)


def _noisy_at_infinity(key, params, features, labels):
    return jnp.where(jax.random.bernoulli(key, 0.1, labels.shape), 1 - labels, labels)


def _renamed(key, params, x, y):
    return debiased_rr().privatize(key, params, x, y)


def _claims_too_little(*, epsilon, radius):
    return debiased_rr().guarantee(epsilon=epsilon / 2)


@pytest.mark.once
@pytest.mark.parametrize(
    "broken",
    [
        _broken(fit=_reuses_its_key),
        _broken(fit=_branches_on_epsilon),
        _broken(privatize=_noisy_at_infinity),
        _broken(privatize=_renamed),
        _broken(guarantee=_claims_too_little),
        _broken(features_public=False),  # its fit reads them
        _broken(params=lambda *, epsilon, radius: debiased_rr().params(epsilon=abs(epsilon) or 1.0, radius=radius)),
    ],
)
def test_a_broken_estimator_is_caught(broken):
    features, labels = registry.tiny_data(jax.random.key(1))
    with pytest.raises((AssertionError, jax.errors.KeyReuseError, jax.errors.TracerBoolConversionError)):
        check_estimator(broken, ESTIMATORS["debiased_rr"].values, features, labels, key=jax.random.key(2))


WEIGHTS, COMMIT = (LEARNERS[name].make() for name in ("exponential_weights", "explore_then_commit"))


def _keeps_its_noise(key, params, public, context, action, feedback):
    report = WEIGHTS.privatize(key, params, public, context, action, feedback)
    return report + jax.random.normal(key, report.shape, report.dtype)


def _reuses_the_rounds_key(key, params, public, context, action, feedback):
    return WEIGHTS.privatize(key, params, public, context, action, feedback) + jax.random.normal(
        key, (), feedback.dtype
    )


def _branches(key, params, state, report):
    return WEIGHTS.update(key, params, state, report if params.epsilon > 0 else -report)


assert COMMIT.counts is not None
(BLOCKS,), COUNTS = COMMIT.blocks, COMMIT.counts


def _cuts_late(keys, params, state, plan, report):
    state, used = BLOCKS.absorb(keys, params, state, plan, report)
    return state, jnp.minimum(used + 1, len(keys))


def _plans_too_many(key, params, public, limit):
    plan = COUNTS.plan(key, params, public, limit)
    return plan._replace(counts=plan.counts + jnp.where(public.best_arm >= 0, 5, 0))


def _keeps_noise_at_the_end(key, params, state, report):
    after = COMMIT.update(key, params, state, report)
    noisy = jnp.where(after.public.round == 12, jax.random.randint(key, (), 0, 3, jnp.int32), after.public.best_arm)
    return after._replace(public=after.public._replace(best_arm=noisy))


@pytest.mark.once
@pytest.mark.parametrize(
    ("name", "broken"),
    [
        pytest.param(
            "explore_then_commit",
            COMMIT._replace(update=_keeps_noise_at_the_end, blocks=(), counts=None),
            marks=pytest.mark.slow,
        ),
        ("explore_then_commit", COMMIT._replace(counts=COUNTS._replace(plan=_plans_too_many))),
        ("exponential_weights", WEIGHTS._replace(privatize=_keeps_its_noise)),
        ("exponential_weights", WEIGHTS._replace(privatize=_reuses_the_rounds_key)),
        pytest.param("exponential_weights", WEIGHTS._replace(update=_branches), marks=pytest.mark.slow),
        (
            "exponential_weights",
            WEIGHTS._replace(act=lambda key, p, public, context: WEIGHTS.act(key, p, public, None)),
        ),
        ("exponential_weights", WEIGHTS._replace(guarantee=lambda **values: WEIGHTS.guarantee(epsilon=1.0))),
        (
            "explore_then_commit",
            COMMIT._replace(blocks=(BLOCKS._replace(absorb=_cuts_late),)),
        ),
    ],
)
def test_a_broken_learner_is_caught(name, broken):
    entry = LEARNERS[name]
    with pytest.raises((AssertionError, jax.errors.KeyReuseError, jax.errors.TracerBoolConversionError)):
        check_learner(broken, entry.make_environment(), entry.values, horizon=entry.horizon, key=jax.random.key(3))


DRAWS = LEARNERS["limited_updates_oblivious"].make()


def _noises_totals(key, params, state, report):
    after = DRAWS.update(key, params, state, report)
    total = after.private.total
    noisy = total + jax.random.normal(jax.random.fold_in(key, 1), total.shape, total.dtype)
    return after._replace(private=after.private._replace(total=noisy))


@pytest.mark.once
@pytest.mark.parametrize(
    ("broken", "options"),
    [
        (DRAWS, {"draws_in_update": False}),
        (DRAWS._replace(update=_noises_totals), {}),
        pytest.param(
            DRAWS._replace(guarantee=lambda *, epsilon, batch=None: DRAWS.guarantee(epsilon=2 * epsilon)),
            {"may_claim_less": True},
            marks=pytest.mark.slow,
        ),
        (DRAWS._replace(guarantee=lambda *, epsilon, batch=None: DRAWS.guarantee(epsilon=epsilon / 2)), {}),
        pytest.param(DRAWS, {"multiple": 3}, marks=pytest.mark.slow),
    ],
)
def test_what_a_learner_that_draws_may_not_do(broken, options):
    """Nor claim more than epsilon, nor less unless it may, nor another multiple of it."""
    entry = LEARNERS["limited_updates_oblivious"]
    options = {"horizon": entry.horizon, "key": jax.random.key(3), "draws_in_update": True, **options}
    with pytest.raises(AssertionError, match=r"equal|guarantee must claim epsilon"):
        check_learner(broken, entry.make_environment(), entry.values, **options)


def test_listing_names_everything_once():
    everyone = (*MECHANISMS, *LEARNERS, *ESTIMATORS)
    for width, place in ((400, 1), (118, 0), (80, 0), (64, 0)):
        lines = registry.listing(width=width).splitlines()
        assert max(map(len, lines)) <= width
        words = [line.split() for line in lines]
        assert [row[place] for row in words if len(row) > place and row[place] in everyone] == list(everyone)
    assert len(registry.listing("mechanism", width=400).splitlines()) == 1 + len(MECHANISMS)
    assert [line for line in registry.listing(width=60).splitlines() if line.endswith("s:")] == [
        "mechanisms:",
        "learners:",
        "estimators:",
    ]


def test_a_listing_that_is_searched_has_a_line_for_each():
    rows = registry.listing("learner", width=None).splitlines()
    assert rows[0].split()[:2] == ["KIND", "NAME"]
    assert [row.split()[1] for row in rows[1:]] == list(LEARNERS)
    assert all(LEARNERS[row.split()[1]].summary in row for row in rows[1:])


def test_a_name_that_is_not_there_is_told_with_its_neighbours():
    with pytest.raises(KeyError, match="exponential_weight: no entry has this name; near it: exponential_weights"):
        LEARNERS["exponential_weight"]
    assert "exponential_weight" not in LEARNERS
    assert LEARNERS.get("exponential_weight") is None


def test_a_listing_names_papers_by_their_authors():
    rows = {line.split()[1]: line for line in registry.listing("learner", width=400).splitlines()}
    assert rows["ebs_elimination"].endswith("  Saha & Asi 2024, Alg. 1")
    assert rows["rucb"].endswith("  Zoghi et al. 2014, Alg. 1")
    for name, entry in {**MECHANISMS, **LEARNERS, **ESTIMATORS}.items():
        assert re.search(r"(19|20)\d\d", paper(entry.source)), name


def test_a_name_longer_than_the_terminal_is_not_cut(monkeypatch):
    name = "a_rather_long_name_" * 5
    monkeypatch.setitem(registry.LEARNERS, name, LEARNERS["rucb"])
    for width in (40, 80, 120):
        text = registry.listing("learner", width=width)
        assert max(map(len, text.splitlines())) <= width
        assert name in "".join(text.split())
    with pytest.raises(ValueError, match="width must be a whole number >= 40, got 20"):
        registry.listing(width=20)


def test_a_listing_refuses_other_kinds():
    with pytest.raises(ValueError, match="kind must be one of mechanism, learner, estimator, got 'estimation'"):
        registry.listing("estimation")
