"""Measures `greedy_sgd` beside `linear_ucb(report="l2_ball")`, with random contexts, and with arms that never change.

`python -m benchmarks.published.greedy` plays 100 runs of each row, in about ten minutes of a processor, and keeps them;
`--table` prints the table of the kept results.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxdp
from benchmarks.published.matches import SEEDS, summary
from benchmarks.published.players import CONTEXTS, DIM, NUM_CONTEXTS, UNIT, WORLDS
from jaxdp.bandits.contextual import greedy_sgd, linear_contexts, linear_ucb

RESULTS = Path(__file__).with_name("greedy.json")
EPSILONS = 0.5, 1.0, 2.0, 4.0, 8.0
HORIZON = 20_000
SIZES = {"num_arms": NUM_CONTEXTS, "dim": DIM}
BEST_OF_FIVE = np.array([0.5, 0.3, 0.3, 0.3, 0.3])
# By name: the options of `linear_contexts`, and its values.
PROBLEMS: dict[str, tuple[dict[str, Any], dict[str, float]]] = {
    UNIT: (SIZES, WORLDS[UNIT]),
    CONTEXTS: (SIZES, WORLDS[CONTEXTS]),
    "contexts on the sphere, d = 10, 5 arms, |θ| = 1/2, uniform noise of 1/2": ({"num_arms": 5, "dim": 10}, {}),
    "contexts on the sphere, d = 2, 4 arms, |θ| = 1/2, uniform noise of 1/2": ({"num_arms": 4, "dim": 2}, {}),
    "contexts on the sphere, d = 5, 10 arms, |θ| = 1/2, rewards 1 or -1": ({**SIZES, "rewards": "binary"}, {}),
    "contexts on the sphere, d = 5, 10 arms, |θ| = 1/2, uniform noise of 1/2, gap 0.3": ({**SIZES, "gap": 0.3}, {}),
    "five unit vectors in every round, means 0.5 and four times 0.3, uniform noise of 1/2": (
        {"contexts": np.eye(len(BEST_OF_FIVE)), "theta": BEST_OF_FIVE},
        {},
    ),
    "two unit vectors in every round, means 0.8 and 0.2, uniform noise of 1/2": (
        {"contexts": np.eye(2), "theta": np.array([0.8, 0.2])},
        {},
    ),
}


def measure(options: dict[str, Any], values: dict[str, float]) -> dict[float, dict[str, dict[str, float]]]:
    """Returns the rows of a problem, by epsilon; a learner is compiled once."""
    world = linear_contexts(**options)
    fixed = options.get("contexts")
    num_arms, dim = (options["num_arms"], options["dim"]) if fixed is None else fixed.shape
    learners = {
        "linear_ucb": linear_ucb(num_arms=num_arms, dim=dim, horizon=HORIZON, report="l2_ball"),
        "greedy_sgd": greedy_sgd(num_arms=num_arms, dim=dim),
    }
    rows = {
        '`linear_ucb(report="l2_ball")`': ("linear_ucb", {}),
        '`linear_ucb(report="l2_ball")`, confidence_multiplier 0.1': ("linear_ucb", {"confidence_multiplier": 0.1}),
        "`greedy_sgd()`": ("greedy_sgd", {}),
        "`greedy_sgd()`, gradient_bound 1": ("greedy_sgd", {"gradient_bound": 1.0}),
    }
    runs = {name: jaxdp.simulator(learner, world, horizon=HORIZON, checkpoints=2) for name, learner in learners.items()}
    programs = {
        name: jax.jit(jax.vmap(lambda *lane, run=run: run(*lane)["pseudo_regret"], in_axes=(0, None)))
        for name, run in runs.items()
    }
    keys = jaxdp.lane_keys(jax.random.key(0), SEEDS)
    results: dict[float, dict[str, dict[str, float]]] = {epsilon: {} for epsilon in EPSILONS}
    for epsilon in EPSILONS:
        for title, (name, changed) in rows.items():
            arguments = keys, runs[name].params(epsilon=epsilon, **changed, **values)
            if epsilon == EPSILONS[0]:
                jax.block_until_ready(programs[name](*arguments))  # compiles
            start = time.process_time()
            regrets = np.asarray(programs[name](*arguments))
            row = summary(regrets[:, -1], (time.process_time() - start) / SEEDS / HORIZON)
            second_half = float((regrets[:, -1] - regrets[:, 0]).mean())
            results[epsilon][title] = {**row, "second_half": round(second_half, 1)}
    return results


def table(results: list[dict[str, Any]]) -> str:
    """Returns regrets, and the part of the second half of rounds, as Markdown: a table for each problem."""
    parts = []
    for problem in results:
        budgets = problem["rows"]
        lines = [
            f"T = {HORIZON:,}; {problem['world']}.\n",
            f"| learner | {' | '.join(f'ε = {epsilon}' for epsilon in budgets)} |",
            f"|---|{'---|' * len(budgets)}",
        ]
        for learner in next(iter(budgets.values())):
            cells = [
                f"{row['regret']:,.0f} ± {row['error']:,.0f} ({row['second_half'] / row['regret']:.0%})"
                for row in (rows[learner] for rows in budgets.values())
            ]
            lines.append(f"| {learner} | {' | '.join(cells)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS, help="JSON file for the rows")
    parser.add_argument("--table", action="store_true", help="print the table of the stored results")
    options = parser.parse_args()
    if not options.table:
        results = [
            {"world": world, "rows": {f"{epsilon:g}": rows for epsilon, rows in measure(*problem).items()}}
            for world, problem in PROBLEMS.items()
        ]
        options.results.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    print(table(json.loads(options.results.read_text())))


if __name__ == "__main__":
    main()
