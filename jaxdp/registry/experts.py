"""Prediction from experts' advice."""

import jax
import numpy as np

from jaxdp import experts
from jaxdp.audit import Users, whole
from jaxdp.core import Environment
from jaxdp.registry.draws import either, spread
from jaxdp.registry.entries import LearnerEntry

# Losses beyond the [0, 1] to which a learner clips them are a user's to hold, too.
LOW, HIGH = -2.0, 3.0


def _adaptive(num_experts: int) -> Environment:
    return experts.adaptive_losses(spread(0.1, 0.9, num_experts), penalty=0.1)


def _stochastic(num_experts: int) -> Environment:
    return experts.stochastic_losses(spread(0.1, 0.9, num_experts))


def _all_losses_move(num_experts: int) -> tuple[Users, Users]:
    """One round."""
    return Users(np.full((1, num_experts), LOW)), Users(np.full((1, num_experts), HIGH))


def _draw_losses(key: jax.Array, num_experts: int) -> Users:
    return Users(either(key, LOW, HIGH, num_experts, float))


SOURCE = "Freund & Schapire (1997), Hedge; noise by Dwork & Roth (2014), Theorem 3.6, or Balle & Wang (2018), Theorem 8"

EXPERTS = {
    "exponential_weights": LearnerEntry(
        family="experts",
        summary="plays experts with odds exponential in their reported losses, each report with Laplace noise",
        source=SOURCE,
        proof="proved",
        factory=experts.exponential_weights,
        sizes={"num_experts": 5, "horizon": 30},
        values={"epsilon": 1.0},
        environment=_adaptive,
        neighbours=_all_losses_move,
        draw_user=_draw_losses,
        users_answer=whole,
    ),
    "exponential_weights_gaussian": LearnerEntry(
        family="experts",
        summary="the same with Gaussian noise",
        source=SOURCE,
        proof="proved",
        factory=experts.exponential_weights,
        variant={"noise": "gaussian"},
        sizes={"num_experts": 5, "horizon": 30},
        values={"epsilon": 1.0, "delta": 1e-3},
        environment=_stochastic,
        neighbours=_all_losses_move,
        draw_user=_draw_losses,
        users_answer=whole,
    ),
}
