# %% [markdown]
# # Rewards from private labels
#
# A reward model is fitted to comparisons: who was preferred. Each label is private. A curator adds noise once
# (central), or every user randomizes the answer before it leaves the device (local). What does either cost, in error
# of the reward?

# %%
import time

import jax
import numpy as np

import jaxdp
from jaxdp.estimation import debiased_rr, gaussian_rewards, mle, objective_perturbation

start = time.perf_counter()

# %% tags=["parameters"] small={"num_seeds": 20, "num_samples": [250, 1000]}
num_seeds = 100
num_samples = [500, 1000, 2000, 4000]

# %% [markdown]
# ## Estimators and a problem
#
# All estimators meet the same features and the same true reward for one seed, so that their errors can be compared in
# pairs.
#
# Labels are private and features are public, so that samples may have weights that depend on their features. With
# `weights="cut"` long features count for less: the longest one decides how much noise all need. The cut of least
# predicted error is chosen without looking at labels. `noise="k_norm"` gives pure ε-DP, without a δ.

# %%
estimators = {
    "none": mle(),
    "central": objective_perturbation(),
    "central, cut": objective_perturbation(weights="cut"),
    "central, pure": objective_perturbation(weights="cut", noise="k_norm"),
    "local": debiased_rr(),
}


def build(num_samples):
    return jaxdp.estimation_run(estimators, gaussian_rewards(num_samples=num_samples, dim=5))


for name, claim in build(500).guarantee(epsilon=1.0, delta=1e-6).items():
    print(f"{name:13} {claim}")

# %%
results = jaxdp.sweep(
    build,
    axes={"epsilon": [0.5, 1.0, 2.0, float("inf")], "delta": [1e-6]},
    static_axes={"num_samples": num_samples},
    num_seeds=num_seeds,
    key=jax.random.key(0),
    tile_size=16,
)
error = results.l2_error.squeeze("delta")
jaxdp.plotting.facets(error, x="num_samples", hue="estimator", col="epsilon", xscale="log", yscale="log")

# %% [markdown]
# ## How fast does the error fall?
#
# Without privacy the error falls as n^(-1/2): the fitted exponent is near -0.5 (a power law holds in the limit only,
# hence a margin of 0.1 below). A curator's noise does not grow with n, so that the central error falls faster,
# towards the clear one. Local noise is a factor that stays.

# %%
exponents = jaxdp.stats.power_law(error, x="num_samples")
for name in error.estimator.values:
    at = exponents.sel(estimator=name, epsilon=1.0)
    print(f"{name:13} {at.exponent.item():.2f} ({at.low.item():.2f} to {at.high.item():.2f})")
clear = exponents.sel(estimator="none", epsilon=float("inf"))
assert clear.low - 0.1 < -0.5 < clear.high + 0.1

# %%
jaxdp.plotting.cost_of_privacy(error.isel(num_samples=-1), hue="estimator")

# %% [markdown]
# ## What privacy adds, seed by seed
#
# Differences from the estimate without privacy, on the same data: their intervals are narrower than those of the
# errors themselves, since what is common to both estimates of a seed cancels.

# %%
paired = jaxdp.stats.paired(error.isel(num_samples=-1), "estimator", against="none")
alone = jaxdp.stats.mean_interval(error.isel(num_samples=-1)).sel(estimator="central", epsilon=2.0)
beside = paired.sel(estimator="central", epsilon=2.0)
print(f"width alone {(alone.high - alone.low).item():.3f}, of the difference {(beside.high - beside.low).item():.3f}")
jaxdp.plotting.paired(paired)

# %% [markdown]
# ## One estimate of your own
#
# Your features and labels, checked before anything is computed.

# %%
data = jaxdp.preferences.gaussian_comparisons(jax.random.key(2), num_samples=2000, dim=3)
estimate = jaxdp.estimation.estimate(
    debiased_rr(), data.features, data.labels, key=jax.random.key(1), epsilon=1.0, radius=5.0
)
print(np.asarray(estimate.theta), "truth:", np.asarray(data.parameter))

# %% [markdown]
# ## Claims, versions, seconds
#
# What not to conclude: features here are public, Gaussian and five; where they are few, unbalanced or private, the
# costs are others, and `objective_perturbation` claims nothing about them.

# %%
jaxdp.claims(results).drop_duplicates(["epsilon", "algorithm"])

# %%
print(f"jaxdp {jaxdp.__version__}, jax {jax.__version__}, {time.perf_counter() - start:.0f} s")
