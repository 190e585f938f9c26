"""Learners that select from exact losses: contract, clocks, bulk play, clipping, utility, mistakes, errors."""

import math
from typing import Any

import jax
import pytest

from jaxdp import experts
from jaxdp.experts import _limited_updates
from jaxdp.experts._svt_restarts import _svt_restarts
from jaxdp.mechanisms import noisy_max
from jaxdp.testing import check_learner
from tests.algorithms.experts.selections import KEY, look, regret_of
from tests.algorithms.experts.worlds import stationary

SIZES: dict[str, Any] = {"num_experts": 3, "horizon": 40}
MAKERS = {
    "limited_updates": lambda: (experts.limited_updates(num_experts=3), {}),
    "limited_updates_binary": lambda: (experts.limited_updates(num_experts=3, losses="binary"), {}),
    "limited_updates_laplace": lambda: (experts.limited_updates(num_experts=3, noise="laplace"), {}),
    "limited_updates_oblivious": lambda: (experts.limited_updates_oblivious(**SIZES), {"batch": 5}),
    "limited_updates_oblivious_zcdp": lambda: (
        experts.limited_updates_oblivious(**SIZES, accounting="zcdp"),
        {"batch": 5, "delta": 1e-3},
    ),
    "svt_restarts": lambda: (experts.svt_restarts(**SIZES), {"margin": -5.0}),
    "svt_restarts_grid": lambda: (experts.svt_restarts(**SIZES, windows="all", check_every=3), {"margin": -5.0}),
    "svt_lazy": lambda: (experts.svt_lazy(**SIZES), {"max_switches": 3, "threshold": 1.0}),
    "svt_lazy_zcdp": lambda: (
        experts.svt_lazy(**SIZES, accounting="zcdp"),
        {"max_switches": 3, "threshold": 1.0, "delta": 1e-3},
    ),
}
NOT_REGISTERED = ("limited_updates_laplace", "svt_restarts_grid")


@pytest.mark.parametrize("name", NOT_REGISTERED)
def test_contract(name):
    learner, values = MAKERS[name]()
    environment, values = stationary([0.2, 0.5, 0.7]), {"epsilon": 2.0, **values}
    # Among equal sums the key of the update draws, as in the first round.
    check_learner(learner, environment, values, horizon=40, key=KEY(), draws_in_update=True)


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_noised(name):
    """Checks that losses beyond [0, 1] count as 0 or 1; one round in all selections spends the whole claim."""
    learner, values = MAKERS[name]()
    spent = []
    # Of the transcripts that one key draws, seven in eight have a question on the grid that moves by 2.
    for key in jax.random.split(KEY(), 5 if name == "svt_restarts_grid" else 1):
        found = look(learner, {"epsilon": 1.0, **values}, rounds=10, key=key)
        assert found.verdict == "consistent", found
        claim = found.guarantee
        most = claim.epsilon if claim.kind == "pure" else claim.epsilon_at(1e-3)
        assert 0.2 * most < found.spent <= most * (1 + 1e-6)
        spent.append(found.spent / most)
        if spent[-1] == pytest.approx(1.0):
            break
    if name in ("limited_updates", "svt_restarts_grid"):
        assert max(spent) == pytest.approx(1.0)


def check_utility():
    """Checks utility: uniform play would have 200 on average, and limited updates lose half of a block here and
    there.
    """
    assert regret_of(experts.limited_updates(num_experts=3), [0.5, 0.2, 0.5], epsilon=1.0) < 20


def test_utility(monkeypatch):
    check_utility()
    monkeypatch.setattr(_limited_updates, "noisy_min", noisy_max)  # line 4 of the paper
    with pytest.raises(AssertionError):
        check_utility()


def test_tests_for_sensitivity_one(monkeypatch):
    """Checks that a question moves by 2 where one loss vector turns (1, 0) into (0, 1)."""
    monkeypatch.setattr(_svt_restarts, "SENSITIVITY", 1.0)
    learner, values = MAKERS["svt_restarts_grid"]()
    found = look(learner, {"epsilon": 1.0, **values})
    assert found.verdict == "violated"
    assert any("2" in fault for fault in found.faults)


