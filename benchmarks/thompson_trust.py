"""Regret of Thompson sampling with a curator against local reports: `python benchmarks/thompson_trust.py [--seeds N]`.

Eight arms of means .7 and .5 (seven times), and of means .55 and .5, over 10^6 rounds. Seeds are paired: both learners
meet the same world. A cell is one world, trust model and epsilon. Each is written to thompson_trust.json when all its
seeds have been played; a second run plays only what is missing. At epsilon = inf both are the same up to blocks.
`--horizon 10000 --seeds 20 --out FILE` is a first look. Prints a table in Markdown, and draws the regrets to the file
of `--plot`.
"""

import argparse
import inspect
import json
import math
import os
import time
from pathlib import Path

import jax
import numpy as np

import jaxdp
from jaxdp import bandits, plotting

PATH = Path(__file__).with_name("thompson_trust.json")
NUM_ARMS, HORIZON = 8, 10**6
BEST, OTHERS = (0.7, 0.55), 0.5
EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 4.0, math.inf)
LEARNERS = {"central": bandits.thompson_central, "local": bandits.thompson}
LABELS = {"central": "Thompson sampling, curator", "local": "Thompson sampling, local reports"}
COLORS = ("#0072B2", "#D55E00")
Cells = dict[str, list[float]]


def cell_name(horizon: int, best: float, epsilon: float, trust: str) -> str:
    learner = f"{trust} {values}" if (values := format_defaults(trust)) else trust
    return f"T={horizon} means={best:g}/{OTHERS:g} eps={epsilon:g} {learner}"


def format_defaults(trust: str) -> str:
    """Returns the learner's default values as text: regrets at other values are other cells."""
    parameters = inspect.signature(LEARNERS[trust](num_arms=NUM_ARMS).params).parameters
    return " ".join(f"{name}={p.default:g}" for name, p in parameters.items() if p.default is not p.empty)


def read(path: Path) -> Cells:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(path: Path, cells: Cells) -> None:
    """Replaces the file in one step; other cells that another run added in the meantime are kept."""
    lines = [f"{json.dumps(name)}: {json.dumps(regrets)}" for name, regrets in sorted((read(path) | cells).items())]
    partial = path.with_suffix(f".{os.getpid()}.tmp")
    partial.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    partial.replace(path)


def play(horizon: int, best: float, trust: str, epsilons: tuple[float, ...], num_seeds: int, path: Path) -> None:
    """Plays the missing seeds of one world and learner, one cell after the other, in one compiled program."""
    world = bandits.bernoulli_bandit([best] + [OTHERS] * (NUM_ARMS - 1))
    run = jaxdp.simulator(LEARNERS[trust](num_arms=NUM_ARMS), world, horizon, checkpoints=[horizon])
    runs = jax.jit(jax.vmap(run, in_axes=(0, None)))
    for epsilon in epsilons:
        name, start = cell_name(horizon, best, epsilon, trust), time.monotonic()
        regrets = read(path).get(name, [])
        if len(regrets) >= num_seeds:
            continue
        keys = jax.vmap(lambda seed: jax.random.fold_in(jax.random.key(0), seed))(np.arange(len(regrets), num_seeds))
        played = np.asarray(runs(keys, run.params(epsilon=epsilon))["pseudo_regret"])[:, -1]
        regrets = [*regrets, *(round(float(regret), 2) for regret in played)]
        write(path, {name: regrets})
        print(
            f"{name}: mean {np.mean(regrets):.1f} of {len(regrets)} seeds, {time.monotonic() - start:.0f} s", flush=True
        )


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> tuple[float, float]:
    """Returns the ratio of the means of paired samples, [seeds] each, and its standard error by the delta method."""
    value = numerator.mean() / denominator.mean()
    rest = numerator - value * denominator
    return float(value), float(rest.std(ddof=1) / math.sqrt(len(rest)) / denominator.mean())


def table(cells: Cells, horizon: int) -> list[str]:
    """Returns lines of means with standard errors, and ratios over the seeds that both learners have played."""
    lines = ["| means | ε | seeds | curator | local reports | curator / local |", "|---|---|---|---|---|---|"]
    for best in BEST:
        for epsilon in EPSILONS:
            regrets = regrets_of(cells, horizon, best, epsilon)
            shown = [f"{each.mean():,.0f} ± {standard_error(each):.0f}" if len(each) > 1 else "-" for each in regrets]
            both = min(map(len, regrets))
            paired = "{:.2f} ± {:.2f}".format(*ratio(*(each[:both] for each in regrets))) if both > 1 else "-"
            budget = "∞" if math.isinf(epsilon) else f"{epsilon:g}"
            lines.append(f"| {best:g} and {OTHERS:g} | {budget} | {both} | {shown[0]} | {shown[1]} | {paired} |")
    return lines


def regrets_of(cells: Cells, horizon: int, best: float, epsilon: float) -> list[np.ndarray]:
    """Returns the played regrets, [seeds] each, of both learners."""
    return [np.asarray(cells.get(cell_name(horizon, best, epsilon, trust), [])) for trust in LEARNERS]


def standard_error(regrets: np.ndarray) -> float:
    return regrets.std(ddof=1) / math.sqrt(len(regrets))


def draw(cells: Cells, horizon: int, path: Path) -> None:
    """Draws mean regrets with two standard errors against epsilon, one panel for each world."""
    figure = plotting.panels(1, len(BEST), width=3.2)
    finite = [epsilon for epsilon in EPSILONS if math.isfinite(epsilon)]
    for axes, best in zip(figure.axes, BEST, strict=True):
        by_learner = zip(*(regrets_of(cells, horizon, best, epsilon) for epsilon in EPSILONS), strict=True)
        for trust, regrets, color, marker in zip(LEARNERS, by_learner, COLORS, "os", strict=True):
            means, errors = ([measure(each) for each in regrets] for measure in (np.mean, standard_error))
            doubled = 2 * np.asarray(errors[:-1])
            axes.errorbar(finite, means[:-1], doubled, color=color, marker=marker, ms=4, lw=1.2, label=LABELS[trust])
            axes.axhline(means[-1], color=color, ls=":", lw=1)
        axes.set(xscale="log", yscale="log", xlabel="ε", title=f"best mean {best:g}, others {OTHERS:g}")
        axes.set_xticks(finite, [f"{epsilon:g}" for epsilon in finite])
        axes.minorticks_off()
    figure.axes[0].set_ylabel(f"regret after {horizon:,} rounds")
    figure.explain(title="Regret of Thompson sampling", note="8 arms. Dotted: without privacy. Two standard errors.")
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="seeds of each cell, >= 2")
    parser.add_argument("--horizon", type=int, default=HORIZON, help="rounds")
    parser.add_argument(
        "--trust",
        nargs="*",
        choices=LEARNERS,
        default=[*LEARNERS],
        help="learners to play; without a name, only the table",
    )
    parser.add_argument("--best", nargs="+", type=float, choices=BEST, default=BEST, help="means of the best arm")
    parser.add_argument("--epsilons", nargs="+", type=float, choices=EPSILONS, default=EPSILONS)
    parser.add_argument("--out", type=Path, default=PATH)
    parser.add_argument("--plot", type=Path, help="a file for a figure, which needs all cells")
    options = parser.parse_args()
    for trust in options.trust:
        for best in options.best:
            play(options.horizon, best, trust, tuple(options.epsilons), options.seeds, options.out)
    print("\n".join(table(read(options.out), options.horizon)))
    if options.plot:
        draw(read(options.out), options.horizon, options.plot)


if __name__ == "__main__":
    main()
