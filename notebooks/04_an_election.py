# %% [markdown]
# # An election
# **Result:** among 220 ballots the winner comes first in at least nine of ten simulations from ε = 0.5 on with a
# curator, and from ε = 4 on without one.
#
# Voters rank alternatives on ballots, as in PrefLib's files. If a whole ballot is private, how large must ε be so that
# the winner stays the same? This notebook is a simulation for people who may see the ballots; its results are not
# private. `jaxdp run private-ranking --release` publishes one private ranking, for one ε.

# %%
import time

import jax

import jaxdp
from jaxdp.estimation import (
    ballot_election,
    ballot_mle,
    ballot_objective_perturbation,
    ballot_rr,
)

start = time.perf_counter()

# %% tags=["parameters"] small={"num_seeds": 40}
num_seeds = 400
epsilons = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, float("inf")]

# %% [markdown]
# The data are 220 made-up ballots about four lunches: orders, best first, and how many voters cast each order.

# %%
lunches = ("noodles", "curry", "salad", "pizza")
voters = {
    (0, 1, 3): 61,
    (1, 0, 2, 3): 52,
    (3, 1): 34,
    (0, 3, 1, 2): 29,
    (2, 1, 0): 17,
    (1,): 15,
    (3, 2, 0, 1): 12,
}
# a place is a tuple of lunches, because several may tie
orders = tuple(tuple((lunch,) for lunch in order) for order in voters)
ballots = jaxdp.preferences.Ballots(lunches, orders, tuple(voters.values()))
print(ballots)

# %% [markdown]
# `jaxdp.preferences.read_ballots(path)` reads any `.soc`, `.soi`, `.toc` or `.toi` file of
# [PrefLib](https://preflib.org).

# %% [markdown]
# ## Estimators with one ballot as the privacy unit
# One ballot contains many comparisons, and also shows which alternatives the voter ranked. So every voter answers about
# pairs that do not depend on the ballot. In the central model a curator sees the ballots; in the local model only the
# voter does.

# %%
estimators = {
    "none": ballot_mle(),
    "central": ballot_objective_perturbation(),
    "local": ballot_rr(),
}


def build():
    return jaxdp.estimation_run(estimators, ballot_election(ballots))


results = jaxdp.sweep(
    build,
    axes={"epsilon": epsilons, "delta": [1e-6], "radius": [6.0]},
    num_seeds=num_seeds,
    key=jax.random.key(0),
    tile_size=16,
).squeeze(["delta", "radius"])

# %% [markdown]
# ## Does the winner stay the same?
# The next cell finds the winner without privacy, and the share of seeds in which this alternative comes first.

# %% alt="How often noodles come first against ε: near 1 from ε = 1 on with a curator, from ε = 4 on without."
without_privacy = results["rank"].sel(estimator="none").isel(epsilon=0, seed=0)
winner = results["item"].values[int(without_privacy.argmin("item"))]
private = results["rank"].sel(item=winner, estimator=["central", "local"])
survival = (private == 1).astype(float).rename(f"how often {winner} comes first")
jaxdp.plotting.cost_of_privacy(survival, hue="estimator", band="share")

# %%
smallest = jaxdp.stats.smallest_epsilon(1 - survival, at_most=0.1)
print(smallest)
assert smallest.sel(estimator="central") < smallest.sel(estimator="local") <= 16

# %% [markdown]
# At ε = 32 a curator adds hardly any noise: the winner comes first in every seed, so the interval of the share ends at
# 1.

# %%
interval = jaxdp.stats.share_interval(survival.sel(estimator="central", epsilon=32.0))
share, low, high = (interval[name].item() for name in ("share", "low", "high"))
print(f"{share:.2f}, from {low:.3f} to {high:.3f}")
assert low < share == high == 1.0

# %% [markdown]
# ## Abilities

# %% alt="Abilities against ε, a panel for each model: local ballots below ε = 1 have wide bands."
jaxdp.plotting.facets(
    results.ability.sel(estimator=["central", "local"]),
    x="epsilon",
    hue="item",
    col="estimator",
    band="quantile",
)

# %% [markdown]
# ## Claims, versions, seconds

# %%
jaxdp.claims(results)[["epsilon", "algorithm", "claim"]]

# %%
seconds = time.perf_counter() - start
print(f"jaxdp {jaxdp.__version__}, jax {jax.__version__}, {seconds:.0f} s")

# %% [markdown]
# **What not to conclude:** that another electorate needs the same ε. Seeds differ only in the noise for privacy. No
# interval here includes how the result would vary with other voters.

# %% [markdown]
# ## References
# * `ballot_objective_perturbation`, `ballot_rr`, for one label: Chowdhury, Zhou & Natarajan (2023).
#   Differentially Private Reward Estimation with Preference Feedback. [arXiv:2310.19733](https://arxiv.org/abs/2310.19733)
# * `ballot_mle`: Zhu, Jiao & Jordan (2023). Principled Reinforcement Learning with Human Feedback from Pairwise
#   or K-wise Comparisons. [arXiv:2301.11270](https://arxiv.org/abs/2301.11270)
# * abilities: Bradley & Terry (1952). Rank Analysis of Incomplete Block Designs: I. The Method of Paired
#   Comparisons. [doi:10.1093/biomet/39.3-4.324](https://doi.org/10.1093/biomet/39.3-4.324)
# * randomized response: Warner (1965). Randomized Response: A Survey Technique for Eliminating Evasive Answer
#   Bias. [doi:10.1080/01621459.1965.10480775](https://doi.org/10.1080/01621459.1965.10480775)
# * intervals of shares: Clopper & Pearson (1934). The Use of Confidence or Fiducial Limits Illustrated in the
#   Case of the Binomial. [doi:10.1093/biomet/26.4.404](https://doi.org/10.1093/biomet/26.4.404)
