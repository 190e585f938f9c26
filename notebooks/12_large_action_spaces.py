# %% [markdown]
# # Large action spaces, shuffling, ballots, blocks
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

started = time.perf_counter()
key = jax.random.key(12)

# %% tags=["parameters"] small={"num_seeds": 9, "num_arms": 6, "budgets": [1.0], "trusts": ["shuffle"], "who": ["rucb"]}
num_seeds = 100
num_arms, dim = 100, 3
horizon = 10**8  # by counts: totals, not single rounds
short = 20_000  # round by round
budgets = [0.1, 0.3, 1.0]
trusts = ["central", "shuffle", "local"]
who = ["ebs_phased", "rucb", "rucb, blocks", "thompson, blocks"]

# %%
epsilons = [*budgets, float("inf")]

# %% [markdown]
# ## Arms with features: privacy at almost no cost
# Utilities are linear in d features. An optimal design duels a few pairs of arms, and only a few totals in each phase
# get noise. Privacy adds a term of order d³/ε to the regret, beside a term of order √T that every learner has.

# %%
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
jaxdp.plotting.curves(linear.pseudo_regret, x="round", hue="epsilon", xscale="log", yscale="log")

# %%
last = linear.pseudo_regret.isel(round=-1)
for epsilon in budgets:
    ratio = float(last.sel(epsilon=epsilon).mean() / last.sel(epsilon=np.inf).mean())
    print(f"ε = {epsilon:g}: {ratio:.2f} times the regret without privacy after {horizon:,} duels")
uniform = (features @ weights).max() - (features @ weights).mean()
assert float(last.mean("seed").max()) < 2 * uniform * horizon  # better than duels of random arms

# %% [markdown]
# ## Three kinds of trust
# The same elimination is played with a curator who sees every answer, with a shuffler who mixes the users' reports, and
# with nobody trusted. How many duels does it take until one arm is left?

# %%
duels = utility_duels([1.0, 0.0, -0.5, -1.0])


def alone(snapshot):  # is one arm left?
    return snapshot.public.active.sum() == 1


def build(trust):
    learner = {
        "central": lambda: ebs_phased(num_arms=4),
        "shuffle": lambda: ebs_shuffle(num_arms=4),
        "local": lambda: ebs_local(num_arms=4, horizon=short),
    }[trust]()
    rounds, engine = (horizon, "counts") if learner.counts else (short, "auto")
    looks = jaxdp.simulation.log_spaced(30)
    return jaxdp.simulator(learner, duels, rounds, checkpoints=looks, record={"alone": alone}, engine=engine)


def trusted(trust):
    values = {"epsilon": epsilons, **({"delta": [1e-9]} if trust == "shuffle" else {})}
    return jaxdp.sweep(build(trust), axes=values, num_seeds=num_seeds, key=key).squeeze(drop=True)


by_trust = {trust: trusted(trust) for trust in trusts}
for trust, found in by_trust.items():
    rounds = found["round"].where(found.alone).min("round").fillna(np.inf)  # inf if not reached in the rounds played
    told = [f"{float(rounds.sel(epsilon=e).median('seed')):,.0f}" for e in epsilons]
    print(trust.ljust(8), dict(zip(epsilons, told, strict=True)))

# %% [markdown]
# ## Waiting for blocks
# This section compares RUCB and double Thompson sampling in two forms, with a curator who releases a pair's wins
# whenever its number of duels has doubled and without a curator, and DP-EBS. At these horizons the algorithm with the
# paper's rate is not the best choice.

# %%
learners = {
    "ebs_phased": ebs_phased(num_arms=4),
    "rucb": rucb(num_arms=4),
    "rucb, blocks": rucb(num_arms=4, release="blocks"),
    "thompson, blocks": double_thompson(num_arms=4, release="blocks"),
}


def compared(learner):
    return jaxdp.simulator(learners[learner], duels, short, outcomes=["pseudo_regret"])


blocks = jaxdp.sweep(compared, axes={"epsilon": [0.3, 1.0]}, static_axes={"learner": who}, num_seeds=num_seeds, key=key)
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
lunches = ("noodles", "curry", "salad", "pizza")  # 220 made-up voters: orders, best first, and their counts
voters = {(0, 1, 3): 61, (1, 0, 2, 3): 52, (3, 1): 34, (0, 3, 1, 2): 29, (2, 1, 0): 17, (1,): 15, (3, 2, 0, 1): 12}
orders = tuple(tuple((lunch,) for lunch in order) for order in voters)
ballots = jaxdp.preferences.Ballots(lunches, orders, tuple(voters.values()))
election = ballot_duels(ballots, answers_per_voter=2)
run = jaxdp.simulator(rucb(num_arms=len(ballots.items)), election, horizon=election.horizon)
for whose, claim in run.guarantee(epsilon=1.0).items():
    print(whose.ljust(8), claim)

# %%
found = jaxdp.sweep(run, axes={"epsilon": epsilons}, num_seeds=num_seeds, key=key)
jaxdp.claims(found)[["epsilon", "algorithm", "claim"]]

# %%
share = (found.best_duels.isel(round=-1) / election.horizon).mean("seed")
coins = float((found.coins.isel(round=-1) / election.horizon).mean())
print(
    {float(e): round(float(s), 2) for e, s in zip(found.epsilon, share, strict=True)}, "of duels are the winner's own"
)
print(f"{coins:.0%} of the answers were coins")
assert 0 < coins < 1

# %% [markdown]
# 220 voters are few. `python -m jaxdp run dueling-ballots --ballots FILE` reports the confidence with which the winner
# is identified, and how many voters are needed. **What not to conclude:** that one voter can answer any number of
# duels. Each answer adds its ε.

# %%
print(f"jaxdp {jaxdp.__version__}, jax {jax.__version__}, {time.perf_counter() - started:.1f} seconds")