@pytest.mark.parametrize(
    ("factory", "arguments", "message"),
    [
        ("limited_updates", {"num_experts": 1}, "num_experts must be an integer >= 2, got 1"),
        (
            "limited_updates",
            {"num_experts": 2, "noise": "none"},
            "noise must be one of exponential, gumbel, laplace, g",
        ),
        ("limited_updates", {"num_experts": 2, "losses": "any"}, "losses must be one of bounded, binary, got 'any'"),
        (
            "limited_updates_oblivious",
            {"num_experts": 1, "horizon": 5},
            "num_experts must be an integer >= 2, got 1",
        ),
        ("limited_updates_oblivious", {"num_experts": 2, "horizon": 0}, "horizon must be an integer >= 1, got 0"),
        (
            "limited_updates_oblivious",
            {"num_experts": 2, "horizon": 5, "accounting": "rdp"},
            "accounting must be one of pure, zcdp, got 'rdp'",
        ),
        ("svt_restarts", {"num_experts": 1, "horizon": 5}, "num_experts must be an integer >= 2, got 1"),
        ("svt_restarts", {"num_experts": 2, "horizon": 2.5}, "horizon must be an integer >= 1, got 2.5"),
        (
            "svt_restarts",
            {"num_experts": 2, "horizon": 5, "check_every": 0},
            "check_every must be an integer >= 1, ",
        ),
        (
            "svt_restarts",
            {"num_experts": 2, "horizon": 5, "windows": "some"},
            "windows must be one of all, dyadic, got",
        ),
        (
            "svt_restarts",
            {"num_experts": 2, "horizon": 5, "noise": "none"},
            "noise must be one of exponential, gumbel, ",
        ),
        ("svt_lazy", {"num_experts": 1, "horizon": 5}, "num_experts must be an integer >= 2, got 1"),
        ("svt_lazy", {"num_experts": 2, "horizon": 0}, "horizon must be an integer >= 1, got 0"),
        (
            "svt_lazy",
            {"num_experts": 2, "horizon": 5, "accounting": "rdp"},
            "accounting must be one of pure, zcdp, got ",
        ),
    ],
)
def test_factory_errors(factory, arguments, message):
    with pytest.raises(ValueError, match=message):
        getattr(experts, factory)(**arguments)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        *((name, {"epsilon": bad}, f"epsilon must be > 0, got {bad}") for name in MAKERS for bad in (0.0, math.nan)),
        ("limited_updates_oblivious_zcdp", {"epsilon": 1.0, "delta": 0.0}, r"delta must be in \(0, 1\), got 0.0"),
        ("limited_updates_oblivious", {"epsilon": 1.0, "batch": 0}, "batch must be an integer >= 1, got 0"),
        ("limited_updates_oblivious", {"epsilon": 1.0, "batch": 41}, "batch must be <= horizon=40, got 41"),
        ("svt_restarts", {"epsilon": 1.0, "failure_prob": 0.0}, r"failure_prob must be in \(0, 1\), got 0.0"),
        ("svt_restarts", {"epsilon": 1.0, "margin": math.inf}, "margin must be finite, got inf"),
        ("svt_lazy_zcdp", {"epsilon": 1.0, "delta": 1.5}, r"delta must be in \(0, 1\), got 1.5"),
        ("svt_lazy", {"epsilon": 1.0, "best_loss": -1.0}, "best_loss must be >= 0, got -1.0"),
        ("svt_lazy", {"epsilon": 1.0, "failure_prob": 1.0}, r"failure_prob must be in \(0, 1\), got 1.0"),
        ("svt_lazy", {"epsilon": 1.0, "max_switches": 0}, "max_switches must be an integer >= 1, got 0"),
        ("svt_lazy", {"epsilon": 1.0, "threshold": math.nan}, "threshold must be finite, got nan"),
    ],
)
def test_value_errors(name, values, message):
    learner, given = MAKERS[name]()
    values = {key: value for key, value in given.items() if key == "delta"} | values
    for function in (learner.params, learner.guarantee):
        with pytest.raises(ValueError, match=message):
            function(**values)
