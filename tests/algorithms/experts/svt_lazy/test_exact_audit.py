"""Exact audits of `svt_lazy` on tiny instances, and distributions that its programs follow."""

import itertools

import numpy as np
import pytest

from jaxdp import experts
from jaxdp.audit import exact_epsilon, exact_rho
from tests.algorithms.experts.exact_audits import ROUNDS, SEQUENCES, check_distribution, neighbours, sampled
from tests.algorithms.experts.svt_lazy.golden import svt_lazy_distribution


@pytest.mark.parametrize("accounting", ["pure", "zcdp"])
def test_lazy_selections_stay_below_their_claim(accounting):
    delta = {} if accounting == "pure" else {"delta": 1e-3}
    learner, values = experts.svt_lazy(num_experts=2, horizon=ROUNDS, accounting=accounting), {"epsilon": 4.0, **delta}
    params = learner.params(**values, max_switches=1, threshold=0.5)
    rate, budget = float(params.learning_rate), float(params.monitor_epsilon)
    distributions = [svt_lazy_distribution(losses, rate, budget, 0.5, 1) for losses in SEQUENCES]
    if accounting == "pure":
        spent, claimed = (
            max(exact_epsilon(distributions[one], distributions[other]) for one, other in neighbours()),
            4.0,
        )
    else:
        spent = max(
            exact_rho(distributions[one], distributions[other])
            for one, other in itertools.islice(neighbours(), 0, None, 4)
        )
        claimed = float(learner.guarantee(**values).rho or 0)
    assert (0.5 if accounting == "pure" else 0.3) * claimed <= spent <= claimed


HARD = np.asarray([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
EXPERT = {"expert": lambda snapshot: snapshot.public.expert}
LAZY = {**EXPERT, "waits": lambda snapshot: snapshot.public.played < 0}


def test_lazy_selections_have_their_distribution():
    learner = experts.svt_lazy(num_experts=2, horizon=4)
    values = {"epsilon": 8.0, "max_switches": 1, "threshold": 1.0}
    params = learner.params(**values)
    found = sampled(learner, HARD, values, {**LAZY, "action": lambda snapshot: snapshot.action})
    ends = [tuple((np.flatnonzero(row) + 1).tolist()) for row in found["waits"]]
    experts_ = np.concatenate([found["action"][:, :1], found["expert"]], axis=1).tolist()
    samples = [(tuple(row), end) for row, end in zip(experts_, ends, strict=True)]
    rate = float(params.learning_rate)
    check_distribution(samples, svt_lazy_distribution(HARD, rate, 8.0, 1.0, 1))
    for wrong in ((rate, 10.0, 1.0, 1), (0.6 * rate, 8.0, 1.0, 1), (rate, 8.0, 1.5, 1)):
        with pytest.raises(AssertionError):
            check_distribution(samples, svt_lazy_distribution(HARD, *wrong))
