# %% [markdown]
# # Bandits without a curator: the cost of trusting nobody
# **Result:** at ε = 1 a curator's UCB loses about 2 times as much as without privacy, local Thompson sampling about 4
# times, and still the least of all.
#
# In each round a bandit plays one arm and sees one reward, which is private. If users trust a curator, the curator sees
# the rewards and releases noisy values. If users trust nobody, every user randomizes the reward before it leaves the
# device: a bit is reported truthfully with probability e^ε / (1 + e^ε). After debiasing, reports have c = (e^ε + 1) /
# (e^ε - 1) times the range, and every round adds noise.

# %% tags=["parameters"] small={"num_seeds": 6, "horizon": 600, "horizons": [300, 1200], "best_seeds": 20}
num_seeds = 40
horizon = 20_000
horizons = [3_000, 30_000]
best_seeds = 200
epsilons = [0.25, 0.5, 1.0, 2.0, 4.0, float("inf")]

# %%
import time

import jax
import numpy as np
import xarray as xr

import jaxdp
from jaxdp import bandits, plotting, stats
from jaxdp.bandits import convex
from jaxdp.theory import ldp_bandits as theory

start = time.perf_counter()

# %% [markdown]
# ## Arms, with and without a curator
# One of five arms is better than the others, by 0.2. `successive_elimination_central` and `ucb_central` use a curator
# who sees the rewards; `tsallis_inf` and `thompson` see one randomized bit in each round.

# %% alt="Regret against ε: the local learners' curves are the steepest; local Thompson sampling has the least regret."
arms = bandits.bernoulli_bandit([0.7, 0.5, 0.5, 0.5, 0.5])
players = {
    "central: elimination": bandits.successive_elimination_central(num_arms=5),
    "central: ucb": bandits.ucb_central(num_arms=5),
    "local: Tsallis-INF": bandits.tsallis_inf(num_arms=5),
    "local: Thompson": bandits.thompson(num_arms=5),
}


def play(learner):
    return jaxdp.simulator(players[learner], arms, horizon, checkpoints=1)


played = jaxdp.sweep(
    play,
    static_axes={"learner": list(players)},
    axes={"epsilon": epsilons},
    num_seeds=num_seeds,
    key=jax.random.key(0),
)
regret = played.pseudo_regret.isel(round=-1, drop=True)
plotting.cost_of_privacy(
    regret, hue="learner", yscale="log", title=f"Regret after {horizon:,} rounds"
)

# %% [markdown]
# Uniform play would have a regret of 0.16 a round. With a curator, privacy adds a cost of order 1/ε, which stops once
# the best arm is found. Without a curator, privacy multiplies the regret: reports with c times the range need c² times
# as many plays. So compare each learner with itself at ε = ∞. Between learners, constants matter more than trust: even
# without privacy, the two central learners, which use the wide intervals of their proofs, lose more than local Thompson
# sampling, which uses no intervals. At ε = 1, in the same worlds, seed by seed:

# %%
differences = stats.paired(
    regret.sel(epsilon=1.0), "learner", against="local: Thompson"
)
differences.to_dataframe()[["difference", "low", "high"]].round()

# %%
means = regret.mean("seed")
ratios = (means.sel(epsilon=1.0) / means.sel(epsilon=np.inf)).to_pandas()
print(ratios.round(1))
if horizon > 10_000:
    assert 1.5 < ratios["central: ucb"] < 2.5
    assert 2.5 < ratios["local: Thompson"] < 5.5

# %% [markdown]
# ## Points of a ball, from values of a loss
# Now an action is a point of a ball, and the loss is convex. `fkm` uses the loss at one random point near its iterate;
# `two_point` uses the difference of the losses at two points that are very close to each other. Each report is one
# randomized response about a bounded number.

# %% alt="Regret at ε = 1 against rounds T on logarithmic axes: two points have less regret and a flatter line."
slope, dim = 0.5, 2
methods = {
    "one point": (convex.fkm, "point"),
    "two points": (convex.two_point, "difference"),
}


def descend(rounds):
    def build(feedback):
        factory, kind = methods[feedback]
        learner = factory(dim=dim, horizon=rounds)
        losses = convex.linear_losses(dim=dim, feedback=kind)
        return jaxdp.simulator(learner, losses, rounds, checkpoints=1)

    return jaxdp.sweep(
        build,
        static_axes={"feedback": list(methods)},
        axes={"epsilon": [1.0, np.inf], "slope": [slope], "lipschitz": [slope]},
        num_seeds=num_seeds,
        key=jax.random.key(1),
    )


sweeps = {rounds: descend(rounds) for rounds in horizons}
parts = [
    results.pseudo_regret.isel(round=-1, drop=True).squeeze(drop=True)
    for results in sweeps.values()
]
# (horizon, feedback, epsilon, seed)
descent = xr.concat(parts, xr.IndexVariable("horizon", horizons))
plotting.curves(
    descent.sel(epsilon=1.0),
    x="horizon",
    hue="feedback",
    xscale="log",
    yscale="log",
    xlabel="rounds T",
    title="Regret at ε = 1",
)

# %% [markdown]
# Theory gives T^(3/4) for one point and T^(1/2) for two points. The next cell fits the exponent between these numbers
# of rounds, with an interval. For one point it is still above 3/4, because at these T one noisy number in each round
# has not taught the learner much. Between 10⁶ and 10⁷ rounds it is 0.75 (`python -m jaxdp run ldp-bandits --problem
# convex`).

