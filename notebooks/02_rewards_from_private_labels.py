# %% [markdown]
# # Rewards from private labels
# **Result:** with 4,500 labels at ε = 1, randomizing every label multiplies the error of the estimated reward by about
# 3.6, a curator's K-norm noise by less than 1.1.
#
# A reward model is fitted to comparisons of two items; the label says which item the user preferred, and is private. A
# curator adds noise once (central), or every user randomizes the label before it leaves the device (local). How much
# does each of the two increase the error of the estimated reward?

# %%
import time

import jax

import jaxdp
from jaxdp.estimation import (
    comparison_table,
    debiased_rr,
    gaussian_rewards,
    mle,
    objective_perturbation,
)

start = time.perf_counter()

# %% tags=["parameters"] small={"num_seeds": 20, "num_samples": [250, 1000]}
num_seeds = 100
num_samples = [500, 4500]

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
    problem = gaussian_rewards(num_samples=num_samples, dim=5)
    return jaxdp.estimation_run(estimators, problem)


for name, claim in build(500).guarantee(epsilon=1.0, delta=1e-6).items():
    print(f"{name:13} {claim}")

# %% alt="Error against the number of labels, a panel for each ε: the local error is the largest and falls the slowest."
results = jaxdp.sweep(
    build,
    axes={"epsilon": [0.5, 1.0, 2.0, float("inf")], "delta": [1e-6]},
    static_axes={"num_samples": num_samples},
    num_seeds=num_seeds,
    key=jax.random.key(0),
    tile_size=16,
)
error = results.l2_error.squeeze("delta")
jaxdp.plotting.facets(
    error, x="num_samples", hue="estimator", col="epsilon", xscale="log", yscale="log"
)

# %% [markdown]
# ## How fast does the error fall?
# Without privacy the error falls as n^(-1/2), so the fitted exponent is near -0.5. (The power law holds only in the
# limit, so the check below allows a margin of 0.1.) A curator's noise does not grow with n, so the central error falls
# faster, towards the error without privacy. Local noise multiplies the error by a factor that stays.

# %%
exponents = jaxdp.stats.power_law(error, x="num_samples")
for name in error.estimator.values:
    fit = exponents.sel(estimator=name, epsilon=1.0)
    low, high = fit.low.item(), fit.high.item()
    print(f"{name:13} {fit.exponent.item():.2f} ({low:.2f} to {high:.2f})")
clear = exponents.sel(estimator="none", epsilon=float("inf"))
assert clear.low - 0.1 < -0.5 < clear.high + 0.1

# %% alt="Error with the most labels against ε: at ε = 0.5 the local error is six times the error without privacy."
last_error = error.isel(num_samples=-1)
jaxdp.plotting.cost_of_privacy(last_error, hue="estimator")

# %%
at_one = last_error.sel(epsilon=1.0).mean("seed")
ratios = (at_one / at_one.sel(estimator="none")).to_pandas()
print(ratios.round(2))
assert ratios["central, pure"] < 1.3 < 2 < ratios["local"] < 6

# %% [markdown]
# ## The error that privacy adds, seed by seed
# Differences from the estimate without privacy, on the same data, have narrower intervals than the errors, because the
# error that both estimates of a seed share cancels.

# %% alt="Paired difference from the error without privacy against ε: local, then central, cut, and pure noise."
paired = jaxdp.stats.paired(last_error, "estimator", against="none")
choice = {"estimator": "central", "epsilon": 2.0}
alone = jaxdp.stats.mean_interval(last_error).sel(choice)
widths = [(each.high - each.low).item() for each in (alone, paired.sel(choice))]
print(f"widths: error {widths[0]:.3f}, difference {widths[1]:.3f}")
jaxdp.plotting.paired(paired)

# %% [markdown]
# ## Real results: 273 baseball games
# `baseball1987` has the games between the seven teams of the American League East in 1987, 13 for each pair (Agresti,
# Categorical Data Analysis, 1990). Suppose that the result of each game is private. A team's reward is its ability, and
# seeds differ only in the noise. With labels of yours, `jaxdp.estimation.estimate` makes one estimate.

# %% alt="How often Milwaukee comes first against ε: at ε = 4 nearly always, at ε = 1 more often with a curator."
games = jaxdp.preferences.baseball1987()
rankers = {name: estimators[name] for name in ("none", "central, pure", "local")}
ranking = jaxdp.sweep(
    lambda: jaxdp.estimation_run(rankers, comparison_table(games)),
    axes={"epsilon": [0.5, 1.0, 2.0, 4.0], "radius": [6.0]},
    num_seeds=4 * num_seeds,
    key=jax.random.key(1),
    tile_size=16,
).squeeze("radius")
standing = ranking.ability.sel(estimator="none").isel(epsilon=0, seed=0).to_pandas()
winner = standing.idxmax()
private = ranking["rank"].sel(item=winner, estimator=["central, pure", "local"])
first = (private == 1).astype(float).rename(f"how often {winner} is first")
jaxdp.plotting.cost_of_privacy(first, hue="estimator", band="share")

# %% [markdown]
# At ε = 1 Milwaukee stays first in about six of ten seeds with a curator, and in four of ten without one: 273 games are
# few for a private ranking of seven teams. The table shows the abilities without privacy. The other columns are at ε =
# 1: in 95% of the seeds the noise changes an ability by at most this much.

# %%
spread = abs(ranking.ability - ranking.ability.sel(estimator="none"))
table = spread.sel(epsilon=1.0).quantile(0.95, "seed").to_pandas().T
table.insert(0, "ability", standing)
central, local = first.sel(epsilon=1.0).mean("seed").values
print(f"{winner} first: {central:.2f} with a curator, {local:.2f} without one")
assert local < central < 0.9
table.drop(columns="none").sort_values("ability", ascending=False).round(2)

# %% [markdown]
# ## Claims, versions, seconds

# %%
jaxdp.claims(results).drop_duplicates(["epsilon", "algorithm"])[
    ["epsilon", "algorithm", "claim"]
]

# %%
seconds = time.perf_counter() - start
print(f"jaxdp {jaxdp.__version__}, jax {jax.__version__}, {seconds:.0f} s")

# %% [markdown]
# **What not to conclude:** that the costs are the same for other features. Here the five features are public and
# Gaussian. With few, unbalanced or private features the costs differ, and the claim of `objective_perturbation` does
# not protect features.

# %% [markdown]
# ## References
# * `objective_perturbation`, `debiased_rr`: Chowdhury, Zhou & Natarajan (2023). Differentially Private Reward
#   Estimation with Preference Feedback. [arXiv:2310.19733](https://arxiv.org/abs/2310.19733)
# * K-norm noise: Hardt & Talwar (2010). On the Geometry of Differential Privacy. [doi:10.1145/1806689.1806786](https://doi.org/10.1145/1806689.1806786)
# * `mle`: Zhu, Jiao & Jordan (2023). Principled Reinforcement Learning with Human Feedback from Pairwise or
#   K-wise Comparisons. [arXiv:2301.11270](https://arxiv.org/abs/2301.11270)
# * model of labels: Bradley & Terry (1952). Rank Analysis of Incomplete Block Designs: I. The Method of Paired
#   Comparisons. [doi:10.1093/biomet/39.3-4.324](https://doi.org/10.1093/biomet/39.3-4.324)
# * randomized response: Warner (1965). Randomized Response: A Survey Technique for Eliminating Evasive Answer
#   Bias. [doi:10.1080/01621459.1965.10480775](https://doi.org/10.1080/01621459.1965.10480775)
