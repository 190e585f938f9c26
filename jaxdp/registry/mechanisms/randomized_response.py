"""Registry entries of `randomized_response` and `randomize_scalar`."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import mechanisms
from jaxdp.audit import Domain, replace_one_row
from jaxdp.audit.exact import OutputDistribution
from jaxdp.core import default_float
from jaxdp.registry.distributions import budget_of, label_distribution, two_ends
from jaxdp.registry.entries import BUDGETS
from jaxdp.registry.mechanisms._releases import (
    SENSITIVITIES,
    Pair,
    Params,
    budget,
    claim,
    itself,
    mechanism_entry,
)
from jaxdp.validation import check_positive

ORDER = 20  # position of the entries in lists


def sign_distribution(params: Any, data: Any) -> OutputDistribution:
    """Returns the distribution of a random sign that reports the number `data` in [-1, 1].

    The mean of the sign is the number times (e^epsilon - 1) / (e^epsilon + 1).
    """
    return dict(zip((1, -1), two_ends((float(data) + 1) / 2, budget_of(params)), strict=True))


def _for_bound(*, epsilon: float, bound: float = 1.0) -> Params:
    return Params(budget(epsilon=epsilon), np.asarray(check_positive("bound", bound), default_float()))


def _randomized_response(key, epsilon, data, *, num_labels):
    return mechanisms.randomized_response(key, data, epsilon, num_labels=num_labels)


def _randomize_scalar(key, params, data):
    return mechanisms.randomize_scalar(key, data, params.epsilon, bound=params.bound)


def _scalars(bound: float = 1.0) -> Pair:
    return np.asarray(-bound, np.float32), np.asarray(bound, np.float32)


def _any_label(num_labels: int) -> Domain:
    return replace_one_row(lambda key: jax.random.randint(key, (), 0, num_labels, jnp.int32))


def _any_scalar(bound: float = 1.0) -> Domain:
    """Returns the domain of numbers in [-bound, bound]; any other number counts as the nearer end."""
    fractions = (-1, -0.5, -1e-3, 0, 0.25, 0.5, 0.999, 1)
    specials = [tuple(float(np.float32(fraction * bound)) for fraction in fractions)]
    return replace_one_row(lambda key: jax.random.uniform(key, (), np.float32, -bound, bound), specials=specials)


_LABELS = (np.asarray(0, np.int32), np.asarray(1, np.int32))
RANDOMIZED_RESPONSE = mechanism_entry(
    summary="reports a binary label truthfully with probability sigmoid(epsilon)",
    source="Warner (1965)",
    factory=mechanisms.randomized_response,
    variant={"num_labels": 2},
    values={"epsilon": 1.0},
    params=budget,
    guarantee=claim("local", "one label", "randomized response"),
    release=_randomized_response,
    grid={"epsilon": BUDGETS},
    domain=_any_label,
    neighbours=_LABELS,
    exact=itself,
    distribution=label_distribution,
)
ENTRIES = {
    "randomized_response": RANDOMIZED_RESPONSE,
    "k_ary_randomized_response": replace(
        RANDOMIZED_RESPONSE,
        summary="reports one of K labels, the true one exp(epsilon) times as likely as any other",
        source="Kairouz, Bonawitz & Ramage (2016)",
        sizes={"num_labels": 4},
        guarantee=claim("local", "one label", "K-ary randomized response"),
        other_sizes=({"num_labels": 2}, {"num_labels": 16}),
        variant={},
    ),
    "randomize_scalar": mechanism_entry(
        summary="reports a bounded scalar as one random sign, unbiased after scaling",
        source="Duchi, Jordan & Wainwright (2018), in one dimension",
        factory=mechanisms.randomize_scalar,
        values={"epsilon": 1.0},
        params=_for_bound,
        guarantee=claim(
            "local", "one scalar in [-{bound}, {bound}]", "randomized response with a bias linear in the scalar"
        ),
        release=_randomize_scalar,
        grid={"epsilon": BUDGETS, "bound": SENSITIVITIES},
        domain=_any_scalar,
        neighbours=_scalars,
        exact=None,  # a random sign at every epsilon
        distribution=sign_distribution,
    ),
}
USES = {  # shown on pages of the site
    "randomized_response": {
        "use": "Use it to report a label among K without a curator: the optimal pure mechanism for K = 2.",
        "not": "For large K at small ε the report is almost uniform.",
    },
    "randomize_scalar": {
        "use": "Use it to report one bounded number without a curator: one bit, unbiased after `debias_scalar`.",
        "not": "At large ε the bit's own variance dominates; Gaussian or Laplace reports are then better.",
    },
}
