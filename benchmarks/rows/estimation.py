"""Rows of estimators on data sets of DP-Reward, section 6, one for each seed."""

from functools import partial

import jax
import numpy as np

import jaxdp
from benchmarks.measure import Case, Work
from benchmarks.peers import logistic_mle, numba_sgd
from benchmarks.programs import compile_tiles
from benchmarks.row import Row, check_agreement
from jaxdp.estimation import mle, sgd_rr
from jaxdp.preferences import gaussian_comparisons

EPSILON, LEARNING_RATE = 1.0, 0.1
LARGEST_GAP = 0.01  # between exact estimates of float32 and of scikit-learn


def data_sets(seeds, samples, dim):
    keys = jax.random.split(jaxdp.random.key(0), seeds)
    draw = jax.vmap(lambda key: gaussian_comparisons(key, num_samples=samples, dim=dim))
    return jax.block_until_ready(jax.jit(draw)(keys))


def exact(seeds, samples, dim, tile):
    data, estimator = data_sets(seeds, samples, dim), mle()
    params, keys = estimator.params(), jax.random.split(jaxdp.random.key(1), seeds)

    def fit(keys, features, labels):
        return jax.vmap(lambda k, x, y: estimator.fit(k, params, x, y).theta)(keys, features, labels)

    ours, compiling = compile_tiles(fit, (keys, data.features, data.labels), tile)
    features, labels = np.asarray(data.features, np.float64), np.asarray(data.labels)
    peers = {
        "scikit-learn newton-cholesky": partial(logistic_mle.scikit_learn, features, labels, "newton-cholesky"),
        "scikit-learn lbfgs": partial(logistic_mle.scikit_learn, features, labels, "lbfgs"),
        "SciPy L-BFGS-B": partial(logistic_mle.scipy_lbfgs, features, labels),
    }

    def check():
        gap = np.abs(np.concatenate(ours()) - peers["scikit-learn newton-cholesky"]()).max()
        if not gap <= LARGEST_GAP:
            raise AssertionError(f"estimates must be scikit-learn's up to {LARGEST_GAP}, got a difference of {gap}")

    works = {"jaxdp": Work(ours, seeds, compiling=compiling)}
    works |= {name: Work(peer, seeds) for name, peer in peers.items()}  # by wall time, for any cores they use
    return Case(works=works, size=f"{seeds:,} x {samples:,}", unit="data set", check=check)


def descent(seeds, samples, dim, tile):
    data, estimator = data_sets(seeds, samples, dim), sgd_rr()
    params = estimator.params(epsilon=EPSILON, learning_rate=LEARNING_RATE, radius=2.0)
    keys = jax.random.split(jaxdp.random.key(1), seeds)

    def fit(keys, features, labels):
        def lane(key, x, y):
            key_privatize, key_fit = jax.random.split(key)
            return estimator.fit(key_fit, params, x, estimator.privatize(key_privatize, params, x, y)).theta

        return jax.vmap(lane)(keys, features, labels)

    ours, compiling = compile_tiles(fit, (keys, data.features, data.labels), tile)
    features, labels = np.asarray(data.features), np.asarray(data.labels)
    radius, estimates = np.full(seeds, 2.0, np.float32), np.zeros((seeds, dim), np.float32)

    def peer():
        numba_sgd.sgd_rr(features, labels, EPSILON, LEARNING_RATE, radius, estimates)

    def check():
        truth = np.asarray(data.parameter)
        errors = [np.linalg.norm(each - truth, axis=1) for each in (np.concatenate(ours()), estimates)]
        check_agreement("the l2 errors of sgd_rr and of Numba", *errors)

    works = {"jaxdp": Work(ours, seeds * samples, compiling=compiling), "Numba": Work(peer, seeds * samples)}
    return Case(works=works, size=f"{seeds:,} x {samples:,}", unit="update", check=check)


ROWS = [
    Row(
        name="mle",
        make=exact,
        size={"seeds": 1000, "samples": 1000, "dim": 5, "tile": 25},
        quick={"seeds": 8, "samples": 200, "tile": 4},
    ),
    Row(
        name="sgd_rr",
        make=descent,
        size={"seeds": 1000, "samples": 10_000, "dim": 5, "tile": 500},
        quick={"seeds": 8, "samples": 200, "tile": 4},
    ),
]
