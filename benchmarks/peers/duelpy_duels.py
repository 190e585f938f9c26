"""Plays duelpy's algorithms; run by another Python, one with old enough packages. Nothing of jaxdp is imported.

As a script it reads JSON from its argument: {"name": "rucb" or "double_thompson", "matrix": [[...]], "horizon": ...,
"exploration_rate": ..., "lanes": ..., "seed": ..., "mended": ...}, and prints {"seconds": of all lanes, "regrets": one
a lane, "versions": ...}. A regret is twice the sum of duelpy's AverageRegret: the leads of the Condorcet winner over
both arms.

duelpy 1.0.0 departs from the papers; `mended` undoes that, so that regrets can be compared.

* RelativeUCB tests `duel(...) < 0`, which a truth value never is: the left arm always counts as the winner. It never
  lets the champion duel with itself, clips upper bounds to 1, and has 1 where no duel was.
* DoubleThompsonSampling reads rows of the sampled matrix and of the lower bounds where the paper has columns: the right
  arm is the one that the left arm beats most surely.
"""

# pyright: reportMissingImports=false

import json
import platform
import sys
import time

import numpy as np
from duelpy.algorithms import double_thompson_sampling, relative_ucb
from duelpy.feedback import MatrixFeedback
from duelpy.stats import PreferenceEstimate
from duelpy.stats.metrics import AverageRegret
from duelpy.stats.preference_matrix import PreferenceMatrix
from duelpy.util.utility_functions import argmax_set


class Counted(MatrixFeedback):
    """Counts the duels of each pair."""

    def __init__(self, matrix, random_state):
        """Starts before the first duel."""
        super().__init__(matrix, random_state=random_state)
        self.duels = np.zeros(matrix.shape, int)

    def duel(self, arm_i_index, arm_j_index):
        """Returns whether the first arm wins."""
        self.duels[arm_i_index, arm_j_index] += 1
        return super().duel(arm_i_index, arm_j_index)


class Signed(Counted):
    """Answers 1 or -1, which RelativeUCB can read."""

    def duel(self, arm_i_index, arm_j_index):
        """Returns 1 if the first arm wins, else -1."""
        return 1 if super().duel(arm_i_index, arm_j_index) else -1


class Unclipped(PreferenceEstimate):
    """Upper bounds as published: 2 where there was no duel."""

    def get_upper_estimate_matrix(self):
        """Adds up means and radii."""
        never = (self.wins + self.wins.T == 0) & ~np.eye(self.num_arms, dtype=bool)
        return PreferenceMatrix(self._cached_mean_estimate + self.get_radius_matrix() + 0.5 * never)


class MendedDoubleThompson(double_thompson_sampling.DoubleThompsonSampling):
    """The right arm by columns."""

    def _choose_second_candidate(self, champion):
        lower = self.preference_estimate.get_lower_estimate_matrix().preferences[:, champion]
        sampled = self.preference_estimate.sample_preference_matrix(self.random_state).preferences[:, champion]
        return self.random_state.choice(argmax_set(np.where(lower <= 0.5, sampled, -1.0)))


def rivals(bounds, champion):
    """Returns the arms of the largest upper bound; the champion only if it is alone."""
    best = argmax_set(bounds)
    others = np.setdiff1d(best, champion)
    return others if len(others) else best


def play(name, matrix, horizon, exploration_rate, mended, random_state):
    """Plays one lane: the duels of each pair."""
    feedback = (Signed if mended and name == "rucb" else Counted)(matrix, random_state)
    options = {"time_horizon": horizon, "exploratory_constant": exploration_rate, "random_state": random_state}
    if name == "rucb":
        algorithm = relative_ucb.RelativeUCB(feedback, **options)
        if mended:
            algorithm.preference_estimate = Unclipped(len(matrix))
    else:
        kind = MendedDoubleThompson if mended else double_thompson_sampling.DoubleThompsonSampling
        algorithm = kind(feedback, **options)
    algorithm.run()
    return feedback.duels


def main():
    """Runs one process on one core."""
    task = json.loads(sys.argv[1])
    matrix = np.asarray(task["matrix"])
    if task["mended"]:
        relative_ucb.argmax_set = rivals
    each = AverageRegret(matrix)
    regret = np.array([[each(i, j) for j in range(len(matrix))] for i in range(len(matrix))])
    random_state = np.random.RandomState(task["seed"])
    start = time.perf_counter()
    duels = [
        play(task["name"], matrix, task["horizon"], task["exploration_rate"], task["mended"], random_state)
        for _ in range(task["lanes"])
    ]
    seconds = time.perf_counter() - start
    regrets = [2 * float((lane * regret).sum()) for lane in duels]
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    print(json.dumps({"seconds": seconds, "regrets": regrets, "versions": versions}))


if __name__ == "__main__":
    main()
