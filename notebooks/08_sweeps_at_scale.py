# %% [markdown]
# # Sweeps at scale
# **Result:** a sweep of 6,144 lanes that is killed at half and resumed has the bits of an uninterrupted one, and so has
# a sweep that 2 processes share.
#
# A store survives crashes and kills: the same call resumes the sweep, with the same bits. A job array can compute
# shares of one store, and any executor can compute chunks. On a GPU only the seconds change.

# %%
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import numpy as np

import jaxdp

start = time.perf_counter()

# %% tags=["parameters"] small={"num_seeds": 512, "horizon": 4000}
num_seeds, horizon = 2048, 20_000

# %% [markdown]
# ## A script that is killed
# This sweep runs as a separate script, so that it can be killed like a job, here when half of the lanes are done.
# Chunks of 256 lanes are written when they are finished.

# %%
folder = Path(tempfile.mkdtemp(prefix="jaxdp-"))
store = folder / "ranking.zarr"
script = folder / "ranking.py"
text = f"""
import os, signal, sys
import jax, jaxdp

def build():
    learner = jaxdp.bandits.explore_then_commit(num_arms=8, explore_rounds=2_000)
    bandit = jaxdp.bandits.bernoulli_bandit([0.5] * 7 + [0.6])
    looks = jaxdp.log_spaced(8)
    return jaxdp.simulator(learner, bandit, horizon={horizon}, checkpoints=looks)

def sweep(**scheduling):
    axes = {{"epsilon": [0.01, 0.1, float("inf")]}}
    key = jax.random.key(0)
    return jaxdp.sweep(build, axes=axes, num_seeds={num_seeds}, key=key, **scheduling)

def killed(now):
    if now.lanes > now.num_lanes / 2:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    jaxdp.cache_compilations()
    sweep(store=sys.argv[1], chunk_size=256, progress=killed)
"""
_ = script.write_text(text)
ended = subprocess.run([sys.executable, script, store])
half = jaxdp.open(store)
lanes = f"{int(half.computed.sum()):,} of {half.computed.size:,} lanes"
print(f"ended with {ended.returncode}; the store has {lanes}")
assert ended.returncode == -signal.SIGKILL

# %% [markdown]
# ## Inspect it
# `jaxdp.open` reads a store while it is written; missing lanes are NaN.

# %%
command = [sys.executable, "-m", "jaxdp", "inspect", store]
inspected = subprocess.run(command, capture_output=True, text=True, check=True)
print(inspected.stdout)

# %% [markdown]
# ## Resume it
# The same call computes the missing lanes. The result equals an uninterrupted sweep, bit for bit.

# %%
sys.path.insert(0, str(folder))
import ranking

results = ranking.sweep(store=store, chunk_size=256, progress=True)
unbroken = ranking.sweep()
same = np.array_equal(results.pseudo_regret.values, unbroken.pseudo_regret.values)
print("the same bits as without interruption:", same)
assert same

# %% [markdown]
# ## Shares of a job array
# Two processes, like two tasks of a job array, each compute their share of one store. Under SLURM and in Kubernetes
# indexed jobs, `process_index="auto"` finds the index of the task.

# %%
shared = folder / "shared.zarr"
share = """
import sys
sys.path.insert(0, sys.argv[1])
import ranking
share = {"process_index": int(sys.argv[3]), "num_processes": 2}
ranking.sweep(store=sys.argv[2], chunk_size=256, **share)
"""
tasks = [
    subprocess.Popen([sys.executable, "-c", share, folder, shared, str(task)])
    for task in range(2)
]
assert [task.wait() for task in tasks] == [0, 0]
both = jaxdp.open(shared)
print("complete:", "computed" not in both)  # a complete store has no such variable
assert np.array_equal(both.pseudo_regret.values, unbroken.pseudo_regret.values)

# %% [markdown]
# ## A GPU
# The same call runs on the first GPU, if there is one.

# %%
try:
    gpus = jax.devices("gpu")
except RuntimeError:
    gpus = []
if gpus:
    begin = time.perf_counter()
    on_gpu = ranking.sweep(devices=gpus)
    print(gpus, f"{time.perf_counter() - begin:.1f} s")
else:
    print("no GPU here: skipped")

# %% [markdown]
# ## The result
# Without privacy the expected regret is known: the learner commits to the best arm if its Bin(250, 0.6) wins exceed the
# wins of the seven other arms, Bin(250, 0.5) each, and the regret is 0.1 in every round with another arm. This expected
# regret lies within the simulation's interval.

# %% alt="Mean regret against rounds, a line for each ε: after exploration the line without privacy is the flattest."
jaxdp.plotting.curves(results.pseudo_regret, x="round", hue="epsilon")

# %%
from scipy.stats import binom

wins = np.arange(251)
best, other = binom(250, 0.6), binom(250, 0.5)
# the best arm is the last: ties lose
commits_to_best = float((best.pmf(wins) * other.cdf(wins - 1) ** 7).sum())
expected = 0.1 * (2_000 * 7 / 8 + (1 - commits_to_best) * (horizon - 2_000))
regret = results.pseudo_regret.isel(round=-1).sel(epsilon=float("inf"))
interval = jaxdp.stats.mean_interval(regret, confidence=0.999)
low, high = interval.low.item(), interval.high.item()
print(f"expected {expected:.1f}, simulated {low:.1f} to {high:.1f}")
assert low < expected < high

# %% [markdown]
# ## Claims, versions, seconds

# %%
jaxdp.claims(results)[["epsilon", "claim"]]

# %%
import shutil

shutil.rmtree(folder)
seconds, cores = time.perf_counter() - start, os.cpu_count()
versions = f"jaxdp {jaxdp.__version__}, jax {jax.__version__}"
print(f"{versions}, {cores} cores, {seconds:.0f} s")

# %% [markdown]
# **What not to conclude:** that stores are the same on all machines. A sweep refuses a store that was written with
# another model of processor, other flags or other versions, because the last bits may differ.

# %% [markdown]
# ## References
# * Laplace noise: Dwork & Roth (2014). The algorithmic foundations of differential privacy. [doi:10.1561/0400000042](https://doi.org/10.1561/0400000042)
