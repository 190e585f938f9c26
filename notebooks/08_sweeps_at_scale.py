# %% [markdown]
# # Sweeps at scale
#
# A store survives crashes and kills; the same call goes on, with the same bits. Shares of one store are computed by a
# job array, chunks by any executor. On a GPU nothing changes but the seconds.

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
#
# This sweep is a script of its own, so that it can be killed as a job is: here once half of the lanes are done.
# Chunks of 256 lanes are written as they come.

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
    return jaxdp.simulator(learner, bandit, horizon={horizon}, checkpoints=jaxdp.log_spaced(8))

def sweep(**scheduling):
    return jaxdp.sweep(build, axes={{"epsilon": [0.01, 0.1, float("inf")]}}, num_seeds={num_seeds},
                       key=jax.random.key(0), **scheduling)

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
print("ended with", ended.returncode, "and", int(half.computed.sum()), "of", half.computed.size, "lanes in the store")
assert ended.returncode == -signal.SIGKILL

# %% [markdown]
# ## Inspect it
#
# `jaxdp.open` reads a store while it grows, with NaN where lanes are missing.

# %%
print(
    subprocess.run([sys.executable, "-m", "jaxdp", "inspect", store], capture_output=True, text=True, check=True).stdout
)

# %% [markdown]
# ## Go on
#
# The same call computes what is missing. It equals a sweep that was never interrupted, bit for bit.

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
#
# Two processes, as two tasks of a job array would be, each with its share of one store. Under SLURM and in Kubernetes
# indexed jobs `process_index="auto"` finds which one it is.

# %%
shared = folder / "shared.zarr"
one_share = (
    "import sys; sys.path.insert(0, sys.argv[1]); import ranking; ranking.sweep(store=sys.argv[2], chunk_size=256, \
process_index=int(sys.argv[3]), num_processes=2)"
)
tasks = [subprocess.Popen([sys.executable, "-c", one_share, folder, shared, str(task)]) for task in range(2)]
assert [task.wait() for task in tasks] == [0, 0]
both = jaxdp.open(shared)
print("complete:", "computed" not in both)  # a store that is whole needs no such variable
assert np.array_equal(both.pseudo_regret.values, unbroken.pseudo_regret.values)

# %% [markdown]
# ## A GPU
#
# The same call, on the first GPU where there is one.

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
# ## What it found
#
# Without privacy the answer is known: the best arm is committed to if its Bin(250, 0.6) wins exceed seven times
# Bin(250, 0.5), and the regret is 0.1 for every round in which another arm is played. That mean lies within the
# simulation's interval.

# %%
jaxdp.plotting.curves(results.pseudo_regret, x="round", hue="epsilon")

# %%
from scipy.stats import binom

wins = np.arange(251)
found = float(
    (binom.pmf(wins, 250, 0.6) * binom.cdf(wins - 1, 250, 0.5) ** 7).sum()
)  # the best arm is the last: ties lose
expected = 0.1 * (2_000 * 7 / 8 + (1 - found) * (horizon - 2_000))
regret = results.pseudo_regret.isel(round=-1).sel(epsilon=float("inf"))
interval = jaxdp.stats.mean_interval(regret, confidence=0.999)
print(f"expected {expected:.1f}, found {interval.low.item():.1f} to {interval.high.item():.1f}")
assert interval.low < expected < interval.high

# %% [markdown]
# ## Claims, versions, seconds
#
# What not to conclude: that stores are alike on all machines. A store of another model of processor, other flags or
# versions is refused, since last bits may differ.

# %%
jaxdp.claims(results)

# %%
import shutil

shutil.rmtree(folder)
print(f"jaxdp {jaxdp.__version__}, jax {jax.__version__}, {os.cpu_count()} cores, {time.perf_counter() - start:.0f} s")
