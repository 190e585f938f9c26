"""The default size of a tile: on a CPU, and on a GPU, where only the kind of device is emulated."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.core import State
from jaxdp.simulation.sweeps import plan as plans
from jaxdp.simulation.sweeps import schedule, tiles
from jaxdp.simulation.sweeps.lanes import Compiled, added_options, compiler_options, tiles_in_flight
from jaxdp.simulation.sweeps.plan import Plan
from jaxdp.simulation.sweeps.schedule import max_tiles

HUGE = 10**6
REPOSITORY = Path(__file__).parents[2]


def build(num_arms: int = 2) -> Any:
    learner = jaxdp.bandits.explore_then_commit(num_arms=num_arms, explore_rounds=3 * num_arms)
    world = jaxdp.bandits.bernoulli_bandit([0.1, *[0.9] * (num_arms - 1)])
    return jaxdp.simulator(learner, world, horizon=4 * num_arms)


def planned(num_seeds: int, build: Any = build, *, tile_size: int | None = None, **static: Any) -> Plan:
    axes = {"epsilon": [0.5, 1.0]}
    key = jax.random.key(0)
    return Plan(build, axes, static, num_seeds=num_seeds, key=key, tile_size=tile_size, devices=None)


@pytest.fixture
def gpu(monkeypatch):
    """Makes devices look like a GPU where the tile size is chosen."""
    choose = tiles.default_tile_size
    monkeypatch.setattr(plans, "default_tile_size", lambda platform, *others: choose("gpu", *others))


@pytest.mark.parametrize(
    ("num_seeds", "expected"), [(1, 256), (300, 256), (1087, 256), (1088, 272), (2112, 528), (4224, 1056), (HUGE, 1056)]
)
def test_a_cpu_has_more_lanes_if_there_are_many(num_seeds, expected):
    assert planned(num_seeds).tile_size == expected  # of two grid points


def test_on_a_cpu_the_largest_state_of_all_programs_decides():
    assert planned(HUGE, num_arms=[2, 200]).tile_size == 528
    assert planned(HUGE, num_arms=[2, 1000]).tile_size == 272


def test_an_error_in_init_is_named_before_the_tile_is_chosen():
    learner: Any = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=6)
    wrong = jaxdp.simulator(
        learner._replace(init=lambda key: None), jaxdp.bandits.bernoulli_bandit([0.1, 0.9]), horizon=8
    )
    with pytest.raises(ValueError, match=r"the learner's init must take \(key, params\)"):
        _ = planned(HUGE, wrong).tile_size


def test_a_cpu_has_256_if_the_state_is_unknown():
    problem = jaxdp.estimation.gaussian_rewards(num_samples=10, dim=2)
    assert planned(HUGE, jaxdp.estimation_run({"local": jaxdp.estimation.debiased_rr()}, problem)).tile_size == 256


def test_the_state_of_a_lane_has_the_size_of_its_arrays():
    run = build(num_arms=100)
    size = tiles.state_bytes(run, jax.random.key(0), run.params(epsilon=1.0))
    state = jax.jit(run.init)(jax.random.key(0), run.params(epsilon=1.0)) if run.init else None
    assert size == sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(state))


def test_init_takes_the_parameters_of_a_run():
    learner: Any = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=6)
    tables = learner._replace(
        params=lambda *, epsilon: (learner.params(epsilon=epsilon), np.arange(4)),
        init=lambda key, params: State(params[1][jax.random.randint(key, (), 0, 4)], ()),
        act=lambda key, params, public, context: jax.numpy.int32(0),
        privatize=lambda key, params, *rest: learner.privatize(key, params[0], *rest),
        update=lambda key, params, state, report: state,
        recommend=None,
        blocks=(),
        counts=None,
    )
    run = jaxdp.simulator(tables, jaxdp.bandits.bernoulli_bandit([0.1, 0.9]), horizon=8)
    keys, params = jax.random.split(jax.random.key(0), 3), run.params(epsilon=1.0)
    init = run.init
    assert init is not None
    state, _ = jax.eval_shape(jax.vmap(lambda key: init(key, params)), keys)  # the table is a NumPy array
    assert state.private.shape == (3,)
    with pytest.raises(ValueError, match=r"params must be made by run.params\(\.\.\.\)"):
        init(keys[0], {"epsilon": 1.0})


@pytest.mark.parametrize(
    ("num_seeds", "expected"), [(1, 1024), (512, 1024), (513, 2048), (20_000, 40_960), (HUGE, 65_536)]
)
def test_a_gpu_has_all_lanes_of_a_program(gpu, monkeypatch, num_seeds, expected):
    monkeypatch.setattr(Plan, "_most_lane_bytes", lambda plan: 1_000)
    assert planned(num_seeds).tile_size == expected
    assert planned(num_seeds, num_arms=[2, 3]).tile_size == expected


def test_a_number_wins(gpu):
    assert planned(HUGE, tile_size=50).tile_size == 50


def test_what_a_lane_needs_bounds_the_tile(gpu, monkeypatch):
    problem = jaxdp.estimation.gaussian_rewards(num_samples=100, dim=5)
    run = jaxdp.estimation_run({"local": jaxdp.estimation.debiased_rr()}, problem)
    plan = planned(HUGE, run)
    assert plan.tile_size == 65_536
    needed = plan._most_lane_bytes()
    assert 100 * 5 * 4 <= needed <= 20 * 100 * 5 * 4
    monkeypatch.setattr(tiles, "MOST_BYTES", needed * 3_000)
    assert planned(HUGE, run).tile_size == 2_048
    monkeypatch.setattr(tiles, "MOST_BYTES", needed * 100)
    assert planned(HUGE, run).tile_size == 64


def test_what_lanes_share_does_not_bound_it():
    losses = np.zeros((100_000, 2), np.float32)
    learner = jaxdp.experts.exponential_weights(num_experts=2, horizon=100)
    run = jaxdp.simulator(learner, jaxdp.experts.loss_sequence(losses), 100)
    assert planned(4, run)._most_lane_bytes() < 1_000


def sweep_of(**options: Any) -> Any:
    return jaxdp.sweep(build, axes={"epsilon": [0.5, 1.0]}, key=jax.random.key(0), **options)


def test_a_store_keeps_its_tile(tmp_path, gpu):
    first = sweep_of(num_seeds=3, store=tmp_path / "store", tile_size=16)
    again = sweep_of(num_seeds=3, store=tmp_path / "store")
    larger = sweep_of(num_seeds=5, store=tmp_path / "store", grow=True)
    assert '"tile_size": 16' in again.attrs["provenance"]
    assert '"tile_size": 16' in larger.attrs["provenance"]
    np.testing.assert_array_equal(larger.pseudo_regret[:, :3], first.pseudo_regret)
    with pytest.raises(ValueError, match="tile_size is 16 there, 8 here"):
        sweep_of(num_seeds=5, store=tmp_path / "store", tile_size=8)


def test_the_workers_kind_of_device_decides(monkeypatch):
    def choose(platform: str, *others: Any) -> int:
        in_worker = threading.current_thread() is not threading.main_thread()
        return tiles.default_tile_size("gpu" if in_worker else platform, *others)

    monkeypatch.setattr(plans, "default_tile_size", choose)
    with ThreadPoolExecutor(1) as executor:
        results = sweep_of(num_seeds=3, executor=executor)
    assert '"tile_size": 1024' in results.attrs["provenance"]
    monkeypatch.undo()
    np.testing.assert_array_equal(results.pseudo_regret, sweep_of(num_seeds=3, tile_size=1024).pseudo_regret)


def test_one_tile_at_a_time_off_the_cpu():
    class Gpu:
        platform = "gpu"

    assert tiles_in_flight([Gpu()]) == 1


def test_the_largest_tile_that_fits_is_named(monkeypatch):
    monkeypatch.setattr(schedule, "free_bytes", lambda device: 10 * 2**20)
    compiled = Compiled([], jax.devices("cpu")[:1], 4096, 16 * 2**20)
    with pytest.raises(MemoryError, match=r"10 MiB are free, got 16 MiB; tile_size=2048 is the largest that should"):
        max_tiles(compiled)


def test_a_gpu_does_not_choose_kernels_by_timing(monkeypatch):
    monkeypatch.delenv("JAXDP_GPU_GRAPHS", raising=False)
    options = compiler_options("gpu")
    assert options == {"xla_gpu_autotune_level": 0, "xla_gpu_exclude_nondeterministic_ops": True}
    monkeypatch.setenv("JAXDP_GPU_GRAPHS", "1")
    assert "WHILE" in compiler_options("gpu")["xla_gpu_enable_command_buffer"]
    assert compiler_options("cpu") == compiler_options("cpu") | {}
    assert not any("gpu" in name for name in compiler_options("cpu"))


def test_devices_and_processes_do_not_change_the_tile(tmp_path):
    """Runs in a separate process, for two emulated devices."""
    command = [sys.executable, "-m", "tests.simulation.tiles_worker", str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["2048"] * 3


def test_added_options_hold_inside_a_with_statement_and_for_one_kind_of_device():
    before = compiler_options("cpu")
    with added_options("cpu", {"xla_backend_optimization_level": 0}):
        assert compiler_options("cpu") == {**before, "xla_backend_optimization_level": 0}
        assert "xla_backend_optimization_level" not in compiler_options("gpu")
    assert compiler_options("cpu") == before
