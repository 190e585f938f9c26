"""Exact releases beside the noise are found, and undecidable ones are not called violations."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp import registry
from jaxdp.audit import UserData, full_information, leaks
from jaxdp.audit._leaks import _find_differences
from jaxdp.bandits import explore_then_commit, ucb_central
from jaxdp.core import Guarantee
from jaxdp.experts import exponential_weights
from jaxdp.mechanisms import gaussian, laplace
from tests.audit import small_learners as small

VALUES = {"epsilon": 1.0}
ABOUT = {"trust_model": "central", "privacy_unit": "one round", "argument": "for tests"}


def bits(*rows):
    return UserData(np.asarray(rows, np.int32))


@pytest.mark.parametrize(
    "name", [n for n, entry in registry.LEARNERS.items() if not entry.randomizes and entry.proof != "none"]
)
def test_registered_learners_leak_nothing(name):
    entry = registry.LEARNERS[name]
    keys = jax.random.split(jax.random.key(1), (2, 14))
    users = jax.vmap(entry.make_user)(keys[0]), jax.vmap(entry.make_user)(keys[1])
    with jax.debug_key_reuse(True):
        found = leaks(jax.random.key(2), entry.make(), entry.values, users, answer=entry.users_answer)
    if name in ("mirror_descent", "mirror_descent_clipped") and not jax.config.read("jax_enable_x64"):
        # The rate of so tiny a budget would be within rounding.
        assert found.verdict == "inconclusive"
        assert "values of a tiny budget are rejected" in str(found)
    else:
        assert found.verdict == "consistent"


@pytest.mark.parametrize(("excess", "differs"), [(-0.02, False), (1.0, True)])
def test_what_rounding_leaves_beside_a_noisy_total_may_differ_and_data_there_may_not(excess, differs):
    first = {
        "sum.total": np.asarray([1e6], np.float32),
        "sum.excess": np.asarray([0.01], np.float32),
        "other.excess": np.asarray([0.01], np.float32),
    }
    second = {
        "sum.total": np.asarray([1e6 + 1], np.float32),
        "sum.excess": np.asarray([excess], np.float32),
        "other.excess": np.asarray([1.0], np.float32),
    }
    found = {name: bool(where.any()) for name, where in _find_differences(first, second).items()}
    assert found == {"sum.total": False, "sum.excess": differs, "other.excess": True}


@pytest.mark.parametrize(("name", "values"), [("play", (1500, 1501)), ("length", (2000, 2001)), ("public", (3, 4))])
def test_integers_without_noise_are_compared_exactly(name, values):
    first, second = ({name: np.asarray([value])} for value in values)
    assert _find_differences(first, second, relative=0.5)[name].all()
    first, second = ({"public": np.asarray([value])} for value in (10**6, 10**6 + 1))
    assert not _find_differences(first, second)["public"].any()


def test_sums_of_many_rounds_do_not_leak():
    users = UserData(np.zeros((2000, 2), np.int32)), UserData(np.ones((2000, 2), np.int32))
    assert leaks(jax.random.key(0), ucb_central(num_arms=2), VALUES, users).verdict == "consistent"


@pytest.mark.optimised
def test_sums_whose_rounding_hangs_on_the_compiler_do_not_leak():
    """Fails without the allowance for `excess`: here it differs by rounding alone."""
    test_registered_learners_leak_nothing("counter_weights")


def test_an_unnoised_choice_leaks():
    entry = registry.LEARNERS["explore_then_commit"]
    learner = entry.make()

    def update(key, params, state, report):
        return learner.update(key, dataclasses.replace(params, epsilon=jnp.inf), state, report)

    users = bits(*[[0, 0, 1]] * 14), bits(*[[1, 0, 0]] * 14)
    found = leaks(jax.random.key(0), learner._replace(update=update), entry.values, users)
    assert found.found == ("play of round 13", "public.best_arm of round 12")


def test_one_number_beside_the_noise_leaks():
    learner = exponential_weights(num_experts=3, horizon=5)

    def privatize(key, params, public, context, action, feedback):
        report = laplace(key, feedback, params.epsilon, l1_sensitivity=3.0)
        return report.at[1].set(feedback[1])

    users = UserData(np.zeros((2, 3))), UserData(np.ones((2, 3)))
    assert leaks(
        jax.random.key(0), learner._replace(privatize=privatize), {}, users, answer=full_information
    ).found == ("report of round 1",)


def test_what_leaks_may_be_large_integers_or_no_numbers():
    users = UserData(np.zeros((2, 1))), UserData(np.ones((2, 1)))

    def released(release):
        return leaks(jax.random.key(3), small.releases_of(release), VALUES, users, answer=full_information)

    def rounded(key, params, report):
        return jnp.round(laplace(key, report[0], params, l1_sensitivity=1.0)).astype(jnp.int32)

    assert released(lambda *a: rounded(*a).astype(float)).verdict == "consistent"
    learner = small.curator(
        lambda key, params, state, report: small.State((), rounded(key, params, report)),
        lambda: small.State((), jnp.int32(0)),
    )
    assert leaks(jax.random.key(3), learner, VALUES, users, answer=full_information).verdict == "consistent"
    assert released(lambda key, params, report: jnp.log(report[0])).found == ("public of round 1",)
    assert released(lambda key, params, report: jnp.sqrt(report[0] - 0.5)).found == ("public of round 1",)


def test_plays_of_joint_learners_may_follow_contexts():
    answers = np.zeros((3, 1), np.int32)
    users = UserData(answers, np.asarray([0, 1, 2], np.int32)), UserData(answers, np.asarray([2, 0, 1], np.int32))
    assert (
        leaks(jax.random.key(3), small.shows_its_context("joint"), VALUES, users, answer=full_information).verdict
        == "consistent"
    )
    found = leaks(jax.random.key(3), small.shows_its_context("central"), VALUES, users, answer=full_information)
    assert (found.found, found.verdict) == (("play of round 1",), "violated")


def test_bad_arguments_of_leaks():
    learner, users = explore_then_commit(num_arms=2, explore_rounds=2), (bits([0, 0]), bits([0, 0], [0, 0]))
    with pytest.raises(ValueError, match="users must have the same structure, shapes and dtypes"):
        leaks(jax.random.key(0), learner, VALUES, users)
    with pytest.raises(ValueError, match="key must be one typed PRNG key"):
        leaks(jax.random.split(jax.random.key(0)), learner, VALUES, (users[0], users[0]))
    with pytest.raises(ValueError, match="num_keys must be an integer >= 1"):
        leaks(jax.random.key(0), learner, VALUES, (users[0], users[0]), num_keys=0)
    with pytest.raises(
        ValueError, match=r"learner must be of type jaxdp\.Learner, got the function explore_then_commit"
    ):
        leaks(jax.random.key(0), explore_then_commit, VALUES, (users[0], users[0]))  # pyright: ignore[reportArgumentType]
    many = bits(*[[0, 0]] * 50_001)
    with pytest.raises(ValueError, match="users must have at most 50000 rounds: more data show through noise"):
        leaks(jax.random.key(0), learner, VALUES, (many, many))


# ---- undecidable cases -----------------------------------------------------------------------------------------------
def noised_by(calibrate, claim, raw=0.0):
    """Releases each user's number with Gaussian noise of a standard deviation that params computes."""

    def update(key, params, state, report):
        return small.State((), gaussian(key, report[0], params, l2_sensitivity=1.0) * (1 - raw) + raw * report[0])

    learner = small.curator(update, lambda: small.State((), jnp.zeros(())), claim)
    return learner._replace(params=lambda **values: np.asarray(calibrate(**values), float))


