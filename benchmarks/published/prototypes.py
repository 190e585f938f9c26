"""Measures two published ideas that jaxdp has not built: hybrid counters in UCB, and greedy gradient steps.

`python -m benchmarks.published.prototypes` plays 100 runs of each row, in about ten minutes of a processor, and keeps
them; `--table` prints the tables of the kept results. `benchmarks.published.regret` keeps the rows of published code.
"""

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.published import regret
from benchmarks.published.matches import SEEDS, play_ours, summary
from benchmarks.published.players import (
    ARMS,
    CONTEXTS,
    DIM,
    MEANS,
    NUM_CONTEXTS,
    UNIT,
    WORLDS,
)
from jaxdp import bandits

RESULTS = Path(__file__).with_name("prototypes.json")
EPSILONS = 8.0, 4.0, 1.0
SHARES = 0.5, 0.8, 0.95  # the published counters have a half
EXPLORATION = 4.0  # as in ucb_central
FRACTIONS = np.array([0.2, 0.3, 0.45, 0.6, 0.72, 0.82, 0.9, 0.95])  # where Chernoff's bound is evaluated


class HybridCounters:
    """Noise of the hybrid counters of Chan, Shi & Song (2011), each with its own clock: [runs, arms].

    After n entries, with 2^k <= n < 2^(k + 1), the noise is the sum of k + 1 draws for closed blocks, and of the noise
    of a binary tree of k levels for the n - 2^k entries of the open block.

    Attributes:
        share: share of epsilon that closed blocks get.
        counts: entries so far.
        noise: noise of the estimates of their sums.
    """

    def __init__(self, generator: np.random.Generator, shape: tuple[int, int], epsilon: float, share: float):
        self.generator = generator
        self.block_scale, self.level_scale = 1 / (epsilon * share), 1 / (epsilon * (1 - share))
        self.counts, self.noise = np.zeros(shape, int), np.zeros(shape)
        self.closed, self.nodes = np.zeros(shape), np.zeros((*shape, 32))

    def feed(self, arms: np.ndarray) -> None:
        """Feeds an entry to one arm of each run."""
        runs = np.arange(len(arms))
        self.counts[runs, arms] += 1
        levels, entries = split(self.counts[runs, arms])
        nodes, closes = self.nodes[runs, arms], entries == 0
        node = np.where(closes, nodes.shape[1], np.bitwise_count((entries & -entries) - 1))  # the node that ends here
        nodes[np.arange(nodes.shape[1]) < node[:, None]] = 0
        block, fresh = self.generator.laplace(size=(2, len(arms)))
        opened = np.flatnonzero(~closes)
        nodes[opened, node[opened]] = (fresh * levels * self.level_scale)[opened]
        self.closed[runs, arms] += np.where(closes, block * self.block_scale, 0)
        self.nodes[runs, arms] = nodes
        self.noise[runs, arms] = self.closed[runs, arms] + nodes.sum(axis=1)

    def radius(self, tail: float) -> np.ndarray:
        """Returns a bound that the noise exceeds with probability at most exp(-tail), by Chernoff's inequality."""
        levels, entries = split(self.counts)
        draws = np.stack([levels + 1, np.bitwise_count(entries)], axis=-1)[..., None]
        scales = np.stack(np.broadcast_arrays(self.block_scale, levels * self.level_scale), axis=-1)[..., None]
        scales = np.where(draws > 0, scales, 0)
        slopes = FRACTIONS / scales.max(axis=-2, keepdims=True)
        cumulants = -(draws * np.log1p(-((scales * slopes) ** 2))).sum(axis=-2)
        return ((tail + cumulants) / slopes[..., 0, :]).min(axis=-1)


