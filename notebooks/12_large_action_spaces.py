# %% [markdown]
# # Large action spaces, shuffling, ballots, blocks
# **Result:** with 100 arms in 3 dimensions and a curator, privacy at ε = 0.1 adds less than a quarter to the regret
# of 100 million duels.
#
# This notebook plays duels with more than a few arms and without a trusted curator: arms with features, users behind a
# shuffler, voters who answer a limited number of duels, and upper bounds computed from blocks of wins.

# %%
import time

import jax
import numpy as np

import jaxdp
from jaxdp.dueling import (
    ballot_duels,
    double_thompson,
    ebs_local,
    ebs_phased,
    ebs_shuffle,
    g_optimal_elimination,
    linear_duels,
    rucb,
    utility_duels,
)

start = time.perf_counter()
key = jax.random.key(12)

# %% tags=["parameters"] small={"num_seeds": 9, "num_arms": 6, "trusts": ["shuffle"], "names": ["rucb, blocks"]}
num_seeds = 32
num_arms, dim = 100, 3
horizon = 10**8  # by counts: totals, not single rounds
short = 20_000  # round by round
budgets = [0.1, 0.3, 1.0]
trusts = ["central", "shuffle", "local"]
names = ["ebs_phased", "rucb, blocks", "thompson, blocks"]

# %%
epsilons = [*budgets, float("inf")]

# %% [markdown]
# ## Arms with features: privacy at almost no cost
# Utilities are linear in d features. An optimal design duels a few pairs of arms, and only a few totals in each phase
# get noise. Privacy adds a term of order d³/ε to the regret, beside a term of order √T that every learner has.

# %% alt="Regret against rounds T on logarithmic axes, a line for each ε: the lines part at 10⁴ duels and meet again."
rng = np.random.default_rng(0)
features = rng.normal(size=(num_arms, dim))
features /= np.linalg.norm(features, axis=1, keepdims=True)
weights = np.full(dim, 0.9 / np.sqrt(dim))
large = jaxdp.simulator(
    g_optimal_elimination(features=features),
    linear_duels(features=features, weights=weights),
    horizon=horizon,
    checkpoints=jaxdp.simulation.log_spaced(12),
    engine="counts",
)
linear = jaxdp.sweep(large, axes={"epsilon": epsilons}, num_seeds=num_seeds, key=key)
jaxdp.plotting.curves(
    linear.pseudo_regret, x="round", hue="epsilon", xscale="log", yscale="log"
)

# %%
last = linear.pseudo_regret.isel(round=-1)
ratios = (last.mean("seed") / last.sel(epsilon=np.inf).mean("seed")).to_pandas()
print(f"regret after {horizon:,} duels, as a multiple of the regret without privacy:")
print(ratios.round(2))
uniform = (features @ weights).max() - (features @ weights).mean()
assert last.mean("seed").max() < 2 * uniform * horizon  # the regret of random duels
if num_arms >= 100:
    assert 1 < ratios[0.1] < 1.3

# %% [markdown]
# ## Three kinds of trust
# The same elimination is played with a curator who sees every answer, with a shuffler who mixes the users' reports, and
# with nobody trusted. How many duels does it take until one arm is left?

# %%
duels = utility_duels([1.0, 0.0, -0.5, -1.0])


def alone(snapshot):  # is one arm left?
    return snapshot.public.active.sum() == 1


eliminations = {
    "central": ebs_phased(num_arms=4),
    "shuffle": ebs_shuffle(num_arms=4),
    "local": ebs_local(num_arms=4, horizon=short),
}


def eliminate(learner):
    rounds, engine = (horizon, "counts") if learner.counts else (short, "auto")
    return jaxdp.simulator(
        learner,
        duels,
        rounds,
        checkpoints=jaxdp.simulation.log_spaced(30),
        record={"alone": alone},
        engine=engine,
    )


for trust in trusts:
    results = jaxdp.sweep(
        eliminate(eliminations[trust]),
        axes={
            "epsilon": epsilons,
            **({"delta": [1e-9]} if trust == "shuffle" else {}),
        },
        num_seeds=num_seeds,
        key=key,
    ).squeeze(drop=True)
    # inf if more than one arm is left after all rounds
    rounds = results["round"].where(results.alone).min("round").fillna(np.inf)
    print(trust.ljust(8), rounds.median("seed").to_pandas().to_dict())

