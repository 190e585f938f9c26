# %% [markdown]
# # An election
# Voters rank alternatives on ballots, as in PrefLib's files. If a whole ballot is private, how large must ε be so that
# the winner stays the same? This notebook is a simulation for people who may see the ballots; its results are not
# private. `jaxdp run private-ranking --release` publishes one private ranking, for one ε.

# %%
import time

import jax

import jaxdp
from jaxdp.estimation import ballot_election, ballot_mle, ballot_objective_perturbation, ballot_rr

start = time.perf_counter()

# %% tags=["parameters"] small={"num_seeds": 40}
num_seeds = 400
epsilons = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, float("inf")]

# %% [markdown]
# The data are 220 made-up ballots about four lunches: orders, best first, and how many voters cast each order.

# %%
lunches = ("noodles", "curry", "salad", "pizza")
voters = {(0, 1, 3): 61, (1, 0, 2, 3): 52, (3, 1): 34, (0, 3, 1, 2): 29, (2, 1, 0): 17, (1,): 15, (3, 2, 0, 1): 12}
orders = tuple(tuple((lunch,) for lunch in order) for order in voters)  # lunches in one pair of brackets would be a tie
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
estimators = {"none": ballot_mle(), "central": ballot_objective_perturbation(), "local": ballot_rr()}


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

# %%
winner = results["item"].values[int(results["rank"].sel(estimator="none").isel(epsilon=0, seed=0).argmin("item"))]
survival = (results["rank"].sel(item=winner) == 1).astype(float).rename(f"how often {winner} comes first")
jaxdp.plotting.cost_of_privacy(survival.sel(estimator=["central", "local"]), hue="estimator", band="share")

# %%
lost = (1 - survival).sel(estimator=["central", "local"])
print(jaxdp.stats.smallest_epsilon(lost, at_most=0.1))

# %% [markdown]
# At ε = 32 a curator adds hardly any noise: the winner comes first in every seed, so the interval of the share ends at
# 1.

# %%
interval = jaxdp.stats.share_interval(survival.sel(estimator="central", epsilon=32.0))
print(f"{interval.share.item():.2f}, from {interval.low.item():.3f} to {interval.high.item():.3f}")
assert interval.low < interval.share == interval.high == 1.0

# %% [markdown]
# ## Abilities

# %%
jaxdp.plotting.facets(
    results.ability.sel(estimator=["central", "local"]), x="epsilon", hue="item", col="estimator", band="quantile"
)

# %% [markdown]
# ## Claims, versions, seconds
# What not to conclude: seeds differ only in the noise for privacy. No interval here includes how the result would vary
# with other voters.

# %%
jaxdp.claims(results)

# %%
print(f"jaxdp {jaxdp.__version__}, jax {jax.__version__}, {time.perf_counter() - start:.0f} s")
