"""Registry entries of `mirror_descent`."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from jaxdp import experts
from jaxdp.audit import UserData
from jaxdp.audit.exact import OutputDistribution
from jaxdp.registry.experts._distributions import distribution_of_rounds, losses_of
from jaxdp.registry.experts._worlds import (
    TRACKING,
    a_loss_of_a_long_run,
    all_losses_move,
    expert_entry,
    punishing,
    shifting,
    the_first_loss_decides,
)
from jaxdp.registry.second import Second

ORDER = 380  # position of the entries in lists


def sampled_weights_distribution(
    params: Any, data: UserData, *, num_experts: int, horizon: int, num_switches: int, mixing: str = "fixed_share"
) -> OutputDistribution:
    """Returns the distribution of the plays and of `public`.

    In each round an expert is drawn with probability equal to its weight. After each round, weights are multiplied by
    exp(-rate * loss) and normalized. Then `mixing` keeps weights above 0: "fixed_share" moves a part of every weight to
    the other experts; any other value raises small weights to a floor.
    """
    losses, rate = losses_of(data), float(params.learning_rate)
    moved, floor = num_switches / (horizon - 1), num_switches / (num_experts * horizon)
    weights = [np.full(num_experts, 1 / num_experts)]
    for round_losses in losses:
        updated = softmax(np.log(weights[-1]) - rate * round_losses)
        if mixing == "fixed_share":
            weights.append((1 - moved) * updated + moved / (num_experts - 1) * (1 - updated))
        else:
            scale = brentq(lambda scale, row=updated: np.maximum(floor, scale * row).sum() - 1, 0, 2, xtol=1e-15)
            weights.append(np.maximum(floor, scale * updated))

    def public_content(_: int, expert: int) -> tuple[Hashable, ...]:
        return (tuple(float(other == expert) for other in range(num_experts)),)

    return distribution_of_rounds(
        len(losses),
        dict(enumerate(weights[0].tolist())),
        lambda round_, _: enumerate(weights[round_ + 1].tolist()),
        lambda _, expert: expert,
        public_content,
        has_clock=False,
    )


MIRROR_DESCENT = expert_entry(
    summary="draws each play from exact weights that track shifts; only the sampling hides the losses",
    source=TRACKING.format("Algorithm 3"),
    reached=0.6,  # the true fraction is 0.751; if two weights are very different, a draw costs less than is claimed
    factory=experts.mirror_descent,
    variant={"num_switches": 1},
    sizes={"num_experts": 2, "horizon": 6},
    values={"epsilon": 4.0, "delta": 1e-3},
    environment=punishing,
    neighbours=a_loss_of_a_long_run,
    draws_in_update=True,
    distribution=sampled_weights_distribution,
)
ENTRIES = {
    "mirror_descent": MIRROR_DESCENT,
    "mirror_descent_clipped": replace(
        MIRROR_DESCENT,
        summary="draws each play from exact weights that track shifts and are kept above a minimum",
        variant={"num_switches": 1, "mixing": "clipped"},
        reached=None,
    ),
    "mirror_descent_noisy_losses": replace(
        MIRROR_DESCENT,
        summary="runs mirror descent on losses, with noise added to each loss",
        variant={"num_switches": 1, "form": "noisy_losses", "noise": "laplace"},
        values={"epsilon": 1.0},
        environment=shifting,
        neighbours=all_losses_move,
        reached=None,
        draws_in_update=False,
        distribution=None,
    ),
    # The noise suffices for one loss, but a vector has one loss per expert: the claim here is the true cost.
    "mirror_descent_paper": replace(
        MIRROR_DESCENT,
        summary="runs published mirror descent: noise hides one loss of a vector, so the claim is num_experts epsilon",
        source='Asi, Raman & Saha (2025), Algorithm 3, "Tracking the Best Expert Privately", as published',
        variant={"num_switches": 1, "constants": "paper"},
        sizes={"num_experts": 3, "horizon": 6},
        values={"epsilon": 0.5},
        environment=shifting,
        neighbours=all_losses_move,
        reached=None,
        draws_in_update=False,
        distribution=None,
        multiple="num_experts",
    ),
    "mirror_descent_intervals": replace(
        MIRROR_DESCENT,
        summary="draws each play by weights that track the best of several learners, one for each length of intervals",
        source=TRACKING.format("Theorem 5.2"),
        reached=0.45,  # a loss is forgotten at the end of each interval
        variant={"num_switches": 1, "form": "intervals"},
        environment=shifting,
        neighbours=the_first_loss_decides,
        second=Second({"horizon": 8}, neighbours=a_loss_of_a_long_run),
        distribution=None,
    ),
}
USES = {  # shown on pages of the site
    "mirror_descent": {
        "use": (
            "Use it for experts when the comparison with published private mirror descent matters, or with losses "
            "that shift slowly."
        ),
        "not": "Its claims for shared weights are not stated with the rounding of floats; see `Privacy`.",
    },
}