# %% [markdown]
# ## Waiting for blocks
# "blocks" means a curator who releases a pair's wins whenever the pair's number of duels has doubled. RUCB and double
# Thompson sampling play with blocks. DP-EBS (`ebs_phased`) has the best proved rate. At these horizons it is not the
# best choice.

# %% alt="Regret against ε: Thompson sampling with blocks is the lowest, then RUCB with blocks."
learners = {
    "ebs_phased": ebs_phased(num_arms=4),
    "rucb, blocks": rucb(num_arms=4, release="blocks"),
    "thompson, blocks": double_thompson(num_arms=4, release="blocks"),
}


def play(learner):
    return jaxdp.simulator(learners[learner], duels, short, outcomes=["pseudo_regret"])


blocks = jaxdp.sweep(
    play,
    axes={"epsilon": [0.3, 1.0]},
    static_axes={"learner": names},
    num_seeds=num_seeds,
    key=key,
)
jaxdp.plotting.cost_of_privacy(blocks.pseudo_regret.isel(round=-1), hue="learner")

# %%
claims = {name: learner.guarantee(epsilon=1.0) for name, learner in learners.items()}
for name, claim in claims.items():
    print(name.ljust(18), claim)

# %% [markdown]
# ## An election
# In each round the next voter, in random order, answers one duel from their ballot; a voter who did not rank both
# alternatives tosses a coin. The horizon ends when all voters have answered. With two answers for each voter, a voter's
# ε is twice the ε of one answer.

# %%
# 220 made-up voters: orders, best first, and their counts
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
orders = tuple(tuple((lunch,) for lunch in order) for order in voters)
ballots = jaxdp.preferences.Ballots(lunches, orders, tuple(voters.values()))
election = ballot_duels(ballots, answers_per_voter=2)
run = jaxdp.simulator(
    rucb(num_arms=len(ballots.items)), election, horizon=election.horizon
)
for holder, claim in run.guarantee(epsilon=1.0).items():
    print(holder.ljust(8), claim)

# %%
votes = jaxdp.sweep(run, axes={"epsilon": epsilons}, num_seeds=num_seeds, key=key)
shares = votes[["best_duels", "coins"]].isel(round=-1).mean("seed") / election.horizon
print(shares.to_dataframe()[["best_duels", "coins"]].round(2))
assert ((shares.coins > 0) & (shares.coins < 1)).all()

# %% [markdown]
# `best_duels` is the share of duels of the winner against itself, and `coins` the share of answers that were coins. 220
# voters are few: no learner settles on the winner. `python -m jaxdp run dueling-ballots --ballots FILE` reports the
# confidence with which the winner is identified, and how many voters are needed.

# %% [markdown]
# ## Claims, versions, seconds

# %%
jaxdp.claims(votes)[["epsilon", "algorithm", "claim"]]

# %%
seconds = time.perf_counter() - start
print(f"jaxdp {jaxdp.__version__}, jax {jax.__version__}, {seconds:.0f} s")

# %% [markdown]
# **What not to conclude:** that one voter can answer any number of duels. Each answer adds its ε.

# %% [markdown]
# ## References
# * `ebs_phased`, `ebs_shuffle`, `ebs_local`: Saha & Asi (2024). DP-Dueling: Learning from Preference Feedback
#   without Compromising User Privacy. [arXiv:2403.15045](https://arxiv.org/abs/2403.15045)
# * the shuffle model: Cheu et al. (2019). Distributed Differential Privacy via Shuffling. [doi:10.1007/978-3-030-17653-2_13](https://doi.org/10.1007/978-3-030-17653-2_13)
# * `rucb`: Zoghi, Whiteson, Munos & de Rijke (2014). Relative upper confidence bound for the k-armed dueling
#   bandit problem. [proceedings.mlr.press](https://proceedings.mlr.press/v32/zoghi14.html)
# * `rucb` on randomized outcomes: Asi & Saha (2025). Optimal Rates for Private Stochastic Dueling Bandits.
# * `double_thompson`: Wu & Liu (2016). Double Thompson Sampling for Dueling Bandits. [arXiv:1604.07101](https://arxiv.org/abs/1604.07101)
# * optimal designs: Kiefer and Wolfowitz (1960). The Equivalence of Two Extremum Problems. [doi:10.4153/CJM-1960-030-4](https://doi.org/10.4153/CJM-1960-030-4)
