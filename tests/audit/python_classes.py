"""Learners in ordinary Python: simple ones, and private ones as others write them, right and with one mistake."""

# ruff: noqa: NPY002 -- others draw from the global generator

import math

import numpy as np

from jaxdp.audit import UserData

ZEROS = UserData(np.zeros((6, 2)))


class Constant:
    """Plays one arm and keeps the rewards."""

    def __init__(self, arm: object = 0):
        self.arm, self.rewards = arm, []

    def act(self):
        return self.arm

    def update(self, arm, reward):
        self.rewards.append(reward)


class Cycling:
    """Plays all actions in turn."""

    def __init__(self, actions):
        self.actions, self.round = actions, 0

    def act(self, context=None):
        return self.actions[self.round % len(self.actions)]

    def update(self, *arguments):
        self.round += 1


class NoisyLeader:
    """Plays each arm twice, adds Laplace noise to both totals once, and keeps to the larger one."""

    def __init__(self, wrong):
        self.wrong, self.round, self.totals, self.best = wrong, 0, np.zeros(2), None

    def act(self):
        return self.round % 2 if self.best is None else self.best

    def update(self, arm, reward):
        if self.best is None:
            self.totals[arm] += reward
            self.round += 1
            if self.round == 4:
                noise = np.random.laplace(scale=1.0) if self.wrong else np.random.laplace(scale=1.0, size=2)
                self.best = int(np.argmax(self.totals + noise))  # wrong: one draw for both arms


class NormNoise:
    """Releases the total losses of four rounds once, with noise of density proportional to exp(-epsilon norm)."""

    def __init__(self, wrong, epsilon=0.5):
        self.round, self.totals, self.released = 0, np.zeros(3), np.zeros(3)
        scale = math.sqrt(3) / epsilon
        self.scale = 1 / scale if wrong else scale  # wrong: the gamma distribution takes a scale, not a rate

    def act(self):
        return int(np.argmin(self.released))

    def update(self, expert, losses):
        self.round += 1
        if self.round <= 4:
            self.totals += losses
        if self.round == 4:
            direction = np.random.normal(size=3)
            length = np.random.gamma(3, self.scale)
            self.released = self.totals + length * direction / np.linalg.norm(direction)


class MeansOfReports:
    """Plays the arm with the largest mean of noisy rewards, and every arm once at first."""

    def __init__(self, wrong):
        self.wrong, self.totals, self.counts = wrong, np.zeros(3), np.zeros(3)

    def act(self):
        if self.counts.min() == 0:
            return int(np.argmin(self.counts))
        return int(np.argmax(self.totals / self.counts))

    def update(self, arm, reward):
        if not (self.wrong and self.counts[arm] == 0):  # wrong: first rewards get no noise
            reward += np.random.laplace(scale=1.0)
        self.totals[arm] += reward
        self.counts[arm] += 1


class NoisyTotals:
    """Adds Laplace noise to every reward and releases the totals."""

    def __init__(self, wrong, epsilon=0.2):
        self.wrong, self.scale, self.round, self.totals = wrong, 1 / epsilon, 0, [0.0, 0.0]

    def act(self):
        return self.round % 2

    def update(self, arm, reward):
        noise = np.random.laplace(self.scale) if self.wrong else np.random.laplace(0, self.scale)  # wrong: a location
        self.totals[arm] += reward + noise
        self.round += 1


class NoiseByCount:
    """Adds Laplace noise to every reward; the reports are public."""

    def __init__(self, generator, wrong):
        self.generator, self.wrong, self.noise = generator, wrong, {}
        self.counts, self.totals, self.report = [0, 0], [0.0, 0.0], 0.0

    def act(self):
        if 0 in self.counts:
            return self.counts.index(0)
        return int(self.totals[1] * self.counts[0] > self.totals[0] * self.counts[1])

    def update(self, arm, reward):
        self.counts[arm] += 1
        name = self.counts[arm] if self.wrong else sum(self.counts)  # wrong: both arms reach the same count
        if name not in self.noise:
            self.noise[name] = self.generator.laplace()
        self.report = reward + self.noise[name]
        self.totals[arm] += self.report


class Doubling:
    """Releases the totals of all rewards so far after 1, 2, 4, 8, ... rounds."""

    def __init__(self, wrong, horizon=16):
        releases = (math.log10 if wrong else math.log2)(horizon) + 1  # wrong: the base
        self.scale, self.round, self.totals, self.released = releases, 0, np.zeros(2), np.zeros(2)

    def act(self):
        return int(np.argmax(self.released))

    def update(self, arm, reward):
        self.totals[arm] += reward
        self.round += 1
        if math.log2(self.round).is_integer():
            self.released = self.totals + np.random.laplace(scale=self.scale, size=2)