def by_rho(*, rho):
    return (2 * rho) ** -0.5


def by_mu(*, mu):
    return 1 / mu


def by_sigma(*, noise_stddev):
    return noise_stddev


def test_noise_calibrated_by_rho_mu_or_sigma():
    users = UserData(np.zeros((3, 1))), UserData(np.ones((3, 1)))

    def told(learner, values):
        return leaks(jax.random.key(0), learner, values, users, answer=full_information)

    kinds = [
        (by_rho, {"rho": 0.1}, lambda *, rho: Guarantee.zcdp(rho, **ABOUT)),
        (by_mu, {"mu": 0.5}, lambda *, mu: Guarantee.gaussian(mu, **ABOUT)),
        (by_sigma, {"noise_stddev": 3.0}, lambda *, noise_stddev: Guarantee.zcdp(noise_stddev**-2 / 2, **ABOUT)),
    ]
    for calibrate, values, claim in kinds:
        right, wrong = (told(noised_by(calibrate, claim, raw), values) for raw in (0.0, 1.0))
        if calibrate is by_sigma:
            assert right.verdict == wrong.verdict == "inconclusive"
            assert "with no value that is a budget the claim is 0.0555556-zCDP" in right.notes[0]
        else:
            assert (right.verdict, right.notes) == ("consistent", ())
            assert (wrong.verdict, wrong.found) == ("violated", ("public of round 1",))
            bare = noised_by(calibrate, claim)._replace(params=calibrate)
            assert told(bare, {}).verdict == "consistent"


