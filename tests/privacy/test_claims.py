"""Every registered claim stands up to its attack, at a second look at the latest, and the attack is no formality."""

import dataclasses

import jax
import pytest

from jaxdp import registry
from jaxdp.audit import scoreboard
from tests.privacy.second_look import MORE, confidence_among

NAMES = [*registry.MECHANISMS, *registry.LEARNERS, *registry.ESTIMATORS]
CALL = "print(audit(jax.random.key(0), "  # begins the last line of a row's code

SMALL = (
    "gaussian",
    "objective_perturbation_cut_k_norm",
    "randomized_response",
    "noisy_max_exponential",
    "above_threshold",
    "sgd_rr",
)


def row(target, name, trials):
    """Audits a target; where an attack exceeds the claim, returns the row of attacks that are made again."""
    (found,) = scoreboard(jax.random.key(0), {name: target}, trials=trials, searched=trials > 20_000)
    if found.verdict != "violated" or found.faults or found.ratio <= 1:
        return found
    if found.code:
        target = dataclasses.replace(target, attacks={**target.attacks, "found": attack_of(found.code)})
    confidence = confidence_among(len(NAMES))
    (again,) = scoreboard(jax.random.key(1), {name: target}, trials=MORE * trials, confidence=confidence)
    return again


def attack_of(code):
    """Returns the attack on the inputs that a search found, from the code of a row."""
    *lines, call = code.splitlines()
    assert call.startswith(CALL)
    names: dict = {}
    exec("\n".join(lines), names)
    return eval(call.removeprefix(CALL).removesuffix("))"), names)


def row_of(name, trials):
    return row(registry.attacks([name])[name], name, trials)


@pytest.mark.parametrize("name", SMALL)
def test_a_claim_is_not_refuted(name):
    found = row_of(name, 20_000)
    assert found.verdict == "consistent", found
    assert found.ratio > (0.9 if name == "randomized_response" else 0.1), found


def test_the_published_mirror_descent_costs_more_than_was_said():
    """Checks an epsilon above the paper's, and below N times the paper's, which is the claim here."""
    entry = registry.LEARNERS["mirror_descent_paper"]
    found, epsilon = row_of("mirror_descent_paper", 20_000), entry.values["epsilon"]
    assert found.verdict == "consistent", found
    assert 2 * epsilon < found.lower_bound <= entry.sizes["num_experts"] * epsilon, found


@pytest.mark.parametrize("name", NAMES)
def test_a_claim_is_nearly_reached(name):
    target = registry.attacks([name])[name]
    found = row(target, name, 10**6)
    assert found.verdict == "consistent", found
    if target.guarantee.is_private:
        assert target.reached is not None
        assert found.ratio >= target.reached, found


TRIALS = {"rucb": 20_000, "ebs_phased": 20_000, "limited_updates": 20_000}
# Multiples of epsilon: short epochs reach little of the tests' half, and shares of all experts little of the draws'
# cost; at twice its budget `lazy_weights_switching` resamples more often, by chance, which hides its cost.
FACTORS = {"svt_restarts": 4, "mirror_descent_intervals": 4, "lazy_weights_switching": 4}
ATTACKED = [(name, TRIALS.get(name, 10**6)) for name, entry in registry.LEARNERS.items() if entry.proof != "none"]


@pytest.mark.parametrize(("name", "trials"), ATTACKED)
def test_a_learner_at_twice_its_epsilon_is_refuted(name, trials):
    """Attacks at twice epsilon, or at `FACTORS`: noise that neighbours do not reach could have any size."""
    entry, attack = registry.LEARNERS[name], registry.attacks([name])[name].attacks["rounds"]
    params = entry.make().params(**{**entry.values, "epsilon": FACTORS.get(name, 2) * entry.values["epsilon"]})
    (found,) = scoreboard(jax.random.key(0), {name: attack._replace(params=params)}, trials=trials)
    assert found.verdict == "violated", found


def test_what_claims_nothing_can_be_attacked():
    found = row_of("sgd", 20_000)
    assert found.verdict == "consistent"
    assert found.ratio == 0
    assert found.lower_bound > 5


def claimed_less(name, share):
    """Returns an entry's target with a claim of less than its epsilon."""
    target = registry.attacks([name])[name]
    claim = dataclasses.replace(target.guarantee, epsilon=target.guarantee.epsilon * (1 - share))
    attacks = {path: attack._replace(guarantee=claim) for path, attack in target.attacks.items()}
    return dataclasses.replace(target, guarantee=claim, attacks=attacks, points=(), spaces={}, distributions=None)


@pytest.mark.parametrize("share", [0.0, 0.03])
def test_three_percent_less_than_is_spent_is_refuted(share):
    found = row(claimed_less("randomized_response", share), "randomized_response", 200_000)
    assert found.verdict == ("violated" if share else "consistent"), found