class TreeCounter:
    """Releases the number of ones after every round, by a binary tree."""

    def __init__(self, wrong, horizon=16, budgeted=None):
        self.wrong, self.levels = wrong, int(math.log2(horizon)) + 1
        self.scale = budgeted or self.levels
        self.round, self.sums, self.noisy, self.released = 0, [0.0] * self.levels, [0.0] * self.levels, 0.0
        self.total = 0.0

    def act(self):
        return self.round % 2

    def update(self, arm, reward):
        self.round += 1
        self.total += reward
        level = (self.round & -self.round).bit_length() - 1
        self.sums[level] = reward + sum(self.sums[:level])
        self.noisy[level] = self.sums[level] + np.random.laplace(scale=self.scale)
        for lower in range(level):
            self.sums[lower] = self.noisy[lower] = 0.0
        self.released = sum(self.noisy)
        if self.wrong:  # the noise of one node on the whole sum, in every round
            self.released = self.total + np.random.laplace(scale=self.levels)


class SmallNoise:
    """Adds Laplace noise to every reward; the reports are public."""

    def __init__(self, scale):
        self.scale, self.round, self.report = scale, 0, 0.0

    def act(self):
        return self.round % 3

    def update(self, arm, reward):
        self.report = reward + np.random.laplace(scale=self.scale)
        self.round += 1


class KeyChains:
    """Adds Laplace noise to all losses; the reports are public."""

    def __init__(self, generator, wrong):
        self.seed, self.wrong, self.round, self.report = int(generator.integers(2**40)), wrong, 0, np.zeros(3)

    def act(self):
        return int(np.argmin(self.report))

    def update(self, expert, losses):
        step = 1 if self.wrong else 3  # wrong: the seeds of neighbouring rounds overlap
        seeds = [self.seed + step * self.round + index for index in range(3)]
        self.report = losses + [np.random.default_rng(seed).laplace(scale=3.0) for seed in seeds]
        self.round += 1


class Residuals:
    """Releases noisy products of context and reward, for a linear model."""

    def __init__(self, wrong):
        self.wrong, self.theta, self.report = wrong, np.zeros(2), np.zeros(3)

    def act(self, context):
        return int(context @ self.theta > 0)

    def update(self, context, arm, reward):
        noisy = context * reward + np.random.laplace(scale=2 * math.sqrt(2), size=2)
        residual = reward - context @ self.theta if self.wrong else 0.0  # wrong: exact
        self.report = np.array([*noisy, residual])
        self.theta += 0.1 * noisy


def _pair(make, **options):
    return (lambda: make(False)), (lambda: make(True)), options


def _drawing(make, **options):
    return (lambda generator: make(generator, False)), (lambda generator: make(generator, True)), options


CLASSES = {
    "one draw for all arms": _pair(NoisyLeader, num_actions=2, guarantee=1.0),
    "gamma scale inverted": _pair(NormNoise, problem="experts", num_actions=3, guarantee=0.5, observe=["released"]),
    "first rewards without noise": _pair(MeansOfReports, num_actions=3, guarantee=1.0),
    "scale as location": _pair(NoisyTotals, num_actions=2, guarantee=0.2, observe=["totals"]),
    "noise by count": _drawing(NoiseByCount, num_actions=2, guarantee=1.0, observe=["report"]),
    "logarithm of a wrong base": _pair(Doubling, num_actions=2, guarantee=1.0, observe=["released"]),
    "noise of one tree node": _pair(TreeCounter, num_actions=2, guarantee=1.0, observe=["released"]),
    "noise too small by sqrt 2": (
        lambda: SmallNoise(1.0),
        lambda: SmallNoise(1 / math.sqrt(2)),
        {"num_actions": 3, "guarantee": 1.0, "observe": ["report"]},
    ),
    "noise too small by the sensitivity": (
        lambda: SmallNoise(2.0),
        lambda: SmallNoise(1.0),
        {"num_actions": 3, "guarantee": 1.0, "observe": ["report"], "ends": (-1, 1)},
    ),
    "key chains overlap": _drawing(KeyChains, problem="experts", num_actions=3, guarantee=1.0, observe=["report"]),
    "residual in the report": _pair(
        Residuals, problem="contextual", num_actions=2, guarantee=1.0, observe=["report"], context_shape=(2,)
    ),
}
