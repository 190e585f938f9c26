"""Exact audits of `limited_updates_oblivious` on tiny instances, and distributions that its programs follow."""

import numpy as np
import pytest

from jaxdp import experts
from jaxdp.audit import exact_epsilon
from tests.algorithms.experts.exact_audits import check_distribution, sampled
from tests.algorithms.experts.limited_updates_oblivious.golden import limited_updates_oblivious_distribution


def test_batches_spend_most_of_their_claim():
    """Moves one of five experts against all others, in all three selections."""
    epsilon, rounds = 1.5, 4
    params = experts.limited_updates_oblivious(num_experts=5, horizon=rounds).params(epsilon=epsilon, batch=1)
    others = np.full((rounds, 5), 0.5)
    first, second = others.copy(), others.copy()
    first[0], second[0] = [1, 0, 0, 0, 0], [0, 1, 1, 1, 1]
    distributions = [
        limited_updates_oblivious_distribution(losses, float(params.learning_rate), 1) for losses in (first, second)
    ]
    assert 0.7 * epsilon <= exact_epsilon(distributions[0], distributions[1]) <= epsilon


HARD = np.asarray([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
EXPERT = {"expert": lambda snapshot: snapshot.public.expert}


def test_batches_have_their_distribution():
    leaves = {"learning_rate": np.float32(0.7), "batch": np.int32(2)}
    learner = experts.limited_updates_oblivious(num_experts=2, horizon=4)
    cast = {name: leaf.astype(getattr(learner.params(epsilon=1.0), name).dtype) for name, leaf in leaves.items()}
    read = {**EXPERT, "action": lambda snapshot: snapshot.action}
    found = sampled(learner, HARD, {"epsilon": 1.0}, read, **cast)
    samples = [tuple(row) for row in found["action"][:, [0, 2]].tolist()]
    check_distribution(samples, limited_updates_oblivious_distribution(HARD, 0.7, 2))
    with pytest.raises(AssertionError):
        check_distribution(samples, limited_updates_oblivious_distribution(HARD, 0.8, 2))
