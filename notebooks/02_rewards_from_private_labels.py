# %% [markdown]
# # Rewards from private labels
# A reward model is fitted to comparisons of two items; the label says which item the user preferred, and is private. A
# curator adds noise once (central), or every user randomizes the label before it leaves the device (local). How much
# does each of the two increase the error of the estimated reward?

# %%
import time

import jax
import numpy as np

import jaxdp
from jaxdp.estimation import debiased_rr, gaussian_rewards, mle, objective_perturbation

start = time.perf_counter()

# %% tags=["parameters"] small={"num_seeds": 20, "num_samples": [250, 1000]}
num_seeds = 100
num_samples = [500, 1500, 4500]

# %% [markdown]
# ## Estimators and a problem
# For one seed, all estimators get the same features and the same true reward, so their errors can be compared seed by
# seed. Labels are private and features are public, so a sample's weight may depend on its features. `weights="cut"`
# reduces the weight of long feature vectors, because the longest vector determines the amount of noise. The cut with
# the least predicted error is chosen without looking at labels. `noise="k_norm"` gives pure ε-DP, without a δ.

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
# Without privacy the error falls as n^(-1/2), so the fitted exponent is near -0.5. (The power law holds only in the
# limit, so the check below allows a margin of 0.1.) A curator's noise does not grow with n, so the central error falls
# faster, towards the error without privacy. Local noise multiplies the error by a factor that stays.

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
# Differences from the estimate without privacy, on the same data, have narrower intervals than the errors, because the
# error that both estimates of a seed share cancels.

# %%
paired = jaxdp.stats.paired(error.isel(num_samples=-1), "estimator", against="none")
alone = jaxdp.stats.mean_interval(error.isel(num_samples=-1)).sel(estimator="central", epsilon=2.0)
beside = paired.sel(estimator="central", epsilon=2.0)
print(f"widths: error {(alone.high - alone.low).item():.3f}, difference {(beside.high - beside.low).item():.3f}")
jaxdp.plotting.paired(paired)

# %% [markdown]
# ## One estimate from your data
# `estimate` checks features and labels before it computes anything.

# %%
data = jaxdp.preferences.gaussian_comparisons(jax.random.key(2), num_samples=2000, dim=3)
estimate = jaxdp.estimation.estimate(
    debiased_rr(), data.features, data.labels, key=jax.random.key(1), epsilon=1.0, radius=5.0
)
print(np.asarray(estimate.theta), "truth:", np.asarray(data.parameter))

# %% [markdown]
# ## Claims, versions, seconds
# What not to conclude: here the five features are public and Gaussian. With few, unbalanced or private features the
# costs differ, and the claim of `objective_perturbation` does not protect features.

# %%
jaxdp.claims(results).drop_duplicates(["epsilon", "algorithm"])

# %%
print(f"jaxdp {jaxdp.__version__}, jax {jax.__version__}, {time.perf_counter() - start:.0f} s")
