"""Exact audits of `limited_updates` on tiny instances, and distributions that its programs follow."""

import numpy as np
import pytest

from jaxdp import experts
from jaxdp.audit import g_test
from tests.algorithms.experts.exact_audits import after_the_first, check_distribution, sampled
from tests.algorithms.experts.limited_updates.golden import limited_updates_distribution

HARD = np.asarray([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
EXPERT = {"expert": lambda snapshot: snapshot.public.expert}


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
def test_limited_updates_have_their_distribution(noise):
    learner = experts.limited_updates(num_experts=2, noise=noise)
    found = sampled(learner, HARD[:3], {"epsilon": 1.0}, EXPERT)["expert"]
    samples = [tuple(row) for row in found.tolist()]
    distribution, wrong = (
        after_the_first(limited_updates_distribution(HARD[:3], epsilon), lambda experts: experts[1:])
        for epsilon in (1.0, 1.2)
    )
    if noise == "gumbel":
        assert g_test(samples, distribution) < 1e-6
        return
    check_distribution(samples, distribution)
    with pytest.raises(AssertionError):
        check_distribution(samples, wrong)
