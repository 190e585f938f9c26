"""Sensitivities measured, and what must be found: each fault once, and none where there is none."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp import registry
from jaxdp.audit import UserData, feedback_of_pair, full_information, grey_box
from jaxdp.core import Interface, arms
from jaxdp.experts import exponential_weights
from jaxdp.mechanisms import gaussian_epsilon, laplace, noisy_max, randomize_scalar, randomized_response, tape
from tests.audit import small_learners as small

SPENT = {
    "ebs_elimination_gaussian": 0.6620,  # an outcome ends a block of four once, and is not taken back
    "lazy_weights": 2.9802,  # of zCDP claims at delta = 0.01; a decision changes nothing where all are fake switches
    "lazy_weights_markov": 2.2597,
    "limited_updates_oblivious_zcdp": 1.4922,
    "counter_weights": 0.55817,  # at delta = 0.01, in three rounds
    "counter_weights_switching": 0.244742,
    "mirror_descent": 2.598270,  # of draws in three rounds, and of what fixed share leaves of the odds
    "mirror_descent_clipped": 2.003465,
    "mirror_descent_intervals": 2.508906,
    "svt_lazy_zcdp": 1.3190,  # pure mechanisms that add up cost less there than the claim
    "ebs_shuffle": 1.238362,  # of one report, before it is shuffled
}
ROUNDS = {"explore_then_commit": 13, "explore_then_commit_bounded": 13, "ebs_phased": 10} | {
    "noisy_argmax": 7,
    "successive_elimination_central": 12,
    "ebs_elimination": 4,
    "ebs_elimination_gaussian": 10,
    "lazy_weights_switching": 6,
    "limited_updates_oblivious": 4,
    "limited_updates_oblivious_zcdp": 4,
    "svt_restarts": 10,
    "svt_lazy": 11,
    "g_optimal_elimination": 10,  # two phases
    "rucb_blocks": 4,
}
# Some value of these cannot move as far as is declared: of a decision that is a fake switch in any case, of weights of
# sequences that may have switched, of a threshold.
BELOW = (
    *("lazy_weights", "lazy_weights_markov", "svt_restarts", "svt_lazy", "svt_lazy_zcdp"),
    *("mirror_descent", "mirror_descent_intervals"),
)
# An outcome is taken back in one run of three; an expert loses little in one batch of many.
BASES = {"ebs_elimination": 8, "lazy_weights_switching": 10}


def look(learner, draw_user, rounds=3, **options):
    options = {"answer": full_information, "num_bases": 2, "num_neighbours": 64, **options}
    return grey_box(jax.random.key(0), learner, {"epsilon": 1.0}, draw_user, rounds=rounds, **options)


@pytest.mark.filterwarnings("error:Explicitly requested dtype")  # a replay that truncates float64
@pytest.mark.parametrize(
    "name",
    [name for name, entry in registry.LEARNERS.items() if entry.proof != "none"],
)
def test_registered_learners_spend_what_they_claim(name):
    entry = registry.LEARNERS[name]
    found = grey_box(
        jax.random.key(0),
        entry.make(),
        entry.values,
        entry.make_user,
        rounds=ROUNDS.get(name, 3),
        answer=entry.users_answer,
        num_bases=BASES.get(name, 4),
        num_neighbours=128,
    )
    if found.guarantee.trust_model == "shuffle":
        assert not found.faults, found
        assert found.notes == ("amplification by shuffling is not computed here",)
    else:
        assert found.verdict == "consistent", found
    assert found.sites
    for site in found.sites:
        if site.norm in ("changed", "any"):  # randomized response and the like: any change costs the same
            continue
        assert site.declared is not None
        if name not in BELOW:
            assert site.measured == pytest.approx(site.declared, rel=1e-4)
    assert found.spent == pytest.approx(SPENT.get(name, found.guarantee.epsilon), rel=1e-4)


@pytest.mark.parametrize("name", ["ebs_elimination", "ebs_elimination_gaussian"])
def test_registered_elimination_at_half_its_noise(name):
    entry = registry.LEARNERS[name]
    learner = entry.make()

    def params(**values):
        right = learner.params(**values)
        node = right.noise
        if hasattr(node, "epsilon"):
            return dataclasses.replace(right, noise=dataclasses.replace(node, epsilon=2 * node.epsilon))
        half = node.noise_stddev * node.noise_stddev.dtype.type(0.5)
        return dataclasses.replace(right, noise=dataclasses.replace(node, noise_stddev=half))

    found = grey_box(
        jax.random.key(0),
        learner._replace(params=params),
        entry.values,
        entry.make_user,
        rounds=ROUNDS[name],
        answer=feedback_of_pair,
        num_bases=BASES.get(name, 4),
        num_neighbours=128,
    )
    assert found.verdict == "violated"
    assert found.spent == pytest.approx({"ebs_elimination": 2.0}.get(name, 1.5137), rel=1e-4)


def test_the_regret_query_of_expert_tracking_has_sensitivity_2():
    found = look(small.regret_query(num_experts=3, sensitivity=2.0), small.draw_corners(3), 8, num_neighbours=256)
    (site,) = found.sites
    assert (site.site, site.measured) == ("above_threshold in update", 2.0)
    assert found.spent == pytest.approx(1.0)  # one budget for all rounds
    assert found.verdict == "consistent"
    wrong = look(small.regret_query(num_experts=3, sensitivity=1.0), small.draw_corners(3), 8, num_neighbours=256)
    assert wrong.verdict == "violated"
    assert wrong.spent == pytest.approx(2.0)
    assert "above_threshold in update changes by 2 in max norm, but 1 is declared" in wrong.faults


def test_a_sum_of_costs_beyond_the_claim():
    assert look(small.pair_of_releases(reuse_key=False), small.draw_corners(2)).verdict == "consistent"
    found = look(small.pair_of_releases(reuse_key=False, share=1.0), small.draw_corners(2))
    assert found.faults == ("releases cost epsilon = 2 at delta = 0, but 1 is claimed",)


def test_the_same_noise_twice():
    found = look(small.pair_of_releases(reuse_key=True), small.draw_corners(2))
    assert found.faults == (
        "the same key serves twice: laplace in update and laplace in update, call 2",
        "the same noise is drawn twice: laplace in update and laplace in update, call 2",
    )


def test_gaussians_add_up_in_squares():
    delta = 1e-3
    spent = gaussian_epsilon(delta, 3.0, np.sqrt(2))
    found = look(small.two_gaussians(3.0, delta), small.draw_corners(2))
    assert found.spent == pytest.approx(spent, rel=1e-6)
    assert found.verdict == ("consistent" if spent <= 1 else "violated")
    assert look(small.two_gaussians(6.0, delta), small.draw_corners(2)).verdict == "consistent"
    assert look(small.two_gaussians(1.0, delta), small.draw_corners(2)).verdict == "violated"
    assert look(small.two_gaussians(1.0, 0.0), small.draw_corners(2)).spent == np.inf


def test_what_follows_released_states_costs_nothing():
    """Fixes the released states: along its own transcript, a run would move by 101 times as much in the next round."""
    found = look(small.follows_itself(100.0), small.draw_corners(1))
    assert found.verdict == "consistent"
    assert found.sites[0].measured == pytest.approx(1.0, rel=1e-4)


def test_interfaces_of_dicts_and_lists_of_blocks():
    blocks: Any = []
    interface = Interface({"arm": arms(2)}, {"loss": arms(2)})
    learner = small.follows_itself(100.0)._replace(interface=interface, blocks=blocks)
    assert look(learner, small.draw_corners(1)).verdict == "consistent"


def test_a_path_around_the_noise():
    entry = registry.LEARNERS["explore_then_commit"]
    learner = entry.make()

    def update(key, params, state, report):
        noisy = learner.update(key, params, state, report)
        best = jnp.argmax(noisy.private.totals).astype(jnp.int32)
        return noisy._replace(public=noisy.public._replace(best_arm=best))

    found = grey_box(
        jax.random.key(0),
        learner._replace(update=update),
        entry.values,
        entry.make_user,
        rounds=5,
        num_bases=2,
        num_neighbours=64,
    )
    assert any("a path around the noise" in fault for fault in found.faults)


def test_a_report_that_forgets_to_clip():
    learner = exponential_weights(num_experts=5, horizon=30)

    def privatize(key, params, public, context, action, feedback):
        return laplace(key, feedback, params.epsilon, l1_sensitivity=5.0)

    entry = registry.LEARNERS["exponential_weights"]
    found = grey_box(
        jax.random.key(0),
        learner._replace(privatize=privatize),
        entry.values,
        entry.make_user,
        rounds=2,
        answer=full_information,
        num_bases=2,
        num_neighbours=64,
    )
    assert "laplace in privatize changes by 25 in l1 norm, but 5 is declared" in found.faults
    assert found.spent == pytest.approx(5.0)


def test_branches_on_private_data_are_refused():
    with pytest.raises(ValueError, match="not behind a branch on private data"):
        look(small.branches_on_data(), small.draw_corners(1))


@pytest.mark.parametrize(("name", "value"), [("rounds", 0), ("num_bases", 1), ("num_neighbours", 0)])
def test_bad_counts(name, value):
    with pytest.raises(ValueError, match=f"{name} must be an integer >= "):
        look(small.follows_itself(0.0), small.draw_corners(1), **{name: value})


def test_entries_of_every_mechanism():
    scores = jnp.asarray([1.0, 2.0])
    with tape.recording() as entries:
        noisy_max(jax.random.key(0), scores, 0.5, sensitivity=2.0)
        randomized_response(jax.random.key(0), jnp.asarray([0, 1], jnp.int32), 0.25)
        randomize_scalar(jax.random.key(0), scores, 0.75, bound=2.0)
    found = [(e.name, e.norm, e.sensitivity, float(e.epsilon), e.each) for e in entries]  # pyright: ignore[reportArgumentType]
    assert found == [
        ("noisy_max", "spread", 2.0, 0.5, False),
        ("randomized_response", "changed", None, 0.25, True),
        ("randomize_scalar", "max", 4.0, 0.75, True),
    ]
    with tape.recording() as entries:
        pass
    laplace(jax.random.key(0), scores, 1.0, l1_sensitivity=1.0)
    assert entries == []


def test_local_randomizers_cost_epsilon_for_each_entry():
    def learner(randomizer):
        def privatize(key, params, public, context, action, feedback):
            return randomizer(key, feedback, params)

        blank = small.curator(lambda *_: small.State((), ()), lambda: small.State((), ()), small.guarantee("local"))
        return blank._replace(privatize=privatize, update=lambda key, params, state, report: state)

    def bits(key, feedback, params):
        return randomized_response(key, feedback.astype(jnp.int32), params)

    def scalars(key, feedback, params):
        return randomize_scalar(key, feedback - 0.5, params, bound=0.5)

    for randomizer in (bits, scalars):
        assert look(learner(randomizer), small.draw_corners(1)).spent == pytest.approx(1.0)
        assert look(learner(randomizer), small.draw_corners(2)).spent == pytest.approx(2.0)

    def unclipped(key):
        return UserData(3 * jax.random.bernoulli(key, shape=(1,)).astype(float))

    found = look(learner(scalars), unclipped)
    assert (found.faults, found.spent) == ((), pytest.approx(1.0))

    def wrong_labels(key, feedback, params):
        return randomized_response(key, 7 * feedback.astype(jnp.int32), params)

    found = look(learner(wrong_labels), small.draw_corners(1))
    assert found.verdict == "violated"
    assert "randomized_response in privatize gets a value beyond its bound 1: its cost" in str(found.faults)


def test_results_are_plain():
    found = look(small.follows_itself(0.0), small.draw_corners(1))
    names = {"guarantee", "sites", "spent", "faults", "notes", "pair", "loss", "equal_paths"}
    assert set(dataclasses.asdict(found)) == names
