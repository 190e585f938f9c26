"""The auditor's power: trials until each known mistake is flagged, and its bounds next to jax_privacy's auditor.

Run as `python benchmarks/audit_power.py`, or with `mistakes` or `peer`; `peer` takes names of entries, all without,
`--keys N`, and `--splits N`.

`peer` prints, for claims of epsilon, pure or at a delta, our lower bound with 95% confidence from 10^6 trials under
each of an entry's neighbours, along its first path, and the bound of jax_privacy's `CanaryScoreAuditor` on the same
outputs. That auditor takes one number for each output. It is given two, and the better one counts:

- natural: the score that its user would write. That is the exact log likelihood ratio where it is known (Laplace and
  Gaussian noise, K-norm noise, and mechanisms of few outputs with a written distribution), else the output if it is
  one number, else the output's product with the difference of means, in units of each number's spread, as seen in the
  first tenth of the outputs; that tenth is then not used again;
- ours: the score that our audit learnt in that tenth, and by which it then got its bound.

It has all other outputs, as it has no part of its own that shapes scores. The best of its strategies counts, which
flatters it: the best of several bounds that hold with 95% confidence each holds less often.
"""

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measure import machine
from benchmarks.peers import canary_scores
from jaxdp import registry
from jaxdp.audit import Attack, AuditResult, audit, black_box
from jaxdp.audit.events import Guess
from jaxdp.audit.sampling import Outputs, Score, _parts, evaluate
from tests.privacy.mutants import ZOO

KEYS = 10
TRIALS = 10**6
CONFIDENCE = 0.95
FEWEST, MOST = 1000, 2_048_000

PARTS = ("mistakes", "peer")


def bench_mistakes() -> None:
    print(f"trials under each input until {KEYS} of {KEYS} keys flag a mistake, by doubling from {FEWEST}")
    for name, make in ZOO.items():
        case, trials, start = make(), FEWEST, time.perf_counter()
        if case.trials > MOST:
            print(f"  {name:<48}not tried: {case.trials:,} in the tests")
            continue
        while trials <= MOST:
            if all(audit(jax.random.key(k), case.wrong, trials=trials).verdict == "violated" for k in range(KEYS)):
                break
            trials *= 2
        print(f"  {name:<48}{trials:>9,}   {time.perf_counter() - start:6.1f} s for the search")


# ---- natural scores: (weights, Outputs) -> [n] -----------------------------------------------------------------------
def _number(weights: None, outputs: Outputs) -> np.ndarray:
    return outputs.numbers[:, 0]


def _product(weights: np.ndarray, outputs: Outputs) -> np.ndarray:
    return np.where(np.isfinite(outputs.numbers), outputs.numbers, 0) @ weights


def _by_l1_distance(weights: tuple[np.ndarray, np.ndarray], outputs: Outputs) -> np.ndarray:
    """Returns |x - b| - |x - a|, summed over numbers, without rounding of differences: it would reveal low bits."""
    first, second = (centre[None] for centre in weights)
    reach = np.abs(first - second)
    return np.sum(np.clip(np.sign(first - second) * (2 * outputs.numbers - first - second), -reach, reach), axis=1)


def _by_l2_distance(weights: tuple[np.ndarray, np.ndarray], outputs: Outputs) -> np.ndarray:
    first, second = weights
    far = sum(np.linalg.norm(outputs.numbers - centre[None], axis=1) for centre in weights)
    return ((2 * outputs.numbers - first[None] - second[None]) @ (first - second)) / far


def _by_distribution(weights: tuple[np.ndarray, np.ndarray], outputs: Outputs) -> np.ndarray:
    outcomes, ratios = weights
    return ratios[np.argmin(np.abs(outputs.numbers[:, :1] - outcomes[None]), axis=1)]


