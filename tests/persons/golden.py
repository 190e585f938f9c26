"""Independent NumPy versions of `per_person` around two learners, in float64, written from the definitions.

Each returns [lanes, num_arms], how often each arm was played.
"""

import math

import numpy as np

from tests.algorithms.bandits.golden_arms import largest


def central(generator, epsilon, *, person, reports, means, lanes, rate):
    """Plays UCB1 from Laplace-noised totals of blocks of 1, 1, 2, 4, ... heard rounds of an arm."""
    num, scale = len(means), reports / epsilon
    played = np.zeros((lanes, num), int)
    for lane in range(lanes):
        visits = {}
        sums, plays, time = np.zeros(num), np.zeros(num, int), 0
        arm, left, total = 0, 1, 0
        for one in person:
            visits[one] = visits.get(one, 0) + 1
            if visits[one] > reports:
                means_so_far = [noisy / count if count else -math.inf for noisy, count in zip(sums, plays, strict=True)]
                played[lane, int(np.argmax(means_so_far))] += 1
                continue
            played[lane, arm] += 1
            total += generator.random() < means[arm]
            time, left = time + 1, left - 1
            if left:
                continue
            sums[arm] += total + generator.laplace(0, scale)
            plays[arm] += max(plays[arm], 1)
            if (plays == 0).any():
                arm = int(np.argmin(plays > 0))
            else:
                x = rate * math.log(max(time, 2))
                blocks = np.log2(plays) + 1
                noise = (x + blocks * np.log(1 + x / blocks)) * np.sqrt(1 + blocks / x) * scale
                arm = int(largest(generator, (sums / plays + np.sqrt(x / (2 * plays)) + noise / plays)[None])[0])
            left, total = max(plays[arm], 1), 0
    return played


def local(generator, epsilon, *, person, reports, means, lanes, rate):
    """Plays UCB1 on randomized responses of heard rounds."""
    num, rows = len(means), np.arange(lanes)
    budget = epsilon / reports
    contrast = (math.exp(budget) + 1) / (math.exp(budget) - 1)
    means = np.asarray(means)
    sums, plays, played = np.zeros((lanes, num)), np.zeros((lanes, num), int), np.zeros((lanes, num), int)
    visits, heard = {}, 0
    for one in person:
        visits[one] = visits.get(one, 0) + 1
        with np.errstate(invalid="ignore", divide="ignore"):
            estimates = np.where(plays > 0, sums / plays, -math.inf)
            if visits[one] > reports:
                arm = largest(generator, estimates)
                played[rows, arm] += 1
                continue
            bounds = estimates + np.sqrt(rate * contrast**2 / 2 * math.log(max(heard, 1)) / plays)
        arm = np.full(lanes, heard) if heard < num else largest(generator, bounds)
        paid = generator.random(lanes) < means[arm]
        said = np.where(generator.random(lanes) < 1 / (1 + math.exp(-budget)), paid, ~paid)
        sums[rows, arm] += (said - 0.5) * contrast + 0.5
        plays[rows, arm] += 1
        played[rows, arm] += 1
        heard += 1
    return played


def means_of_people(generator, epsilon, *, person, ends, releases, means, lanes, failure_prob=0.05):
    """Explores in phases; each person plays one arm in each of `releases` phases, and counts by the mean reward."""
    num, phases, order = len(means), len(ends), list(dict.fromkeys(person))
    noise, log_chance = releases / epsilon, math.log(2 * num * max(phases - 1, 1) / failure_prob)
    played = np.zeros((lanes, num), int)
    for lane in range(lanes):
        turns = generator.integers(phases, size=len(order))  # of each group of `phases` people
        active, best, start = list(range(num)), int(generator.integers(num)), 0
        for phase, end in enumerate(ends):
            index, arms = {}, generator.integers(len(active), size=releases * len(order))
            for place, one in enumerate(order):
                group, since = place // phases, (phase - place % phases - turns[place // phases]) % phases
                if since < releases:
                    index[one] = group * releases + since
            rewards = {}
            for one in person[start:end]:
                arm = best
                if one in index:
                    arm = active[(index[one] + arms[index[one] // len(active)]) % len(active)]
                    rewards.setdefault(arm, {}).setdefault(one, []).append(generator.random() < means[arm])
                played[lane, arm] += 1
            noisy, radius = {}, {}
            for arm, of_people in rewards.items():
                total = sum(np.mean(values) for values in of_people.values()) + generator.laplace(0, noise)
                spread = sum(1 / len(values) for values in of_people.values()) / 4
                noisy[arm] = total / len(of_people)
                radius[arm] = (math.sqrt(2 * log_chance * spread) + noise * log_chance) / len(of_people)
            best, start = max(noisy, key=noisy.__getitem__), end
            highest = max(noisy[arm] - radius[arm] for arm in noisy)
            active = [arm for arm in active if arm not in noisy or noisy[arm] + radius[arm] >= highest]
        played[lane, best] += len(person) - ends[-1]
    return played
