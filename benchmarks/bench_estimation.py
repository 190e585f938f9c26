"""Reward estimation against strong peers, on the same cores in one run; compile time apart.

Run as `python benchmarks/bench_estimation.py`.
"""

import sys
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import jaxdp
from benchmarks.peers import logistic_mle, numba_sgd
from benchmarks.timing import interleaved, machine, tiled
from jaxdp.estimation import mle, sgd_rr
from jaxdp.preferences import gaussian_comparisons

SEEDS, DIM = 1000, 5
MLE_SAMPLES, MLE_TILE = 1000, 25
SGD_SAMPLES, SGD_TILE = 10_000, 500
EPSILON, LEARNING_RATE = 1.0, 0.1


def problems(num_samples):
    """1000 data sets of DP-Reward, section 6."""
    keys = jax.random.split(jaxdp.random.key(0), SEEDS)
    draw = jax.vmap(lambda key: gaussian_comparisons(key, num_samples=num_samples, dim=DIM))
    return jax.block_until_ready(jax.jit(draw)(keys))


def bench_mle():
    data = problems(MLE_SAMPLES)
    estimator = mle()
    params = estimator.params()
    keys = jax.random.split(jaxdp.random.key(1), SEEDS)

    def fit(keys, features, labels):
        return jax.vmap(lambda k, x, y: estimator.fit(k, params, x, y))(keys, features, labels)

    ours, compile_seconds = tiled(fit, (keys, data.features, data.labels), MLE_TILE)
    features, labels = np.asarray(data.features, np.float64), np.asarray(data.labels)
    peers = {
        "scikit-learn lbfgs": lambda: logistic_mle.scikit_learn(features, labels, "lbfgs"),
        "scikit-learn newton-cholesky": lambda: logistic_mle.scikit_learn(features, labels, "newton-cholesky"),
        "SciPy L-BFGS-B": lambda: logistic_mle.scipy_lbfgs(features, labels),
    }
    theta = np.concatenate([tile.theta for tile in ours()])
    gap = np.abs(theta - peers["scikit-learn newton-cholesky"]()).max()
    print(f"exact MLE, {SEEDS} seeds, n={MLE_SAMPLES}, d={DIM}; largest difference from scikit-learn {gap:.1e}")
    seconds = interleaved(3, {"jaxdp mle": ours, **peers})
    for name, value in seconds.items():
        print(f"  {name:<30}{value:8.3f} s   {value / seconds['jaxdp mle']:6.1f}x")
    print(f"  compilation of jaxdp mle      {compile_seconds:8.3f} s")


def bench_sgd():
    data = problems(SGD_SAMPLES)
    estimator = sgd_rr()
    params = estimator.params(epsilon=EPSILON, learning_rate=LEARNING_RATE, radius=2.0)
    keys = jax.random.split(jaxdp.random.key(1), SEEDS)

    def fit(keys, features, labels):
        def lane(key, x, y):
            key_privatize, key_fit = jax.random.split(key)
            return estimator.fit(key_fit, params, x, estimator.privatize(key_privatize, params, x, y)).theta

        return jax.vmap(lane)(keys, features, labels)

    ours, compile_seconds = tiled(fit, (keys, data.features, data.labels), SGD_TILE)
    features, labels = np.asarray(data.features), np.asarray(data.labels)
    radius, estimates = np.full(SEEDS, 2.0, np.float32), np.zeros((SEEDS, DIM), np.float32)

    def peer():
        numba_sgd.sgd_rr(features, labels, EPSILON, LEARNING_RATE, radius, estimates)

    peer()
    truth = np.asarray(data.parameter)
    errors = [np.linalg.norm(e - truth, axis=1) for e in (np.asarray(jnp.concatenate(ours())), estimates)]
    print(f"sgd_rr, {SEEDS} seeds, n={SGD_SAMPLES}, d={DIM}; l2 errors {errors[0].mean():.3f}, {errors[1].mean():.3f}")
    seconds = interleaved(5, {"jaxdp sgd_rr": ours, "Numba, fastmath float32, parallel": peer})
    for name, value in seconds.items():
        per_update = value * 1e9 / (SEEDS * SGD_SAMPLES)
        print(f"  {name:<36}{value:8.3f} s   {per_update:6.2f} ns an update   {value / seconds['jaxdp sgd_rr']:5.2f}x")
    print(f"  compilation of jaxdp sgd_rr         {compile_seconds:8.3f} s")


if __name__ == "__main__":
    warnings.filterwarnings("ignore", module="sklearn")
    print(machine())
    bench_mle()
    bench_sgd()