# For these the output without noise is known, `exact`, and noise is the same for any input.
DISTANCES = {
    "laplace": _by_l1_distance,
    "vector_randomizer_l1": _by_l1_distance,
    "scalar_randomizer_laplace": _by_l1_distance,
    "k_norm": _by_l2_distance,
}
SPHERICAL = (
    "gaussian",
    "classical_gaussian",
    "scalar_randomizer_gaussian",
    "vector_randomizer_l2",
    "moment_randomizer",
)


def natural(name: str, attack: Attack, distributions: Any, shaping: tuple[Outputs, Outputs]) -> tuple[Score, bool]:
    """Returns the score that a user of the peer would write, and whether outputs shaped it."""
    dtype = shaping[0].numbers.dtype
    if name in DISTANCES or name in SPHERICAL:
        assert attack.exact is not None
        centres = [np.ravel(attack.exact(jnp.asarray(x))).astype(dtype) for x in attack.neighbours]
        if name in DISTANCES:
            return Score(DISTANCES[name], tuple(centres), "log ratio"), False
        return Score(_product, centres[0] - centres[1], "log ratio"), False
    if distributions is not None and name in registry.MECHANISMS:  # with outputs that are single numbers
        first, second = distributions()
        outcomes = sorted(set(first) & set(second))
        ratios = [np.log(first[outcome]) - np.log(second[outcome]) for outcome in outcomes]
        return Score(_by_distribution, (np.asarray(outcomes, dtype), np.asarray(ratios, dtype)), "log ratio"), False
    if shaping[0].numbers.shape[1] == 1:
        return Score(_number, None, "output"), False
    finite = [np.where(np.isfinite(x.numbers), x.numbers, 0) for x in shaping]
    apart = finite[0].mean(axis=0) - finite[1].mean(axis=0)
    spread = np.concatenate(finite).var(axis=0)
    return Score(_product, np.where(spread > 0, apart / np.where(spread > 0, spread, 1), 0), "product"), True


# ---- our audit, with its outputs kept --------------------------------------------------------------------------------
class Kept:
    """An audit that keeps a score of the outputs, in place of numbers of them above thresholds, to count the same."""

    natural: Score
    is_fitted: bool

    def __init__(self, name: str, attack: Attack, distributions: Any) -> None:
        self.name, self.attack, self.distributions = name, attack, distributions
        self.counted: list[dict[int, np.ndarray]] = []  # of each call, by the score's identity
        self.guesses: list[Guess] = []
        self.proved: list[float] = []

    def audit(self, key: jax.Array, trials: int) -> AuditResult:
        """Calls `jaxdp.audit.audit`."""
        learn, choose, draw = black_box.learn_scores, black_box.choose, black_box.draw
        bound = black_box.guess_bound
        self.shaping: list[Outputs] = []

        def drawn(*given: Any, **more: Any) -> Outputs:
            self.shaping.append(draw(*given, **more))
            return self.shaping[-1]

        def learnt(key: jax.Array, first: Outputs, second: Outputs, **more: Any) -> list[Score]:
            self.natural, self.is_fitted = natural(self.name, self.attack, self.distributions, (first, second))
            return learn(key, first, second, **more)

        def chosen(*given: Any, **more: Any) -> list[Guess]:
            self.guesses = choose(*given, **more)
            return self.guesses

        def bounded(*given: Any, **more: Any) -> float:
            self.proved.append(bound(*given, **more))
            return self.proved[-1]

        spies = {"draw": drawn, "learn_scores": learnt, "choose": chosen, "guess_bound": bounded}
        spies["histogram"] = self.histogram
        with mock.patch.multiple(black_box, **spies):
            return audit(key, self.attack, trials=trials, confidence=CONFIDENCE)

    def histogram(
        self, key: Any, release: Any, params: Any, data: Any, scores: Any, thresholds: Any, *, trials: int, **sizes: int
    ) -> np.ndarray:
        """Computes `jaxdp.audit.sampling.histogram` of the same outputs."""
        every = [*scores, self.natural]
        parts = _parts(jax.random.fold_in(key, 0), release, params, data, trials=trials, **sizes)
        values = np.concatenate([[evaluate(score, outputs) for score in every] for outputs in parts], axis=1)
        self.counted.append({id(score): row for score, row in zip(every, values, strict=True)})
        ordered = np.sort(values[:-1], axis=1)
        limits = np.asarray(thresholds).astype(values.dtype)
        below = [np.searchsorted(row, own, side="right") for row, own in zip(ordered, limits, strict=True)]
        return trials - np.stack(below)

    def scores(self, score: Score, *, with_shaping: bool) -> list[np.ndarray]:
        """Returns scores of the outputs under either input, with or without those that shaped our scores."""
        found = []
        for side in (0, 1):
            parts = [calls[id(score)] for calls in self.counted[side::2]]
            if with_shaping:
                parts.append(evaluate(score, self.shaping[side]))
            found.append(np.concatenate(parts))
        return found if found[0].mean(dtype=np.float64) >= found[1].mean(dtype=np.float64) else [-x for x in found]

    @property
    def learnt(self) -> Score:
        """The score that gave our bound."""
        return self.guesses[int(np.argmax(self.proved))][0].score


