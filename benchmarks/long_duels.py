"""Elimination by effective Borda scores over a long horizon, by blocks: time, elimination times, regret and Theorem 1.

Run as `python benchmarks/long_duels.py HORIZON LANES [tight|paper]`; 100000000 64 is what it is for, and takes a while.
"""

import math
import sys
import time
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import jaxdp
from benchmarks.timing import machine
from jaxdp.mechanisms.continual_counting import best_arity
from jaxdp.preferences import preference_gaps

ARMS, EPSILON = 8, 1.0


def main(horizon, lanes, constants="tight"):
    print(machine())
    # With the paper's constants the radius is far above any tree's noise: wide trees have longer blocks.
    arity = best_arity(horizon + ARMS)
    learner = jaxdp.dueling.ebs_elimination(num_arms=ARMS, horizon=horizon, constants=constants, arity=arity)
    duels = jaxdp.dueling.utility_duels(np.linspace(1, 0, ARMS))
    looks = np.unique(np.geomspace(100, horizon, 200).astype(int)).tolist()
    record = {"active": lambda public, _: public.active}
    run = jaxdp.simulator(learner, duels, horizon, checkpoints=looks, record=record, engine="blocks")
    params, keys = run.params(epsilon=EPSILON), jax.random.split(jaxdp.random.key(0), lanes)
    start = time.perf_counter()
    compiled = jax.jit(jax.vmap(run, (0, None))).lower(keys, params).compile()
    middle = time.perf_counter()
    outputs = jax.device_get(compiled(keys, params))
    seconds = time.perf_counter() - middle
    print(f"{constants}, horizon {horizon}, {lanes} lanes: {seconds:.1f} s, compiled in {middle - start:.1f} s")
    times = np.asarray([*looks, np.inf])[outputs["active"].sum(1)]  # [lanes, arms] the look that finds an arm dropped
    print("median round by which each arm is dropped:", np.median(times, axis=0))
    print("median round by which one arm is left:", np.median(np.sort(times, axis=1)[:, -2]))
    print("the best arm stayed in", outputs["active"][:, -1, 0].mean(), "of the lanes")
    gaps = preference_gaps(np.asarray(params["environment"].preferences, np.float64))[1:]
    events = math.log(ARMS * horizon)
    bound = np.sum(16 * events / gaps + 128 * events * math.log(horizon) ** 2.5 / EPSILON)
    print(f"strong regret {outputs['strong_regret'][:, -1].mean():.0f}, Theorem 1 as printed {bound:.3g}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