# %%
exponents = stats.power_law(descent, "horizon")
exponents.to_dataframe()[["exponent", "low", "high"]].round(2)

# %% [markdown]
# The proved bound for two points includes constants. It depends on ε only through the second moment of a report, which
# is G² c² for slopes in [-G, G]. With a step tuned to this moment the regret grows with c; with the published step it
# grows with ε^-2.

# %%
randomizer = jaxdp.mechanisms.scalar_randomizer("rr")
for rounds in horizons:
    interval = stats.mean_interval(
        descent.sel(feedback="two points", epsilon=1.0, horizon=rounds)
    )
    moment = randomizer.second_moment(epsilon=1.0, low=-slope, high=slope)
    proved = float(theory.two_point_upper(moment, rounds, dim, slope, 1.0))
    mean, low, high = (float(interval[name]) for name in ("mean", "low", "high"))
    measured = f"{mean:,.0f} ({low:,.0f} to {high:,.0f})"
    print(f"T = {rounds:,}: {measured}, proved {proved:,.0f}")
    assert high < proved

# %% [markdown]
# ## How long does it take to find the best arm?
# `lil_ucb` stops when it has identified the best of three arms. Its stopping time grows with c².

# %%
budgets = [0.5, 1.0, 2.0, 4.0]
easy = bandits.bernoulli_bandit([0.9, 0.2, 0.2])


def identify():
    learner = bandits.lil_ucb(num_arms=3)
    return jaxdp.simulator(learner, easy, 2_000_000, checkpoints=1)


stopping = jaxdp.sweep(
    identify,
    axes={"epsilon": budgets},
    num_seeds=best_seeds,
    key=jax.random.key(2),
)
spread = 1 / np.tanh(np.asarray(budgets) / 2) ** 2  # c²
medians = stopping.rounds.median("seed").values
growth, _ = np.polyfit(np.log(spread), np.log(medians), 1)
print(f"median rounds: {medians.astype(int)}; they grow like (c²)^{growth:.2f}")

# %% [markdown]
# ## Claims, versions, seconds

# %%
jaxdp.claims(played)[["learner", "epsilon", "claim"]]

# %%
seconds = time.perf_counter() - start
print(f"jaxdp {jaxdp.__version__}, jax {jax.__version__}, {seconds:.0f} s")

# %% [markdown]
# **What not to conclude:** that a curator always gains the same factor. This notebook compares one instance with one
# gap. For a smaller gap, the curator's noise matters less beside the statistical error of the rewards, while local
# noise always multiplies the number of plays by c². `python -m jaxdp run trust-models --mean ...` plays an instance of
# yours, and `python -m jaxdp run ldp-bandits` the rows of the paper's Table 1.

# %% [markdown]
# ## References
# * reports of rewards and losses: Zheng, Cai, Huang, Li & Wang (2020). Locally differentially private
#   (contextual) bandits learning. [arXiv:2006.00701](https://arxiv.org/abs/2006.00701)
# * `successive_elimination_central`: Sajed & Sheffet (2019). An optimal private stochastic-mab algorithm based on
#   optimal private stopping rule. [proceedings.mlr.press](https://proceedings.mlr.press/v97/sajed19a.html)
# * `ucb_central` at ε = ∞: Auer, Cesa-Bianchi & Fischer (2002). Finite-time analysis of the multiarmed bandit
#   problem. [doi:10.1023/A:1013689704352](https://doi.org/10.1023/A:1013689704352)
# * its doubling blocks: Azize & Basu (2022). When Privacy Meets Partial Information: A Refined Analysis of
#   Differentially Private Bandits. [arXiv:2209.02570](https://arxiv.org/abs/2209.02570)
# * `tsallis_inf`: Zimmert & Seldin (2021). Tsallis-INF: An Optimal Algorithm for Stochastic and Adversarial
#   Bandits. [jmlr.org](https://jmlr.org/papers/v22/19-753.html)
# * `thompson`: Thompson (1933). On the Likelihood that One Unknown Probability Exceeds Another in View of the
#   Evidence of Two Samples. [doi:10.1093/biomet/25.3-4.285](https://doi.org/10.1093/biomet/25.3-4.285)
# * `thompson`: Agrawal & Goyal (2012). Analysis of Thompson Sampling for the Multi-armed Bandit Problem. [proceedings.mlr.press](https://proceedings.mlr.press/v23/agrawal12.html)
# * `fkm`: Flaxman, Kalai & McMahan (2005). Online convex optimization in the bandit setting: gradient descent
#   without a gradient. [arXiv:cs/0408007](https://arxiv.org/abs/cs/0408007)
# * `two_point`: Agarwal, Dekel & Xiao (2010). Optimal algorithms for online convex optimization with multi-point
#   bandit feedback. [www.learningtheory.org](https://www.learningtheory.org/colt2010/conference-website/papers/037agarwal.pdf)
# * `lil_ucb`: Jamieson, Malloy, Nowak & Bubeck (2014). lil’ucb: An optimal exploration algorithm for multi-armed
#   bandits. [proceedings.mlr.press](https://proceedings.mlr.press/v35/jamieson14.html)