def bench_peer(names: Iterable[str], keys: int, splits: int) -> None:
    """Prints means over several keys: ours, and the peer's for its best score and strategy."""
    peer = canary_scores.load()
    if peer is None:
        print("jax_privacy is not installed: pip install jax-privacy --no-deps")
        return
    print(f"lower bounds with {CONFIDENCE:.0%} confidence, as shares of the claim, beside jax_privacy {peer.version}")
    print(f"means of {keys} keys" if keys > 1 else "one key")
    print(f"{'':<52}{'claim':>7}{'delta':>8}{'ours':>8}{'peer':>8}   the peer's score; threshold")
    for name, target in registry.attacks(names or None).items():
        claim = target.guarantee
        if claim.kind not in ("pure", "approximate") or not target.attacks:
            continue
        ours: list[float] = []
        theirs: dict[str, list[float]] = {}
        seconds = np.zeros(2)
        for key in range(keys):
            kept = Kept(name, next(iter(target.attacks.values())), target.distributions)
            start = time.process_time()
            result = kept.audit(jax.random.key(key), TRIALS)
            middle = time.process_time()
            ours.append(result.lower_bound / result.claimed)
            for score, sides in {
                f"natural, {kept.natural.name}": kept.scores(kept.natural, with_shaping=not kept.is_fitted),
                "ours": kept.scores(kept.learnt, with_shaping=False),
            }.items():
                options = {"delta": result.delta, "confidence": CONFIDENCE, "splits": splits}
                for how, bound in canary_scores.bounds(peer, *sides, **options).items():
                    theirs.setdefault(f"{score}; {how}", []).append(bound / result.claimed)
            seconds += middle - start, time.process_time() - middle
        means = {how: float(np.mean(shares)) for how, shares in theirs.items()}
        best = max(means, key=lambda how: means[how])
        mine = float(np.mean(ours))
        error = np.std(np.asarray(ours) - theirs[best], ddof=1) / np.sqrt(keys) if keys > 1 else np.nan
        print(
            f"{name:<52}{claim.epsilon:>7.4g}{claim.delta:>8.1g}{mine:>8.4f}{means[best]:>8.4f}   {best}"
            + (f"; difference {mine - means[best]:.4f} +- {error:.4f}" if keys > 1 else "")
            + f"   ({seconds[0]:.0f} s and {seconds[1]:.0f} s)"
            + ("" if mine >= means[best] else "   BELOW"),
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=PARTS, help="part to measure; by default all")
    parser.add_argument("names", nargs="*", help="entries for `peer`; by default all")
    parser.add_argument("--keys", type=int, default=1, help="number of keys that `peer` averages over")
    parser.add_argument("--splits", type=int, default=0, help="splits in the peer's strategy of many splits")
    given = parser.parse_args()
    print(machine())
    if given.part in (None, "mistakes"):
        bench_mistakes()
    if given.part in (None, "peer"):
        bench_peer(given.names, given.keys, given.splits)


if __name__ == "__main__":
    main()
