"""Elimination by effective Borda scores over a long horizon, by blocks: time, elimination times, regret and Theorem 1.

Run as `python benchmarks/long_duels.py HORIZON LANES [tight|paper]`; it is meant for 100000000 64, and takes a while.
"""

import os
import sys
import time
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import jaxdp
from benchmarks.measure import machine
from jaxdp.mechanisms.continual_counting import best_arity
from jaxdp.preferences import preference_gaps
from jaxdp.simulation.store.chunks import chunks
from jaxdp.simulation.sweeps.lanes import Program
from jaxdp.simulation.sweeps.schedule import Lanes, Runner

ARMS, EPSILON = 8, 1.0


def main(horizon, lanes, constants="tight"):
    print(machine())
    # With the paper's constants the radius is far above any tree's noise: wide trees have longer blocks.
    arity = best_arity(horizon + ARMS)
    learner = jaxdp.dueling.ebs_elimination(num_arms=ARMS, horizon=horizon, constants=constants, arity=arity)
    duels = jaxdp.dueling.utility_duels(np.linspace(1, 0, ARMS))
    looks = np.unique(np.geomspace(100, horizon, 200).astype(int)).tolist()
    record = {"active": lambda snapshot: snapshot.public.active}
    one = ["pseudo_regret"]
    run = jaxdp.simulator(learner, duels, horizon, checkpoints=looks, record=record, engine="blocks", outcomes=one)
    params = run.params(epsilon=EPSILON)
    tile = -(-lanes // (os.cpu_count() or 1))
    start = time.perf_counter()
    compiled = Program(run, jax.random.key(0), [params], tile, jax.devices()[:1]).compile()
    middle = time.perf_counter()
    ((_, outputs),) = Runner(compiled, Lanes(lanes, lanes)).chunks(
        chunks((), (lanes,), (lanes,)), advance=lambda count: None
    )
    seconds = time.perf_counter() - middle
    print(f"{constants}, horizon {horizon}, {lanes} lanes: {seconds:.1f} s, compiled in {middle - start:.1f} s")
    times = np.asarray([*looks, np.inf])[outputs["active"].sum(1)]  # [lanes, arms] the look that finds an arm dropped
    print("median round by which each arm is dropped:", np.median(times, axis=0))
    print("median round by which one arm is left:", np.median(np.sort(times, axis=1)[:, -2]))
    print("the best arm stayed in", outputs["active"][:, -1, 0].mean(), "of the lanes")
    gaps = preference_gaps(np.asarray(params["environment"].preferences, np.float64))[1:]
    bound = jaxdp.theory.dueling.regret_upper(EPSILON, horizon, gaps)
    print(f"utility regret {outputs['pseudo_regret'][:, -1].mean():.0f}, Theorem 1, constants as printed: {bound:.3g}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
