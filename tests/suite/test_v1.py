"""The frozen suite: answers equal the committed ones, and so does the regret of uniform play."""

import dataclasses
import hashlib
from collections import Counter

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.suite import INSTANCES, v1
from jaxdp.suite._worlds import thresholds_of

EXACT = [name for name, instance in INSTANCES.items() if instance.exact]
REAL = [name for name, instance in INSTANCES.items() if not instance.exact]


# SHA-256 of the rows of frozen.json without late feedback:
OLD_ROWS = "e20672748ac90ef61c8d3760f3a9b7b039da7d6164bfd24945297300d99f7a5e"


def test_each_family_has_five_instances_and_some_a_late_one_and_arms_and_duels_are_exact():
    late = {"arms": 6, "duels": 6, "experts": 6}
    assert Counter(instance.family for instance in INSTANCES.values()) == dict.fromkeys(v1.FAMILIES, 5) | late
    assert {name for name in INSTANCES if name.startswith(("arms.", "duels."))} < set(EXACT)
    assert len(EXACT) >= 10


@pytest.mark.precision
@pytest.mark.parametrize("name", EXACT)
def test_answers_have_the_committed_hash(name):
    instance, record = INSTANCES[name], v1.frozen()[name]
    assert hashlib.sha256(v1.answers(instance).tobytes()).hexdigest() == record["answers"]
    if "thresholds" in record:
        thresholds = instance.make().params().thresholds
        assert thresholds.dtype == np.uint32
        assert hashlib.sha256(thresholds.tobytes()).hexdigest() == record["thresholds"]


@pytest.mark.precision
@pytest.mark.parametrize("name", REAL)
def test_real_valued_answers_equal_the_committed_ones(name):
    committed = np.asarray(v1.frozen()[name]["first"])
    given = v1.answers(INSTANCES[name], 32).ravel()[: len(committed)]
    assert np.std(committed) > 0.01
    np.testing.assert_allclose(given, committed, atol=1e-5)


def test_the_committed_numbers_of_instances_without_late_feedback_never_change():
    rows = [row.rstrip(",") for row in v1.frozen_text().splitlines() if "late" not in row]
    assert len(rows) == 30 + 2
    assert hashlib.sha256("\n".join(rows).encode()).hexdigest() == OLD_ROWS


def test_late_instances_have_the_committed_delay_and_the_answers_of_the_world_without_it():
    late = {name: instance.make() for name, instance in INSTANCES.items() if "delay" in v1.frozen()[name]}
    assert [*late] == ["arms.late", "duels.late", "experts.late"]
    for name, world in late.items():
        assert set(world.delays.table(v1.HORIZONS[INSTANCES[name].family]).tolist()) == {v1.frozen()[name]["delay"]}
    others = [instance.make() for name, instance in INSTANCES.items() if name not in late]
    assert not any(getattr(world, "delays", None) for world in others)
    for name, same in (("arms.late", "arms.easy"), ("experts.late", "experts.stochastic")):
        unlike_delay = {key: value for key, value in v1.frozen()[name].items() if key != "delay"}
        assert unlike_delay == v1.frozen()[same]


def test_late_feedback_raises_the_regret():
    regrets = []
    for name in ("arms.easy", "arms.late"):
        run = jaxdp.simulator(jaxdp.bandits.ucb(num_arms=8), INSTANCES[name].make(), 1_000)
        regrets.append(run(jax.random.key(0), run.params(epsilon=10.0))["pseudo_regret"][-1])
    assert regrets[1] > regrets[0] + 50


def test_one_threshold_that_moves_by_a_thousandth_changes_the_hash():
    instance = INSTANCES["arms.easy"]
    world = instance.make()
    params = world.params()
    thresholds = params.thresholds.copy()
    thresholds[0, 3] += thresholds_of([1])[0]
    moved = dataclasses.replace(params, thresholds=thresholds)
    changed = dataclasses.replace(instance, make=lambda: world._replace(params=lambda: moved))
    assert hashlib.sha256(v1.answers(changed).tobytes()).hexdigest() != v1.frozen()["arms.easy"]["answers"]


def test_uniform_play_costs_the_mean_gap():
    for name in ("arms.easy", "arms.many", "arms.bounded"):
        world = INSTANCES[name].make()
        assert INSTANCES[name].uniform(False) == pytest.approx(1e5 * world.params().base.gaps.mean(), rel=2e-3)
    for name in ("duels.cyclic", "duels.many"):
        regrets = INSTANCES[name].make().params().base.regrets["pseudo_regret"]
        assert INSTANCES[name].uniform(False) == pytest.approx(1e5 * regrets.mean(), rel=2e-3)
        assert INSTANCES[name].uniform(True) == pytest.approx(2e3 * regrets.mean(), rel=2e-2)


def test_frequencies_of_answers_are_the_means():
    means = INSTANCES["arms.bounded"].make().params().base.means
    given = v1.answers(INSTANCES["arms.bounded"]).reshape(-1, len(means))
    np.testing.assert_allclose(given.mean(axis=0), means, atol=5 * 0.5 / np.sqrt(len(given)))


def test_blocks_equal_rounds():
    for name, learner in (
        ("arms.drifting", jaxdp.bandits.explore_then_commit(num_arms=4, explore_rounds=60)),
        ("duels.cyclic", jaxdp.dueling.ebs_elimination(num_arms=8, horizon=300)),
    ):
        world, outputs = INSTANCES[name].make(), []
        for engine in ("rounds", "blocks"):
            run = jaxdp.simulator(learner, world, 300, engine=engine)
            outputs.append(run(jax.random.key(3), run.params(epsilon=2.0)))
        for key, value in outputs[0].items():
            np.testing.assert_array_equal(value, outputs[1][key], err_msg=f"{name} {key}")


def test_seasons_are_the_games_that_the_package_ships():
    losses = v1.season_losses()
    table = jaxdp.preferences.baseball1987()
    assert losses.shape == (40 * 273, 7)
    assert (np.sort(losses, axis=1) == [0, 1, 1, 1, 1, 1, 2]).all()
    wins = np.zeros(7)
    for (first, second), won, total in zip(table.pairs, table.wins, table.totals, strict=True):
        wins[first] += won
        wins[second] += total - won
    np.testing.assert_array_equal((losses[:273] == 0).sum(axis=0), wins)
    np.testing.assert_array_equal((losses[-273:] == 0).sum(axis=0), wins)
