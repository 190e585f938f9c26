"""Lanes that use late reports in steps of their own give the results of single rounds."""

from typing import Any

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp import bandits, batched, delayed, dueling, per_person
from jaxdp.core import Visits

ROUNDS, LOOKS = 160, [37, 96, 160]
VISITS = Visits.random(people=40, each=4, seed=5)
MEANS, MATRIX = [0.3, 0.5, 0.8], [[0.5, 0.8, 0.9], [0.2, 0.5, 0.6], [0.1, 0.4, 0.5]]
ARMS, VISITED = bandits.bernoulli_bandit(MEANS), bandits.bernoulli_bandit(MEANS, visits=VISITS)
DRAWN = np.random.default_rng(0).integers(20, size=ROUNDS)  # reports overtake others
STOPPING = bandits.ucb(num_arms=3)._replace(done=lambda params, public: public.plays.max() >= 40)
CONSTANT, OVERTAKING, BATCHES = delayed(ARMS, 11), delayed(ARMS, DRAWN), batched(ARMS, 16)
CASES = {
    "constant": (bandits.ucb(num_arms=3), CONSTANT),
    "overtaking": (bandits.tsallis_inf(num_arms=3), OVERTAKING),
    "batches": (bandits.ucb_central(num_arms=3), BATCHES),
    "duels": (dueling.rucb(num_arms=3), delayed(dueling.matrix_duels(MATRIX), DRAWN)),
    "a learner that stops": (STOPPING, CONSTANT),
    "a learner that stops, overtaking": (STOPPING, OVERTAKING),
    "people who rest": (per_person(bandits.ucb_central(num_arms=3), reports=2), delayed(VISITED, DRAWN)),
    "people": (per_person(bandits.ucb(num_arms=3), reports=2, rest="act"), delayed(VISITED, 11)),
}


def select_public(public: dict[str, np.ndarray]):
    """Returns the public values with actions replaced by -1 if the learner does not wait, as they have no meaning."""
    actions = public["action"].reshape(*public["waits"].shape, -1)
    return {**public, "action": np.where(public["waits"][..., None], actions, -1)}


@pytest.mark.filterwarnings("ignore:.* hears ")
@pytest.mark.parametrize("name", CASES)
def test_steps_give_the_results_of_single_rounds(name):
    learner, world = CASES[name]
    names = ("waits", "action", "used", "queued")
    record: dict[str, Any] = {each: lambda snapshot, each=each: getattr(snapshot.public, each) for each in names}
    record |= {
        f"learner {index}": lambda snapshot, index=index: jax.tree.leaves(snapshot.public.learner)[index]
        for index in range(len(jax.tree.leaves(learner.init(jax.random.key(0), learner.params(epsilon=4.0)).public)))
    }
    run = jaxdp.simulator(learner, world, ROUNDS, checkpoints=LOOKS, record=record)
    by_round, params, keys = run.by_round, run.params(epsilon=4.0), jax.random.split(jax.random.key(1), 16)
    assert by_round is not None
    lanes = jax.jit(jax.vmap(run, (0, None)))(keys, params)
    rounds = jax.jit(jax.vmap(lambda key: by_round(key, params, ROUNDS)))(keys)
    stops = np.asarray(lanes.get("rounds", np.full(16, ROUNDS)))
    looks = np.minimum(np.asarray(LOOKS), stops[:, None]) - 1

    def at_looks(leaf):
        return np.stack([np.asarray(leaf)[lane, looks[lane]] for lane in range(16)])

    public = jax.tree.map(at_looks, rounds["events"]["public"])
    for index, leaf in enumerate(jax.tree.leaves(public.learner)):
        # The excess of a compensated sum is a rounding error, and may be another one in another program.
        np.testing.assert_allclose(lanes[f"learner {index}"], leaf, rtol=1e-5, atol=1e-5)
    by_steps = select_public({each: np.asarray(lanes[each]) for each in names})
    by_rounds = select_public({each: getattr(public, each) for each in names})
    jax.tree.map(np.testing.assert_array_equal, by_steps, by_rounds)
    np.testing.assert_allclose(lanes["pseudo_regret"], at_looks(rounds["sums"]["pseudo_regret"]), rtol=1e-5)
    assert (stops.min() < ROUNDS) == ("stops" in name)