def split(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the floor of log2 of each count, and the count less this power of two; 0 counts as 1."""
    levels = np.frexp(np.maximum(counts, 1))[1] - 1
    return levels, np.maximum(counts, 1) - (1 << levels)


def play_hybrid(share: float, *, epsilon: float = 0.25, horizon: int = 100_000, runs: int = SEEDS) -> np.ndarray:
    """Returns the regret of each run of ucb_central's index on hybrid counters."""
    generator = np.random.default_rng(0)
    counters = HybridCounters(generator, (runs, len(MEANS)), epsilon, share)
    totals = np.zeros((runs, len(MEANS)))
    for round_ in range(horizon):
        arms = np.full(runs, round_)
        if round_ >= len(MEANS):
            plays, tail = counters.counts, EXPLORATION * math.log(round_)
            bounds = (totals + counters.noise + counters.radius(tail)) / plays + np.sqrt(tail / (2 * plays))
            arms = bounds.argmax(axis=1)
        totals[np.arange(runs), arms] += generator.random(runs) < MEANS[arms]
        counters.feed(arms)
    return counters.counts @ (MEANS.max() - MEANS)


def ball_report(generator: np.random.Generator, gradients: np.ndarray, epsilon: float) -> np.ndarray:
    """Returns epsilon-DP reports of vectors [runs, dim], unbiased where their norm is at most 1 (Duchi et al. 2018)."""
    runs, dim = gradients.shape
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    signs = np.where(generator.random((runs, 1)) < 0.5 + np.minimum(norms, 1) / 2, 1, -1)
    keeps = np.where(generator.random((runs, 1)) < 1 / (1 + math.exp(-epsilon)), 1, -1)
    directions = generator.normal(size=(runs, dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    sides = np.sign(np.sum(directions * gradients, axis=1, keepdims=True))
    length = math.sqrt(math.pi) / 2 * dim * math.gamma((dim + 1) / 2) / math.gamma(dim / 2 + 1) / math.tanh(epsilon / 2)
    return length * signs * keeps * sides * directions


def play_greedy(steps: str, epsilon: float, world: str, *, horizon: int = 20_000, runs: int = SEEDS) -> np.ndarray:
    """Returns the regret of each run of greedy steps along private gradients of squared errors (Han et al. 2021).

    "published" cuts gradients at norm 1, takes the step of the published code, and starts on the unit sphere, as our
    runs of that code do; "published from 0" starts at 0. "corrected" halves gradients, so that reports are unbiased,
    takes steps of d / (t + 20 d), starts at 0 and keeps the model in the unit ball.
    """
    generator, values = np.random.default_rng(0), WORLDS[world]
    theta = unit(generator.normal(size=(runs, DIM))) * values["theta_norm"]
    model = unit(generator.normal(size=(runs, DIM))) if steps == "published" else np.zeros((runs, DIM))
    total = np.zeros(runs)
    for round_ in range(horizon):
        contexts = unit(generator.normal(size=(runs, NUM_CONTEXTS, DIM)))
        means = (contexts @ theta[..., None])[..., 0]
        chosen = np.arange(runs), (contexts @ model[..., None])[..., 0].argmax(axis=1)
        rewards = means[chosen] + generator.uniform(-values["noise"], values["noise"], runs)
        total += means.max(axis=1) - means[chosen]
        gradients = contexts[chosen] * (np.sum(contexts[chosen] * model, axis=1) - rewards)[:, None]
        if steps != "corrected":
            step = math.sqrt(NUM_CONTEXTS) * DIM / (1000 * math.sqrt(round_ + 1))
            model -= step * ball_report(generator, gradients, epsilon)
        else:
            model -= 2 * DIM / (round_ + 20 * DIM) * ball_report(generator, gradients / 2, epsilon)
            model /= np.maximum(np.linalg.norm(model, axis=1, keepdims=True), 1)
    return total


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def measure(play: Callable[..., np.ndarray], rounds: int, *arguments: Any) -> dict[str, float]:
    """Returns the summary of regrets, with the processor time of a round of one run."""
    start = time.process_time()
    regrets = play(*arguments)
    return summary(regrets, (time.process_time() - start) / len(regrets) / rounds)


def measure_counters() -> dict[str, dict[str, float]]:
    horizon, central = 100_000, bandits.ucb_central
    blocks, values = central(num_arms=len(MEANS)), {"epsilon": 0.25}
    learners = {
        'jaxdp: `ucb_central(release="tree")`': central(num_arms=len(MEANS), release="tree", horizon=horizon),
        "jaxdp: `ucb_central()`": blocks,
        "jaxdp: `ucb_central()`, round by round": blocks._replace(blocks=(), counts=None),
    }
    rows = {name: play_ours(ARMS, horizon, learner, values) for name, learner in learners.items()}
    for share in SHARES:
        rows[f"hybrid counters, {share:.0%} of ε for closed blocks"] = measure(play_hybrid, horizon, share)
    return rows


def measure_greedy(epsilon: float, world: str) -> dict[str, dict[str, float]]:
    horizon = 20_000
    ball = bandits.contextual.linear_ucb(num_arms=NUM_CONTEXTS, dim=DIM, horizon=horizon, report="l2_ball")
    rows = {}
    for name, values in (("", {}), (", confidence_multiplier 0.1", {"confidence_multiplier": 0.1})):
        row = play_ours(world, horizon, ball, {"epsilon": epsilon, **values})
        rows[f'jaxdp: `linear_ucb(report="l2_ball")`{name}'] = row
    for steps in ("published", "published from 0", "corrected"):
        rows[f"greedy gradient steps, {steps}"] = measure(play_greedy, horizon, steps, epsilon, world)
    return rows


def published_rows(epsilon: float, world: str, repository: str) -> dict[str, dict[str, float]]:
    """Returns the kept rows of published code in a world at this epsilon."""
    kept = json.loads(regret.RESULTS.read_text())[repository].items()
    return {f"`{code}`": row["theirs"] for code, row in kept if (row["epsilon"], row["world"]) == (epsilon, world)}


def table(results: dict[str, dict]) -> str:
    """Returns results as Markdown, with the rows of published code."""
    counters = published_rows(0.25, ARMS, "keirp/private-bandits") | results["counters"]
    parts = [f"ε = 0.25, T = 100,000; {ARMS}.\n\n{regret.lines(counters)}"]
    for problem in results["greedy"]:
        epsilon, world = problem["epsilon"], problem["world"]
        published = published_rows(epsilon, world, "liangzp/LDP-Bandit")
        greedy = {code: row for code, row in published.items() if "Greedy" in code}
        parts.append(f"ε = {epsilon:g}, T = 20,000; {world}.\n\n{regret.lines(greedy | problem['rows'])}")
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS, help="JSON file for the rows")
    parser.add_argument("--table", action="store_true", help="print the tables of the stored results")
    options = parser.parse_args()
    if not options.table:
        greedy = [
            {"epsilon": epsilon, "world": world, "rows": measure_greedy(epsilon, world)}
            for world in (UNIT, CONTEXTS)
            for epsilon in EPSILONS
        ]
        results = {"counters": measure_counters(), "greedy": greedy}
        options.results.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    print(table(json.loads(options.results.read_text())))


if __name__ == "__main__":
    main()
