"""Measures fits of one reward head on many pairs with large embeddings: processor time and peak memory, by process.

    python -m benchmarks.large_pairs --samples 100000 --dim 4096
    python -m benchmarks.large_pairs --samples 100000 --dim 256 --only mle scikit-learn

Features are float16 in a memory-mapped .npy, with spectrum 1/j. Each fit runs in a process of its own; peak memory is
the largest resident memory of this process, mapped pages included. scikit-learn (lbfgs) fits the features as float32,
without privacy and without a ridge, as `mle` does.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

BLOCK = 4096
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def fits():
    """Returns the measured estimators and their values, by name."""
    from jaxdp.estimation import debiased_rr, mle, objective_perturbation

    table = {"mle": (mle(), {}), "debiased_rr": (debiased_rr(), {"epsilon": 1.0, "radius": 10.0})}
    for geometry in ("isotropic", "whitened"):
        ridge = {"regularization": 1000.0} if geometry == "isotropic" else {}  # isotropic noise chooses none
        for weights in ("none", "cut"):
            estimator = objective_perturbation(geometry=geometry, weights=weights)
            table[f"objective_perturbation {geometry} {weights}"] = estimator, BUDGET | ridge
    return table


def write_data(folder, samples, dim):
    """Writes features, labels and true margins."""
    random = np.random.default_rng(0)
    scale = np.arange(1, dim + 1) ** -0.5
    theta = random.normal(size=dim)
    theta *= 2 / np.linalg.norm(scale * theta)
    features = np.lib.format.open_memmap(folder / "features.npy", "w+", np.float16, (samples, dim))
    margins = np.empty(samples)
    for start in range(0, samples, BLOCK):
        rows = (random.normal(size=(min(BLOCK, samples - start), dim)) * scale).astype(np.float16)
        features[start : start + BLOCK] = rows
        margins[start : start + BLOCK] = rows.astype(float) @ theta
    features.flush()
    np.save(folder / "labels.npy", (random.random(samples) < 1 / (1 + np.exp(-margins))).astype(np.float32))
    np.save(folder / "margins.npy", margins)


def fit(folder, name):
    """Fits one estimator, and prints how often its margins have the sign of the true ones."""
    features, labels = np.load(folder / "features.npy", mmap_mode="r"), np.load(folder / "labels.npy")
    if name == "scikit-learn":
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-5, max_iter=1000)
        theta = model.fit(np.asarray(features, np.float32), labels).coef_[0]
    else:
        import jax

        from jaxdp.estimation import estimate

        estimator, values = fits()[name]
        result = estimate(estimator, features, labels, key=jax.random.key(1), **values)
        print("converged" if result.converged else "NOT CONVERGED", "in", int(result.steps), end=" steps; ")
        theta = np.asarray(result.theta)
    margins = np.concatenate([features[start : start + BLOCK] @ theta for start in range(0, len(labels), BLOCK)])
    print(f"signs {np.mean((margins > 0) == (np.load(folder / 'margins.npy') > 0)):.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--only", nargs="*", help="names of fits; by default all")
    parser.add_argument("--fit", nargs=2, metavar=("FOLDER", "NAME"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        return fit(Path(options.fit[0]), options.fit[1])
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder), options.samples, options.dim)
        print(f"n = {options.samples:,}, d = {options.dim:,}, {os.cpu_count()} cores")
        for name in options.only or [*fits(), "scikit-learn"]:
            start = time.perf_counter()
            command = [sys.executable, "-m", "benchmarks.large_pairs", "--fit", folder, name]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                text = process.stdout.read().strip()
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            print(
                f"{name:40} {usage.ru_utime + usage.ru_stime:6.0f} s of processor {time.perf_counter() - start:6.0f} s "
                f"of wall time {usage.ru_maxrss / 2**20:5.2f} GiB, load {os.getloadavg()[0]:.1f}: "
                f"{text or f'exit status {process.returncode}'}",
                flush=True,
            )


if __name__ == "__main__":
    main()
