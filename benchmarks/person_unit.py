"""Regret with a claim for a person, 20,000 people of 50 visits: `python benchmarks/person_unit.py [seeds] [figure]`.

Means are .5, .5, .5 and .6. Some minutes for 64 seeds. Prints a line for each policy: epsilon, the mean regret after
10^6 rounds with a standard error, and the difference to hearing every visit in the same worlds, where group privacy
gives each round 1/50 of epsilon. Three policies have a limit, and their lines say whether they keep it. Then prints
the seconds of one call by single rounds and by heard rounds, for first visits, after compiling. Draws the regret over
rounds to FIGURE, by default docs/gallery/person_unit.png.
"""

import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

import jaxdp
from jaxdp import bandits, per_person
from jaxdp.core import Learner

PEOPLE, EACH = 20_000, 50
HORIZON = PEOPLE * EACH
MEANS = (0.5, 0.5, 0.5, 0.6)
FIGURE = Path(__file__).parent.parent / "docs/gallery/person_unit.png"
LIMITS = {
    ("ucb_central, first visit", 1.0): 700,
    ("ucb, first visit", 1.0): 900,
    ("ucb_central, first visit", 0.1): 1400,
}
STYLES = {None: ":", 1: "-", 2: "--", 5: "-.", 10: (0, (1, 1, 4, 1))}  # of lines, by the visits that are heard
CHECKPOINTS = np.unique(np.geomspace(100, HORIZON, 60).astype(int)).tolist()


class Policy(NamedTuple):
    """A learner, the epsilon of a person, and how many visits are heard; None hears all visits."""

    name: str
    learner: Learner
    epsilon: float
    reports: int | None


def policies() -> Iterator[Policy]:
    """Yields the policies that are compared."""
    central = bandits.ucb_central(num_arms=4)
    for reports in (None, 1):
        yield _policy(central, 0.1, reports)
    for reports in (None, 1, 2, 5, 10):
        yield _policy(central, 1.0, reports)
    for learner in (bandits.ucb(num_arms=4), bandits.tsallis_inf(num_arms=4)):
        for reports in (None, 1):
            yield _policy(learner, 1.0, reports)
    for reports in (None, 1, 2):
        yield _policy(bandits.successive_elimination_central(num_arms=4), 1.0, reports)


def _policy(learner: Learner, epsilon: float, reports: int | None) -> Policy:
    assert learner.made_by is not None
    visits = {None: "every visit", 1: "first visit"}.get(reports, f"{reports} visits")
    return Policy(f"{learner.made_by.name}, {visits}", learner, epsilon, reports)


def regrets(policy: Policy, seeds: int, visits: jaxdp.Visits) -> np.ndarray:
    """Returns [seeds, checkpoints] pseudo-regret."""
    if policy.reports is None:  # the group of a person's visits, all of them
        learner, world, epsilon = policy.learner, bandits.bernoulli_bandit(MEANS), policy.epsilon / EACH
        assert (
            learner.guarantee(epsilon=epsilon).at_user_level(EACH, privacy_unit="one person").epsilon <= policy.epsilon
        )
    else:
        learner, epsilon = per_person(policy.learner, reports=policy.reports), policy.epsilon
        world = bandits.bernoulli_bandit(MEANS, visits=visits)
    run = jaxdp.simulator(learner, world, HORIZON, checkpoints=CHECKPOINTS)
    keys = jaxdp.lane_keys(jax.random.key(0), seeds)
    return np.asarray(jax.jit(jax.vmap(run, (0, None)))(keys, run.params(epsilon=epsilon))["pseudo_regret"])


def seconds(learner: Learner, engine: str, seeds: int, visits: jaxdp.Visits) -> float:
    """Returns the seconds of a compiled call with all seeds, the least of three."""
    world = bandits.bernoulli_bandit(MEANS, visits=visits)
    run = jaxdp.simulator(per_person(learner), world, HORIZON, engine=engine)
    inputs = jaxdp.lane_keys(jax.random.key(0), seeds), run.params(epsilon=1.0)
    call = jax.jit(jax.vmap(run, (0, None))).lower(*inputs).compile()

    def once() -> float:
        start = time.perf_counter()
        jax.block_until_ready(call(*inputs))
        return time.perf_counter() - start

    return min(once() for _ in range(3))


def draw(curves: list[tuple[Policy, np.ndarray]], seeds: int, path: Path) -> None:
    """Draws the mean regret over rounds at epsilon = 1: a color for each learner, a style for each number of visits."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8.5, 5), layout="constrained")
    colors: dict[str, str] = {}
    for policy, regret in curves:
        if policy.epsilon != 1.0:
            continue
        color = colors.setdefault(policy.name.partition(",")[0], f"C{len(colors)}")
        mean, error = regret.mean(0), 2 * regret.std(0, ddof=1) / np.sqrt(len(regret))
        label = f"{policy.name}: {mean[-1]:,.0f}"
        axes.plot(CHECKPOINTS, mean, color=color, linestyle=STYLES[policy.reports], label=label)
        axes.fill_between(CHECKPOINTS, mean - error, mean + error, color=color, alpha=0.25, linewidth=0)
    gap = max(MEANS) - min(MEANS)
    worst = gap * np.asarray(CHECKPOINTS)
    axes.plot(CHECKPOINTS, worst, color="gray", linewidth=0.8, label=f"always a worst arm: {worst[-1]:,.0f}")
    axes.set(xscale="log", yscale="log", xlabel="rounds", ylabel="pseudo-regret", ylim=(10, None))
    axes.set_title(
        f"ε = 1 for a person; {PEOPLE:,} people of {EACH} visits, {seeds} seeds, ±2 standard errors", fontsize=10
    )
    axes.legend(fontsize=7, title="regret after 10⁶ rounds", title_fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(path, dpi=130)


def main(seeds: int, path: Path) -> None:
    """Prints the table and draws the figure."""
    visits = jaxdp.Visits.random(people=PEOPLE, each=EACH)
    curves: list[tuple[Policy, np.ndarray]] = []
    group = np.zeros(seeds)  # the regret of every visit, which comes first
    for policy in policies():
        start = time.perf_counter()
        regret = regrets(policy, seeds, visits)
        curves.append((policy, regret))
        last = regret[:, -1]
        if policy.reports is None:
            group = last
        line = f"{policy.name:44s} epsilon {policy.epsilon:<4g} {last.mean():10,.0f} +- {error_of(last):,.0f}"
        if policy.reports is not None:
            difference = last - group
            line += f"   less every visit: {difference.mean():,.0f} +- {error_of(difference):,.0f}"
        limit = LIMITS.get((policy.name, policy.epsilon))
        if limit is not None:
            line += f"   at most {limit:,}: {'yes' if last.mean() <= limit else 'NO'}"
        print(f"{line}   ({time.perf_counter() - start:.0f} s)", flush=True)
    for learner in (bandits.ucb_central(num_arms=4), bandits.ucb(num_arms=4)):
        rounds, heard = (seconds(learner, engine, seeds, visits) for engine in ("rounds", "heard"))
        print(
            f"{learner!r}: rounds {rounds:.2f} s, heard {heard:.3f} s, {rounds / heard:.0f} times as fast", flush=True
        )
    draw(curves, seeds, path)


def error_of(values: np.ndarray) -> float:
    """Returns the standard error of the mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 64, Path(sys.argv[2]) if len(sys.argv) > 2 else FIGURE)
