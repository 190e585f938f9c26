# %% [markdown]
# # What privacy costs
# **Result:** in 20,000 rounds, explore-then-commit has a regret of about 210 without privacy, 300 at ε = 0.1, and 550
# at ε = 0.01.
#
# This notebook plays a bandit algorithm with a privacy claim thousands of times, at several privacy budgets ε, and
# measures its regret.

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
# Explore-then-commit plays the arms equally often, adds Laplace noise to their total rewards, and then plays the arm
# with the largest noisy total. An algorithm is a NamedTuple of pure functions; the next cells show its values and its
# claim.

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
# `build` returns a run: the learner against an environment. `axes` are the values to sweep: all ε and all seeds share
# one compiled program. Seed i meets the same world at every ε, so differences between two ε are paired.


# %%
def build():
    bandit = jaxdp.bandits.bernoulli_bandit([0.50, 0.52, 0.54, 0.56])
    return jaxdp.simulator(learner, bandit, horizon=20_000, checkpoints=20)


results = jaxdp.sweep(
    build,
    axes={"epsilon": epsilons},
    num_seeds=num_seeds,
    key=jax.random.key(0),
    progress=True,
)
results

# %% [markdown]
# ## Regret, with bands
# The dataset holds the value of every seed. Bands are 95% confidence intervals of the mean (Student's t).

# %% alt="Mean regret against rounds, a line for each ε: the smaller ε, the steeper the line after exploration."
jaxdp.plotting.curves(
    results.pseudo_regret, x="round", hue="epsilon", xscale="linear", yscale="linear"
)

# %% alt="Mean regret after all rounds against ε: it falls from about 600 at ε = 10⁻⁶ to about 210 without privacy."
regret = results.pseudo_regret.isel(round=-1)
jaxdp.plotting.cost_of_privacy(regret)

# %% [markdown]
# At ε = 10⁻⁶ the noise is so large that every arm is equally likely in every round. So the expected regret of 20,000
# rounds is 20,000 times the mean gap, 0.03. This number lies within the simulation's interval.

# %%
interval = jaxdp.stats.mean_interval(regret.sel(epsilon=1e-6), confidence=0.999)
print(f"{interval.low.item():.0f} to {interval.high.item():.0f}")
assert interval.low < 20_000 * 0.03 < interval.high

# %% [markdown]
# The means of the first sentence:

# %%
means = regret.mean("seed").sel(epsilon=[0.01, 0.1, float("inf")]).values
print(means.round())
assert means[2] < means[1] < means[0] < 10 * means[2]

# %% [markdown]
# ## Which ε can I afford?
# The next cell prints the smallest ε of the sweep for which the mean regret is at most 300, with 95% confidence.

# %%
print(jaxdp.stats.smallest_epsilon(regret, at_most=300))

# %% [markdown]
# ## A thousand million rounds
# While a learner keeps its plan, it needs only totals of rewards, not single rewards. `engine="counts"` draws these
# totals. The results have the same distribution, and 10⁹ rounds take no longer than a few thousand.


# %% alt="Mean regret against up to a thousand million rounds on logarithmic axes, a line for each ε."
def long_build():
    bandit = jaxdp.bandits.bernoulli_bandit([0.50, 0.52, 0.54, 0.56])
    looks = jaxdp.log_spaced(16)
    return jaxdp.simulator(
        learner, bandit, horizon=10**9, checkpoints=looks, engine="counts"
    )


long_results = jaxdp.sweep(
    long_build,
    axes={"epsilon": epsilons},
    num_seeds=num_seeds,
    key=jax.random.key(1),
)
jaxdp.plotting.curves(long_results.pseudo_regret, x="round", hue="epsilon")

# %% [markdown]
# ## Claims, versions, seconds

# %%
jaxdp.claims(results)[["epsilon", "claim"]]

# %%
seconds = time.perf_counter() - start
print(f"jaxdp {jaxdp.__version__}, jax {jax.__version__}, {seconds:.0f} s")

# %% [markdown]
# **What not to conclude:** that these costs hold elsewhere. They are for one instance and one length of exploration,
# which was not tuned for any ε. On another instance, or with longer exploration at small ε, they differ.

# %% [markdown]
# ## References
# * Laplace noise: Dwork & Roth (2014). The algorithmic foundations of differential privacy. [doi:10.1561/0400000042](https://doi.org/10.1561/0400000042)