def test_a_budget_that_does_not_reach_the_claim():
    users = UserData(np.zeros((3, 1))), UserData(np.ones((3, 1)))
    claim = Guarantee.zcdp(0.5, **ABOUT)
    learner = noised_by(lambda *, epsilon: 1.0, lambda *, epsilon: claim)
    found = leaks(jax.random.key(0), learner, VALUES, users, answer=full_information)
    assert found.verdict == "inconclusive"
    assert "with a tiny epsilon the claim is 0.5-zCDP" in found.notes[0]


def test_values_that_are_refused():
    def params(*, epsilon):
        raise ValueError(f"epsilon must be >= 0.01, got {epsilon}")

    learner = small.follows_itself(0.0)._replace(params=params)
    found = leaks(
        jax.random.key(0),
        learner,
        VALUES,
        (UserData(np.zeros((3, 1))), UserData(np.ones((3, 1)))),
        answer=full_information,
    )
    assert found.notes == ("values of a tiny budget are rejected: epsilon must be >= 0.01, got 1e-06",)
    assert found.verdict == "inconclusive"


def test_randomized_responses_cannot_be_told():
    entry = registry.LEARNERS["rucb"]
    users = UserData(np.zeros((6, 3, 3), np.int32)), UserData(np.ones((6, 3, 3), np.int32))

    def told(randomizes):
        return leaks(
            jax.random.key(0), entry.make(), entry.values, users, answer=entry.users_answer, randomizes=randomizes
        ).verdict

    assert (told(True), told(False)) == ("inconclusive", "violated")


# ---- varied inputs, and observed parts -------------------------------------------------------------------------------
def test_only_the_privacy_unit_varies():
    def claimed(**about):
        def claim(*, epsilon):
            return dataclasses.replace(small.guarantee()(epsilon=epsilon), **about)

        learner = small.shows_its_context("central")._replace(guarantee=claim)
        users = UserData(np.zeros((2, 1)), np.zeros(2, np.int32)), UserData(np.ones((2, 1)), np.ones(2, np.int32))
        return leaks(jax.random.key(0), learner, VALUES, users, answer=full_information)

    assert claimed(sensitive_fields=("answers",)).verdict == "consistent"
    assert claimed(sensitive_fields=("contexts",)).found == ("play of round 1",)
    assert claimed(adversary_view=("public",)).verdict == "consistent"
    assert claimed(adversary_view=("report",)).found == ("report of round 1",)
    with pytest.raises(
        ValueError, match="sensitive_fields must name leaves of a user's data, answers, contexts, got 'rew"
    ):
        claimed(sensitive_fields=("rewards",))


def test_local_learners_whose_play_is_logged():
    users = UserData(np.zeros((2, 1)), np.zeros(2, np.int32)), UserData(np.zeros((2, 1)), np.ones(2, np.int32))
    assert leaks(jax.random.key(0), small.shows_its_context("local"), VALUES, users, answer=full_information).found == (
        "play of round 1",
    )


@pytest.mark.parametrize("path", ["blocks", "counts"])
def test_other_paths(path):
    learner = explore_then_commit(num_arms=3, explore_rounds=12)
    wrong = small.quieter(learner, jnp.inf, path)
    users = bits(*[[0, 0, 1]] * 14), bits(*[[1, 0, 0]] * 14)
    assert leaks(jax.random.key(0), learner, VALUES, users, path=path).verdict == "consistent"
    assert leaks(jax.random.key(0), wrong, VALUES, users, path=path).found == (
        "play of round 13",
        "public.best_arm of round 1",
    )
    assert leaks(jax.random.key(0), wrong, VALUES, users).verdict == "consistent"
