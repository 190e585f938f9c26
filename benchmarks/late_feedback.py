"""Regret with late and batched feedback: `python benchmarks/late_feedback.py [seeds] [figure]`.

Six learners play 20,000 rounds with feedback at once, with delays of 10, 100 and 1,000 rounds, and in batches of 100.
Prints the mean regret and a standard error at epsilon = 1 and without privacy. Draws the table to FIGURE, by default
docs/gallery/late_feedback.png. Some minutes for 32 seeds.
"""

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

import jaxdp
from jaxdp import bandits, dueling, experts
from jaxdp.core import Environment, Learner

HORIZON = 20_000
BUDGETS = (1.0, float("inf"))
ARMS = bandits.bernoulli_bandit([0.5, 0.5, 0.5, 0.6])
DUELS = dueling.utility_duels([0.0, 0.0, 0.0, 1.0])
LOSSES = experts.stochastic_losses([0.5, 0.5, 0.5, 0.4])
LEARNERS: dict[str, tuple[Learner, Environment]] = {
    "ucb": (bandits.ucb(num_arms=4), ARMS),
    "ucb_central": (bandits.ucb_central(num_arms=4), ARMS),
    "tsallis_inf": (bandits.tsallis_inf(num_arms=4), ARMS),
    "explore_then_commit": (bandits.explore_then_commit(num_arms=4, explore_rounds=1_200), ARMS),
    "rucb": (dueling.rucb(num_arms=4), DUELS),
    "exponential_weights": (experts.exponential_weights(num_experts=4, horizon=HORIZON), LOSSES),
}
WORLDS: dict[str, Callable[[Environment], Environment]] = {
    "at once": lambda world: world,
    "delay 10": lambda world: jaxdp.delayed(world, 10),
    "delay 100": lambda world: jaxdp.delayed(world, 100),
    "delay 1,000": lambda world: jaxdp.delayed(world, 1_000),
    "batches of 100": lambda world: jaxdp.batched(world, 100),
}
FIGURE = Path(__file__).parent.parent / "docs/gallery/late_feedback.png"


def regrets(learner: Learner, world: Environment, seeds: int) -> dict[float, np.ndarray]:
    """Returns the regret at the horizon for each seed, [seeds], by epsilon."""
    run = jaxdp.simulator(learner, world, HORIZON, outcomes=["pseudo_regret"])
    lanes, keys = jax.jit(jax.vmap(run, (0, None))), jaxdp.lane_keys(jax.random.key(0), seeds)
    points = {epsilon: run.params(epsilon=epsilon) for epsilon in BUDGETS}
    return {epsilon: np.asarray(lanes(keys, point)["pseudo_regret"])[:, -1] for epsilon, point in points.items()}


def draw(table: dict[str, dict[str, dict[float, np.ndarray]]], seeds: int, path: Path) -> None:
    """Draws the regret of each learner over the ways in which feedback comes."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(9, 5.2), layout="constrained", sharex=True)
    for panel, (name, rows) in zip(axes.flat, table.items(), strict=True):
        for epsilon in BUDGETS:
            means = [row[epsilon].mean() for row in rows.values()]
            errors = [2 * row[epsilon].std(ddof=1) / np.sqrt(seeds) for row in rows.values()]
            label = f"ε = {epsilon:g}" if np.isfinite(epsilon) else "no privacy"
            panel.errorbar(range(len(rows)), means, errors, marker="o", capsize=3, label=label)
        panel.set_title(name, fontsize=10)
        panel.set_xticks(range(len(rows)), list(rows), rotation=30, ha="right", fontsize=8)
        panel.set_ylim(0, None)
    axes[0, 0].legend(fontsize=8)
    figure.supylabel("pseudo-regret", fontsize=10)
    figure.suptitle(f"Regret after {HORIZON:,} rounds, {seeds} seeds, ±2 standard errors", fontsize=10)
    figure.savefig(path, dpi=130)


def main(seeds: int, path: Path) -> None:
    """Prints the table and draws the figure."""
    table: dict[str, dict[str, dict[float, np.ndarray]]] = {}
    for name, (learner, world) in LEARNERS.items():
        table[name] = {}
        for how, late in WORLDS.items():
            found = table[name][how] = regrets(learner, late(world), seeds)
            cells = [f"{x.mean():8,.0f} +- {x.std(ddof=1) / np.sqrt(seeds):4,.0f}" for x in found.values()]
            print(f"{name:20s} {how:15s} {'   '.join(cells)}", flush=True)
    draw(table, seeds, path)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 32, Path(sys.argv[2]) if len(sys.argv) > 2 else FIGURE)
