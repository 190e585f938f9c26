"""How fast fixed share forgets a loss, which is what drawing from its shares costs."""

import math

import numpy as np
import pytest

from jaxdp.core.conversions import zcdp_rho
from jaxdp.experts import mirror_descent
from jaxdp.experts._mirror_descent.parameters import draws_reached


@pytest.mark.parametrize(("num_experts", "num_switches"), [(2, 2), (2, 30), (5, 12), (5, 39)])
def test_fixed_share_contracts_ranges(num_experts, num_switches):
    """Checks the contraction that the learning rate assumes; two experts of half the weight each reach it exactly."""
    horizon, rng = 40, np.random.default_rng(1)
    switch_rate = num_switches / (horizon - 1)
    first = np.concatenate([rng.dirichlet(np.full(num_experts, 0.3), 1000) + 1e-9, np.full((1000, num_experts), 1e-9)])
    first[1000:, :2] = 0.5
    pair = np.stack([first, first * np.exp(rng.normal(size=first.shape) * np.repeat([2.0, 1e-3], 1000)[:, None])])
    pair /= pair.sum(2, keepdims=True)
    after = (1 - switch_rate) * pair + switch_rate / (num_experts - 1) * (1 - pair)
    if num_experts > 2:  # what little the others have, does not count
        pair[:, 1000:, 2:], after[:, 1000:, 2:] = pair[:, 1000:, :1], after[:, 1000:, :1]
    before, now = (np.ptp(np.log(each[0]) - np.log(each[1]), axis=1) for each in (pair, after))
    odds = (1 - switch_rate) * (num_experts - 1) / switch_rate
    contraction = abs(odds - 1) / (odds + 1)
    assert (now <= contraction * before * (1 + 1e-6) + 1e-12).all()
    assert (now / before)[1000:].max() > 0.99 * contraction
    reached = sum(contraction ** (2 * k) for k in range(1, horizon + 1))
    assert reached * (1 - 1e-12) <= draws_reached(num_experts, num_switches, horizon) <= reached * (1 + 1e-3)


@pytest.mark.parametrize("horizon", [3, 10**5, 10**6])
@pytest.mark.parametrize("back", [1, 2, 10])
@pytest.mark.parametrize("num_experts", [2, 3])
def test_shares_that_nearly_swap_forget_nearly_nothing(num_experts, back, horizon):
    """Checks that if almost every round is a switch, a switch rate rounded to fewer switches claims too little."""
    num_switches = max(1, horizon - back)
    odds = (1 - num_switches / (horizon - 1)) * (num_experts - 1) / (num_switches / (horizon - 1))
    contraction = abs(odds - 1) / (odds + 1)
    steps = np.arange(1, horizon + 1)
    assert draws_reached(num_experts, num_switches, horizon) >= np.sum(contraction ** (2 * steps)) * (1 - 1e-9)


def test_a_swap_of_two_experts_costs_what_is_claimed():
    """Swaps two shares for ever, so that each draw reveals the first loss again."""
    horizon = 10**5
    learner = mirror_descent(num_experts=2, horizon=horizon, num_switches=horizon - 1)
    for rate in (None, 0.99 * math.sqrt(2 * zcdp_rho(1.0, 1e-6) / horizon)):
        about = {} if rate is None else {"learning_rate": rate}
        params = learner.params(epsilon=1.0, delta=1e-6, **about)
        held, claimed = float(params.learning_rate), learner.guarantee(epsilon=1.0, delta=1e-6, **about).rho
        assert claimed is not None
        assert horizon * held * math.tanh(held / 2) <= claimed
