"""Weights on counted losses over long horizons: regret beside the proved bound, beside other settings, and against T.

Run as `python benchmarks/long_experts.py static|switching|exponent [HORIZON ...]`; each prints its lines, and all three
take about half an hour on two cores. The horizons are those to be run; by default all.
"""

import math
import sys
import time
from pathlib import Path

import jax
import numpy as np
import xarray as xr

sys.path.insert(0, str(Path(__file__).parents[1]))

import jaxdp
from benchmarks.measure import machine
from jaxdp import experts
from jaxdp.experts import classes
from jaxdp.stats import power_law

DELTA = 1e-6
SWITCHES = 5
HORIZONS = (10**4, 10**5, 10**6)
# num_experts, horizon, gap, epsilon, the regret that another program of the same definition had
SWITCHING = (
    (10, 10**5, 0.2, 4.0, 900),
    (10, 10**5, 0.2, 1.0, 2789),
    (10, 10**6, 0.1, 1.0, 3851),
    (10, 10**6, 0.2, 0.2, 16059),
    (100, 10**5, 0.2, 1.0, 10266),
)
TILE = 32


def swept(learner, environment, horizon, num_seeds, **axes):
    """Returns the outcomes after the last round of a sweep over `axes`, with `num_seeds` seeds."""
    run = jaxdp.simulator(learner, environment, horizon, checkpoints=[horizon])
    axes = {**axes, "delta": [DELTA]}
    found = jaxdp.sweep(run, axes=axes, num_seeds=num_seeds, key=jax.random.key(0), tile_size=TILE)
    return found.isel(round=-1, delta=0)


def with_error(values):
    """Returns the mean over seeds, and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.sizes["seed"]))


def static(horizons=HORIZONS, num_seeds=64):
    """Measures regret against the best expert in hindsight; one expert is better by as much as its bound is a round."""
    for horizon in horizons:
        for num_experts in (2, 10, 100):
            about = {"num_experts": num_experts, "horizon": horizon}
            learner = experts.counter_weights(**about)
            for epsilon in (0.2, 1.0, 4.0):
                bound = experts.counter_weights_parameters(epsilon=epsilon, delta=DELTA, **about).regret_bound
                means = np.where(np.arange(num_experts) == 0, 0.5 - min(0.5, bound / horizon), 0.5)
                environment = experts.stochastic_losses(means, num_switches=0)
                found = swept(learner, environment, horizon, num_seeds, epsilon=[epsilon])
                mean, error = with_error(found.regret.isel(epsilon=0))
                verdict = "below" if mean + 3 * error < bound else "NOT below"
                print(
                    f"N {num_experts:>3}, T {horizon:>7}, epsilon {epsilon:>3}: {mean:.0f} +- {error:.0f}, with 3 "
                    f"standard errors {verdict} {bound:.0f}",
                    flush=True,
                )


def tracking(num_experts, horizon, gap):
    """Returns a learner over switching sequences, and losses that shift as often as these may switch."""
    sequences = classes.markov(switch_rate=SWITCHES / horizon)
    about = {"num_experts": num_experts, "horizon": horizon}
    learner = experts.counter_weights(**about, sequences=sequences, num_switches=SWITCHES)
    return learner, experts.shifting_losses(**about, num_shifts=SWITCHES, gap=gap)


def switching(horizons=HORIZONS, num_seeds=32):
    """Measures regret against the planted sequence."""
    for num_experts, horizon, gap, epsilon, known in SWITCHING:
        if horizon in horizons:
            found = swept(*tracking(num_experts, horizon, gap), horizon, num_seeds, epsilon=[epsilon])
            mean, error = with_error(found.pseudo_regret.isel(epsilon=0))
            print(
                f"N {num_experts:>3}, T {horizon:>7}, gap {gap}, epsilon {epsilon:>3}: {mean:.0f} +- {error:.0f}, "
                f"{mean / known:.3f} of {known}",
                flush=True,
            )


def exponent(horizons=(10**5, 10**6, 10**7), num_seeds=32):
    """Measures the cost of privacy at epsilon 1, seed by seed, and the exponent of T in it."""
    costs = []
    for horizon in horizons:
        start = time.perf_counter()
        found = swept(*tracking(10, horizon, 0.2), horizon, num_seeds, epsilon=[1.0, math.inf]).pseudo_regret
        private, free = (with_error(found.sel(epsilon=epsilon)) for epsilon in (1.0, math.inf))
        costs.append(found.sel(epsilon=1.0, drop=True) - found.sel(epsilon=math.inf, drop=True))
        seconds = time.perf_counter() - start
        print(
            f"T {horizon:>8}: private {private[0]:.0f} +- {private[1]:.0f}, without {free[0]:.0f} +- {free[1]:.0f}, "
            "cost {:.0f} +- {:.0f}".format(*with_error(costs[-1]))
            + f"; {seconds:.0f} s",
            flush=True,
        )
    if len(horizons) > 1:
        fit = power_law(xr.concat(costs, "horizon").assign_coords(horizon=list(horizons)), "horizon")
        print(f"exponent {float(fit.exponent):.3f}, from {float(fit.low):.3f} to {float(fit.high):.3f} (95%)")


if __name__ == "__main__":
    print(machine())
    {"static": static, "switching": switching, "exponent": exponent}[sys.argv[1]](
        *([tuple(map(int, sys.argv[2:]))] if sys.argv[2:] else [])
    )
