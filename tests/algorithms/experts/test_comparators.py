"""Comparators are the best of all sequences, and stay exact after a million rounds of float32."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.experts import adaptive_losses, loss_sequence, shifting_losses, stochastic_losses
from jaxdp.experts._comparators import Comparison, add_rounds, init_comparison, metrics
from jaxdp.numerics import compensated

KEY = partial(jax.random.key, 52)
is_wide = jax.dtypes.canonicalize_dtype(float) == np.float64
TOLERANCE = 1e-12 if is_wide else 1e-5


def best_by_enumeration(losses, num_switches):
    """Returns the smallest loss of all num_experts^rounds sequences that switch at most so often."""
    rounds, experts = losses.shape
    sequences = np.array(list(itertools.product(range(experts), repeat=rounds)))
    allowed = (np.diff(sequences, axis=1) != 0).sum(1) <= num_switches
    return losses[np.arange(rounds), sequences[allowed]].sum(1).min()


def best_by_numpy(losses, num_switches):
    """Returns the same by dynamic programming, in float64."""
    best = np.zeros((num_switches + 1, losses.shape[1]))
    for row in losses.astype(np.float64):
        best[1:] = np.minimum(best[1:], best[:-1].min(1, keepdims=True))
        best += row
    return best[0].min(), best[-1].min()


def shown_by(losses, mine, num_switches, start=None):
    """Returns the metrics after all rounds."""
    losses, mine = (jnp.asarray(x, jax.dtypes.canonicalize_dtype(float)) for x in (losses, mine))
    start = init_comparison(losses.shape[1], num_switches) if start is None else start
    last = jax.tree.map(lambda leaf: leaf[-1], jax.jit(add_rounds)(start, losses, mine))
    return metrics(last, is_switching=True)


@pytest.mark.parametrize("num_switches", range(4))
@pytest.mark.parametrize("experts", [2, 3])
@pytest.mark.parametrize("rounds", [1, 4, 6])
def test_the_best_of_all_sequences(rounds, experts, num_switches):
    for losses in (
        np.random.default_rng(rounds).uniform(size=(rounds, experts)),
        np.random.default_rng(experts).integers(0, 2, (rounds, experts)).astype(float),
    ):
        found = shown_by(losses, losses[:, 0], num_switches)
        mine = losses[:, 0].sum()
        for name, best in (
            ("regret", best_by_enumeration(losses, 0)),
            ("dynamic_regret", best_by_enumeration(losses, num_switches)),
        ):
            assert found[name] == pytest.approx(mine - best, abs=TOLERANCE)
        assert found["best_loss"] == pytest.approx(losses.sum(0).min(), abs=TOLERANCE)


def test_one_switch_more_is_another_comparator():
    losses = np.array([[0, 1, 1], [0, 1, 1], [1, 0, 1], [1, 0, 1], [1, 1, 0], [0, 1, 1]], float)
    found = [shown_by(losses, losses[:, 0], switches)["dynamic_regret"].item() for switches in range(4)]
    best = [best_by_enumeration(losses, switches) for switches in range(4)]
    assert best == [3, 2, 1, 0]
    assert found == pytest.approx([3 - loss for loss in best])


@pytest.mark.skipif(is_wide, reason="of float32")
def test_large_sums_are_compensated():
    """Starts as after a million rounds: a float32 near 500,000 is a multiple of 1/32, and losses are not."""
    rounds, experts, switches, before = 3000, 5, 3, 500_000.0
    losses = np.random.default_rng(7).uniform(size=(rounds, experts)).astype(np.float32)
    losses[:1500, 0] *= 0.5
    losses[1500:, 1] *= 0.5
    fresh = init_comparison(experts, switches)
    start = jax.tree.map(lambda leaf: leaf, fresh)._replace(
        best=compensated.Sum(fresh.best.total + before, fresh.best.excess),
        loss=compensated.Sum(fresh.loss.total + before, fresh.loss.excess),
    )
    found = shown_by(losses, losses[:, 2], switches, start)
    mine = losses[:, 2].sum(dtype=np.float64)
    fixed, sequence = best_by_numpy(losses, switches)
    assert found["regret"] == pytest.approx(mine - fixed, abs=1e-3)
    assert found["dynamic_regret"] == pytest.approx(mine - sequence, abs=1e-3)

    def forgets(comparison: Comparison, shown):
        """Adds in plain float32."""
        kept = add_rounds(comparison, shown[0][None], shown[1][None])
        total = jax.tree.map(lambda leaf: leaf[0], kept)
        return Comparison(*(compensated.Sum(s.total, jnp.zeros_like(s.excess)) for s in total)), None

    plain = jax.jit(lambda start, shown: jax.lax.scan(forgets, start, shown)[0])(start, (losses, losses[:, 2]))
    assert abs(metrics(plain, is_switching=True)["dynamic_regret"] - (mine - sequence)) > 0.1


def test_a_million_rounds():
    rounds, experts, switches = 10**6, 5, 3
    losses = np.random.default_rng(8).uniform(size=(rounds, experts)).astype(np.float32)
    found = shown_by(losses, losses[:, 2], switches)
    mine = losses[:, 2].sum(dtype=np.float64)
    fixed, sequence = best_by_numpy(losses, switches)
    assert found["regret"] == pytest.approx(mine - fixed, abs=0.01)
    assert found["dynamic_regret"] == pytest.approx(mine - sequence, abs=0.01)


ENVIRONMENTS = {
    "stochastic": lambda s: stochastic_losses([0.2, 0.5, 0.6], num_switches=s),
    "sequence": lambda s: loss_sequence(np.random.default_rng(1).uniform(size=(6, 3)), num_switches=s),
    "adaptive": lambda s: adaptive_losses([0.2, 0.5, 0.6], penalty=0.3, num_switches=s),
    "shifting": lambda s: shifting_losses(num_experts=3, horizon=6, num_shifts=2, num_switches=s),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_environment_compares_with_what_it_showed(name):
    environment = ENVIRONMENTS[name](2)
    params = environment.params()
    world, losses, feedback = environment.init(KEY(), params), [], jax.jit(environment.feedback)
    actions = [0, 2, 1, 1, 2, 0]
    for round_, action in enumerate(actions):
        world, shown, _ = feedback(jax.random.fold_in(KEY(), round_), params, world, jnp.int32(action))
        losses.append(np.asarray(shown, float))
    assert environment.hindsight
    found, losses = environment.hindsight(params, world), np.array(losses)
    mine = losses[np.arange(6), actions].sum()
    assert found["regret"] == pytest.approx(mine - losses.sum(0).min(), abs=1e-5)
    assert found["dynamic_regret"] == pytest.approx(mine - best_by_enumeration(losses, 2), abs=1e-5)
    assert found["best_sequence_loss"] == pytest.approx(best_by_enumeration(losses, 2), abs=1e-5)


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("switches", [-1, 1.5, math.nan, True])
def test_bad_numbers_of_switches(name, switches):
    with pytest.raises(ValueError, match=rf"num_switches must be an integer >= 0, got {switches}"):
        ENVIRONMENTS[name](switches)


@pytest.mark.parametrize("name", ["sequence", "shifting"])
def test_fewer_switches_than_rounds(name):
    ENVIRONMENTS[name](5)
    with pytest.raises(ValueError, match="num_switches must be < horizon = 6, got 6"):
        ENVIRONMENTS[name](6)


@pytest.mark.parametrize("name", ["stochastic", "shifting"])
def test_no_comparator_without_switches(name):
    assert ENVIRONMENTS[name](None).hindsight is None
