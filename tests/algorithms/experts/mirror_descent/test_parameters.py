"""Parameters of mirror descent: rates and their bounds, refused values, and rounding."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.experts import mirror_descent, mirror_descent_parameters
from jaxdp.experts._shares import exact_fixed_share_step, fixed_share_step
from jaxdp.numerics import compensated

DTYPE = jnp.result_type(float)
X64 = bool(jax.config.read("jax_enable_x64"))

VALUES = {"epsilon": 1.0, "delta": 1e-6}
FORMS = {
    "sampling": ({"form": "sampling"}, VALUES),
    "clipped": ({"mixing": "clipped"}, VALUES),
    "gaussian": ({"form": "noisy_losses"}, VALUES),
    "laplace": ({"form": "noisy_losses", "noise": "laplace"}, {"epsilon": 1.0}),
    "intervals": ({"form": "intervals"}, VALUES),
    "paper": ({"constants": "paper"}, {"epsilon": 1.0}),
}


def test_parameters():
    about: dict[str, Any] = {"num_experts": 10, "horizon": 10**6, "num_switches": 5}
    nats = math.log(10) + 5 * math.log(9) + 5 * math.log((10**6 - 1) / 5) + 5
    free = [
        mirror_descent_parameters(epsilon=math.inf, delta=1e-6, **about, form=f) for f in ("sampling", "noisy_losses")
    ]
    for each in free:
        assert each.learning_rate == pytest.approx(math.sqrt(8 * nats / 10**6), rel=1e-4)
        assert each.regret_bound == pytest.approx(math.sqrt(nats * 10**6 / 2), rel=1e-4)
    for form, noise in (("sampling", "gaussian"), ("noisy_losses", "gaussian"), ("noisy_losses", "laplace")):
        bounds = [
            mirror_descent_parameters(epsilon=e, delta=1e-6, **about, form=form, noise=noise).regret_bound
            for e in (0.3, 1, 4, 16, math.inf)
        ]
        assert bounds == sorted(bounds, reverse=True)
    learner = mirror_descent(num_experts=10, horizon=100, num_switches=5, constants="paper")
    assert float(learner.params(epsilon=0.5).learning_rate) == pytest.approx(0.5 * math.sqrt(5 / 100 / math.log(1000)))
    assert np.isfinite(learner.params(epsilon=math.inf).learning_rate)
    assert not learner.guarantee(epsilon=math.inf).is_private


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_experts": 1}, "num_experts must be an integer >= 2, got 1"),
        ({"num_switches": 0}, "num_switches must be an integer >= 1, got 0"),
        ({"num_switches": 10}, "num_switches must be < horizon, got 10 at horizon 10"),
        ({"form": "noise"}, "form must be one of sampling, noisy_losses, intervals, got 'noise'"),
        ({"noise": "laplace"}, "noise must be left out for form='sampling', got 'laplace'"),
        ({"form": "intervals", "mixing": "clipped"}, "mixing must be left out for form='intervals', got 'clipped'"),
        ({"constants": "paper", "mixing": "clipped"}, "mixing must be left out for constants='paper', got 'clipped'"),
        ({"constants": "theirs"}, "constants must be one of corrected, paper, got 'theirs'"),
    ],
)
def test_factory_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        mirror_descent(**{"num_experts": 3, "horizon": 10, "num_switches": 2, **arguments})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be > 0, got 0.0"),
        ({"delta": 0.0}, r"delta must be in \(0, 1\), got 0.0"),
        ({"learning_rate": 0.0}, "learning_rate must be > 0, got 0.0"),
        ({"learning_rate": math.nan}, "learning_rate must be > 0, got nan"),
        ({"learning_rate": 50.0}, "learning_rate must be <= 0.1.*, which epsilon pays for, got 50.0"),
    ],
)
def test_value_errors(values, message):
    learner = mirror_descent(num_experts=3, horizon=10, num_switches=2)
    for function in (learner.params, learner.guarantee):
        with pytest.raises(ValueError, match=message):
            function(**{**VALUES, **values})


@pytest.mark.parametrize("horizon", [2**49 - 1, 2**49, 2**63 - 1])
def test_intervals_have_a_rate_for_each_level(horizon):
    with jax.enable_x64(True):
        learner = mirror_descent(num_experts=2, horizon=horizon, num_switches=1, form="intervals")
        assert len(learner.params(**VALUES).interval_rates) == horizon.bit_length()


def drift(step, start):
    """Returns the largest range of ln(w / w') over many rounds, over the range in the one round with different
    losses.
    """
    num_experts, rate, switch_rate = 1000, jnp.asarray(5e-6, DTYPE), jnp.asarray(1e-6, DTYPE)
    first = (jnp.arange(num_experts) < num_experts // 2).astype(DTYPE)

    def both(carry, round):
        loss = jax.random.bernoulli(jax.random.fold_in(jax.random.key(0), round), shape=(num_experts,)).astype(DTYPE)
        carry = tuple(step(shares, rate * loss, switch_rate) for shares in carry)
        left, right = (shares if isinstance(shares, jax.Array) else shares.total - shares.excess for shares in carry)
        apart = jnp.log(left) - jnp.log(right)
        return carry, jnp.max(apart) - jnp.min(apart)

    carry = tuple(step(start, rate * loss, switch_rate) for loss in (first, 1 - first))
    return float(jnp.max(jax.jit(lambda: jax.lax.scan(both, carry, jnp.arange(10_000))[1])()) / (2 * rate))


@pytest.mark.skipif(X64, reason="64-bit floats round too little to be seen")
def test_rounding_does_not_widen_what_draws_may_differ_by():
    """Checks learning rates of long horizons, many rounds later; shares that are rounded every round fail."""
    even = jnp.full(1000, 1e-3, DTYPE)
    assert drift(exact_fixed_share_step, compensated.add(compensated.zero(even), even)) < 1.2  # with logarithms 0.1
    assert drift(fixed_share_step, even) > 3  # planted


def test_an_exact_step_is_a_step():
    shares = jnp.asarray([0.2, 0.5, 0.3], DTYPE)
    for scaled in ([0.1, 0.0, 0.4], [2.0, 5.0, 0.0]):
        scaled = jnp.asarray(scaled, DTYPE)
        rate = jnp.asarray(0.05, DTYPE)
        found = exact_fixed_share_step(compensated.add(compensated.zero(shares), shares), scaled, rate)
        np.testing.assert_allclose(found.total - found.excess, fixed_share_step(shares, scaled, rate), rtol=1e-5)


def test_clipped_sampling_is_refused_where_rounding_would_cost():
    sizes = {"num_experts": 3, "horizon": 10**6, "num_switches": 2, "mixing": "clipped"}
    if X64:
        mirror_descent(**sizes)
    else:
        with pytest.raises(ValueError, match="horizon must be <= 100000 for clipped sampling in 32-bit floats"):
            mirror_descent(**sizes)


@pytest.mark.parametrize("epsilon", [0.3, 30.0])
def test_the_rate_of_laplace_noise_minimises_its_bound(epsilon):
    """Compares with a grid of rates up to the largest one with a finite generating function."""
    best = mirror_descent_parameters(
        epsilon=epsilon, num_experts=10, horizon=10**6, num_switches=5, form="noisy_losses", noise="laplace"
    )
    nats = math.log(10) + 5 * math.log(9) + 5 * math.log((10**6 - 1) / 5) + 5
    scale = 10 / epsilon
    rates = np.exp(np.linspace(-12, math.log(min(math.sqrt(8 * nats / 10**6), (1 - 1e-9) / scale)), 100_001))
    bounds = nats / rates + 10**6 * (rates / 8 - np.log1p(-((rates * scale) ** 2)) / rates)
    assert best.regret_bound == pytest.approx(bounds.min(), rel=1e-6)
    assert best.learning_rate == pytest.approx(rates[bounds.argmin()], rel=1e-2)
