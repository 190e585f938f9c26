"""Measures the causes of three surprising results of the benchmark: `python benchmarks/suite/surprises.py`.

One minute of a processor. The page "Benchmark my learner" has the numbers.
"""

import math

import jax
import numpy as np

import jaxdp
from jaxdp.bandits.contextual import greedy_sgd, linear_ucb
from jaxdp.core import Learner
from jaxdp.experts import svt_lazy
from jaxdp.preferences import baseball1987
from jaxdp.suite import INSTANCES

ROUNDS, SEEDS = 20_000, 40  # of contextual.linear
DRAWS = 20_000  # private copies of the baseball season
EPSILON = 1.0
EXPERTS = 16  # of experts.stochastic


def regret(learner: Learner, **values: float) -> str:
    """Returns the mean regret in contextual.linear at epsilon 1, with the half width of its 95% interval."""
    run = jaxdp.simulator(learner, INSTANCES["contextual.linear"].make(), ROUNDS, checkpoints=[ROUNDS])
    keys = jax.vmap(lambda seed: jax.random.fold_in(jax.random.key(72), seed))(np.arange(SEEDS))
    runs = jax.jit(jax.vmap(run, in_axes=(0, None)))
    regrets = np.asarray(runs(keys, run.params(epsilon=EPSILON, **values))["pseudo_regret"])[:, -1]
    return f"{regrets.mean():.0f} +- {1.96 * regrets.std(ddof=1) / math.sqrt(SEEDS):.0f}"


def score_of_svt_lazy(**values: float) -> str:
    """Returns the mean score of `svt_lazy` in experts.stochastic with its 95% interval, and the draws in 100 rounds."""
    instance = INSTANCES["experts.stochastic"]
    horizon = instance.horizon(quick=False)
    learner = svt_lazy(num_experts=EXPERTS, horizon=horizon)
    draws = {"draws": lambda snapshot: snapshot.public.switches}
    run = jaxdp.simulator(learner, instance.make(), horizon, checkpoints=[100, horizon], record=draws)
    axes = {name: [value] for name, value in values.items()}
    results = jaxdp.sweep(run, axes=axes, num_seeds=SEEDS, key=jax.random.key(72), tile_size=SEEDS)
    scores = results[instance.metric].isel(round=-1).values.ravel() / instance.uniform(quick=False)
    interval = f"{scores.mean():.4f} +- {1.96 * scores.std(ddof=1) / math.sqrt(SEEDS):.4f}"
    return f"{interval}, {float(results.draws.isel(round=0).mean()):.1f} draws in 100 rounds"


def share_without_estimate(epsilon: float, rng: np.random.Generator) -> float:
    """Returns how often the debiased wins of some team are below 0 or above its number of games.

    In this case the likelihood of debiased labels grows without bound as the team's ability goes to -inf or inf.
    """
    table = baseball1987()
    truth = 1 / (1 + math.exp(-epsilon))  # probability of a true answer
    wins, games = np.zeros((DRAWS, len(table.items))), np.zeros(len(table.items))
    for (first, second), won, total in zip(table.pairs, table.wins, table.totals, strict=True):
        answers = rng.binomial(won, truth, DRAWS) + rng.binomial(total - won, 1 - truth, DRAWS)
        debiased = (answers - total * (1 - truth)) / (2 * truth - 1)
        wins[:, first] += debiased
        wins[:, second] += total - debiased
        games[[first, second]] += total
    return float(((wins < 0) | (wins > games)).any(1).mean())


def main() -> None:
    rng = np.random.default_rng(0)
    for epsilon in (0.1, 1.0, 10.0):
        print(
            f"rewards.baseball, epsilon {epsilon:g}: no finite estimate in {share_without_estimate(epsilon, rng):.2%}"
        )
    for report, values in (("gaussian", {"delta": 1e-6}), ("l2_ball", {})):
        learner = linear_ucb(num_arms=10, dim=5, horizon=ROUNDS, report=report)
        for multiplier in (1.0, 0.1):
            text = regret(learner, confidence_multiplier=multiplier, **values)
            print(f"contextual.linear, linear_ucb, {report} reports, {multiplier:g} of the bonus: {text}")
    print(f"contextual.linear, greedy_sgd: {regret(greedy_sgd(num_arms=10, dim=5))}")
    for values in ({"epsilon": 10.0}, {"epsilon": math.inf}, {"epsilon": math.inf, "threshold": 26.9}):
        text = ", ".join(f"{name} {value:g}" for name, value in values.items())
        print(f"experts.stochastic, svt_lazy, {text}: {score_of_svt_lazy(**values)}")


if __name__ == "__main__":
    main()
