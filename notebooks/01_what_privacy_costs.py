# %% [markdown]
# # What privacy costs
#
# A bandit algorithm with a privacy claim, played thousands of times at several privacy budgets ε, and what it loses.

# %%
import time

import jax

import jaxdp

start = time.perf_counter()

# %% tags=["parameters"] small={"num_seeds": 100}
num_seeds = 1000
epsilons = [1e-6, 0.01, 0.03, 0.1, 0.3, float("inf")]

# %% [markdown]
# ## An algorithm and its claim
#
# Explore-then-commit plays every arm in turn, adds Laplace noise to the totals of rewards, and commits to the best.
# An algorithm is a NamedTuple of pure functions; a cell shows what it claims, and which values it takes.

# %%
learner = jaxdp.bandits.explore_then_commit(num_arms=4, explore_rounds=2_000)
learner

# %%
claim = learner.guarantee(epsilon=0.01)
print(claim)
claim

# %% [markdown]
# ## A sweep
#
# `build` returns a run: the learner against an environment. `axes` are values of their parameters: all ε, and all
# seeds, share one compiled program. Seed i meets the same world at every ε, so that differences are paired.


# %%
def build():
    bandit = jaxdp.bandits.bernoulli_bandit([0.50, 0.52, 0.54, 0.56])
    return jaxdp.simulator(learner, bandit, horizon=20_000, checkpoints=20)


results = jaxdp.sweep(build, axes={"epsilon": epsilons}, num_seeds=num_seeds, key=jax.random.key(0), progress=True)
results

# %% [markdown]
# ## Regret, with bands
#
# Every seed's value is in the dataset; bands are 95% confidence intervals of the mean (Student's t).

# %%
jaxdp.plotting.curves(results.pseudo_regret, x="round", hue="epsilon", xscale="linear", yscale="linear")

# %%
jaxdp.plotting.cost_of_privacy(results.pseudo_regret.isel(round=-1))

# %% [markdown]
# At ε = 10⁻⁶ noise decides alone, and the arm played is uniform in every round: then the regret of 20,000 rounds is
# 20,000 times the mean gap, 0.03. That number lies within the simulation's interval.

# %%
interval = jaxdp.stats.mean_interval(results.pseudo_regret.isel(round=-1).sel(epsilon=1e-6), confidence=0.999)
print(f"{interval.low.item():.0f} to {interval.high.item():.0f}")
assert interval.low < 20_000 * 0.03 < interval.high

# %% [markdown]
# ## Which ε can I afford?
#
# The smallest ε of the sweep at which the mean regret is shown, with 95% confidence, to be at most 300.

# %%
print(jaxdp.stats.smallest_epsilon(results.pseudo_regret.isel(round=-1), at_most=300))

# %% [markdown]
# ## A thousand million rounds
#
# Between two changes of mind a learner needs no single rewards, only totals, and `engine="counts"` draws these: the
# same distribution, and 10⁹ rounds take no longer than a few thousand.


# %%
def long_build():
    bandit = jaxdp.bandits.bernoulli_bandit([0.50, 0.52, 0.54, 0.56])
    return jaxdp.simulator(learner, bandit, horizon=10**9, checkpoints=jaxdp.log_spaced(16), engine="counts")


long_results = jaxdp.sweep(long_build, axes={"epsilon": epsilons}, num_seeds=num_seeds, key=jax.random.key(1))
jaxdp.plotting.curves(long_results.pseudo_regret, x="round", hue="epsilon")

# %% [markdown]
# ## Claims, versions, seconds
#
# What not to conclude: these are costs on one instance, at one length of exploration that was not tuned for any ε;
# another instance, or exploring longer at small ε, changes them.

# %%
jaxdp.claims(results)

# %%
print(f"jaxdp {jaxdp.__version__}, jax {jax.__version__}, {time.perf_counter() - start:.0f} s")
