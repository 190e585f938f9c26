"""Another processor, or other settings of the compiler: other last bits, so another store."""

import functools
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.simulation import Run, sweep
from jaxdp.simulation.store import processor
from jaxdp.simulation.store.chunks import chunks
from jaxdp.simulation.sweeps import worker
from jaxdp.simulation.sweeps.lanes import Program
from jaxdp.simulation.sweeps.plan import Plan
from tests.simulation import store_worker
from tests.simulation.processes import REPOSITORY, finish, start

SWEEP: Callable[[], dict] = functools.cache(
    lambda: {"axes": {"a": [1.0, 2.0]}, "num_seeds": 6, "tile_size": 4, "key": jax.random.key(0)}
)
INTEL = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 85
model name\t: Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz
flags\t\t: fpu vme sse sse2 pni ssse3 fma sse4_1 sse4_2 avx f16c avx2 aes avx512f

processor\t: 1
"""
ARM = "processor\t: 0\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\nCPU variant\t: 0x1\nCPU part\t: 0xd40\n"


def run():
    return Run(
        simulate=lambda key, a: {"x": jax.random.normal(key, dtype=jnp.float32) + a},
        params=lambda a: np.float32(a),
        guarantee=lambda a: {},
        dims={"x": ()},
    )


@pytest.fixture
def cpuinfo(tmp_path, monkeypatch):
    """Replaces the processor by a text's."""

    def says(text):
        (tmp_path / "cpuinfo").write_text(text)
        monkeypatch.setattr(processor, "CPUINFO", tmp_path / "cpuinfo")

    return says


def test_a_store_of_another_processor_is_refused(tmp_path, cpuinfo):
    cpuinfo(INTEL)
    first = sweep(run, **SWEEP(), store=tmp_path / "s.zarr", process_index=0, num_processes=2).load()
    assert not first.computed.all()
    for text, message in {
        INTEL.replace(" avx512f", ""): "processor is avx512f there, without more here",
        INTEL.replace(": 85", ": 106"): r"processor is GenuineIntel-6-85 there, GenuineIntel-6-106 here",
        ARM: r"processor is GenuineIntel-6-85 avx .* there, 0x41-0x1-0xd40 asimd fp sve here",
    }.items():
        cpuinfo(text)
        with pytest.raises(ValueError, match=rf"{message} \(another kind may give other last bits: resume on one of"):
            sweep(run, **SWEEP(), store=tmp_path / "s.zarr")
    cpuinfo(INTEL.replace("2.40GHz", "2.50GHz").replace(" aes", ""))  # changes no float
    assert sweep(run, **SWEEP(), store=tmp_path / "s.zarr").identical(sweep(run, **SWEEP()))


def test_processors_that_cannot_be_told_are_those_of_their_hosts(tmp_path, cpuinfo, monkeypatch):
    cpuinfo("cpu : S390\n")
    sweep(run, **SWEEP(), store=tmp_path / "s.zarr")
    sweep(run, **SWEEP(), store=tmp_path / "s.zarr")
    monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
    with pytest.raises(ValueError, match=r"processor is unknown-of-host-.* there, unknown-of-host-elsewhere here"):
        sweep(run, **SWEEP(), store=tmp_path / "s.zarr")


def test_this_processor_is_known():
    found = processor.processor(jax.devices("cpu")[0])
    assert not found.startswith("unknown")
    assert found == processor.processor(jax.devices("cpu")[0])


def test_a_process_with_other_flags_is_refused(tmp_path):
    """Starts a real process, for which XLA compiles other instructions."""
    store = tmp_path / "s.zarr"
    more: dict = {"num_seeds": 4, "axes": {"epsilon": [1.0]}, "static_axes": {"num_experts": [3]}}
    here: dict = {**store_worker.SWEEP, **more, "key": jax.random.key(0), "store": store}
    sweep(store_worker.build, **here, process_index=0, num_processes=2)
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_max_isa=SSE4_2"
    code, _, err = finish(start(store, preload=f"import os; os.environ['XLA_FLAGS'] = {flags!r}", **more))
    assert code == 1
    assert "settings.xla_cpu_max_isa is None there, SSE4_2 here (may give other last bits: set it as it was" in err
    sweep(store_worker.build, **here)


def test_flags_as_xla_reads_them(tmp_path, monkeypatch):
    def found(text):
        monkeypatch.setenv("XLA_FLAGS", text)
        return {name: value for name, value in processor.settings().items() if name.startswith("xla")}

    assert found("") == {}
    assert found("--xla_cpu_enable_fast_math --xla_cpu_max_isa=AVX --xla_cpu_max_isa=AVX2") == {
        "xla_cpu_enable_fast_math": "true",
        "xla_cpu_max_isa": "AVX2",
    }
    assert found("--xla_force_host_platform_device_count=4 --xla_dump_to='a folder' --xla_dump_hlo_as_text") == {}
    (tmp_path / "flags").write_text("--xla_cpu_max_isa=AVX\n--xla_cpu_enable_fast_math=true\n")
    assert found(str(tmp_path / "flags")) == {"xla_cpu_enable_fast_math": "true", "xla_cpu_max_isa": "AVX"}


def test_flags_that_change_nothing_do_not_refuse(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)  # a machine may set it
    first = sweep(run, **SWEEP(), store=tmp_path / "s.zarr").load()
    given = os.environ.get("XLA_FLAGS", "")
    monkeypatch.setenv("XLA_FLAGS", f"{given} --xla_dump_to={tmp_path} --xla_force_host_platform_device_count=3")
    assert sweep(run, **SWEEP(), store=tmp_path / "s.zarr").identical(first)
    for name, value in {"OPENBLAS_CORETYPE": "Haswell", "XLA_FLAGS": f"{given} --xla_cpu_enable_fast_math"}.items():
        monkeypatch.setenv("OPENBLAS_CORETYPE", "")
        monkeypatch.setenv(name, value)
        with pytest.raises(ValueError, match=r"settings\.\w+ is None there, (Haswell|true) here"):
            sweep(run, **SWEEP(), store=tmp_path / "s.zarr")


def test_workers_of_several_kinds_are_refused():
    plan = Plan(run, {"a": [1.0]}, {}, num_seeds=4, key=jax.random.key(0), tile_size=4, devices=None)
    packed = worker.pack(plan)
    identity, _ = worker.describe(packed)
    (chunk,) = chunks((), (1, 4), (1, 4))
    with pytest.raises(
        RuntimeError, match=r"workers must run the same program, got one where processor is Other there"
    ):
        worker.compute(packed, chunk, {**identity, "processor": f"Other {identity['processor'].split(' ', 1)[1]}"})
    with pytest.raises(
        RuntimeError, match=r"got one where settings\.xla_cpu_enable_fast_math is true there, None here"
    ):
        worker.compute(
            packed, chunk, {**identity, "settings": {**identity["settings"], "xla_cpu_enable_fast_math": "true"}}
        )


FACTORIZED = {
    "cholesky": lambda matrix: jnp.linalg.cholesky(matrix)[0, 0],
    "eigh": lambda matrix: jnp.linalg.eigh(matrix)[0][0],
    "solve": lambda matrix: jnp.linalg.solve(matrix, matrix[0])[0],
    "qr": lambda matrix: jnp.linalg.qr(matrix)[1][0, 0],
    "svd": lambda matrix: jnp.linalg.svd(matrix, compute_uv=False)[0],
}


@pytest.mark.parametrize(("rows", "threads"), [(5, None), (64, None), (65, 1)])
@pytest.mark.parametrize("name", FACTORIZED)
def test_threads_count_where_large_matrices_are_factorized(monkeypatch, name, rows, threads):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")

    def simulate(key, a):
        return {"x": FACTORIZED[name](jax.random.normal(key, (rows, rows), jnp.float32) + a)}

    made = Run(simulate=simulate, params=run().params, guarantee=run().guarantee, dims={"x": ()})
    program = Program(made, jax.random.key(0), [np.float32(1)], 128, jax.devices())  # more lanes than rows
    assert program.hashes().get("blas_threads") == threads


def test_another_number_of_threads_is_refused_for_large_matrices(tmp_path, monkeypatch):
    def build(rows):
        def simulate(key, a):
            return {"x": jnp.linalg.cholesky(a * jnp.eye(rows, dtype=jnp.float32))[0, 0]}

        return Run(simulate=simulate, params=run().params, guarantee=run().guarantee, dims={"x": ()})

    for rows in (5, 80):
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
        sweep(build, **SWEEP(), static_axes={"rows": [rows]}, store=tmp_path / f"{rows}.zarr")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    monkeypatch.setattr(processor, "cores", lambda: 4)
    sweep(build, **SWEEP(), static_axes={"rows": [5]}, store=tmp_path / "5.zarr")
    with pytest.raises(
        ValueError, match=r"programs\.rows=80\.blas_threads is 1 there, 2 here \(large matrices: OPENBLAS"
    ):
        sweep(build, **SWEEP(), static_axes={"rows": [80]}, store=tmp_path / "80.zarr")


MEASURE = """
import sys, jax, numpy as np, jaxdp
from jaxdp.estimation import debiased_rr, gaussian_rewards, mle, objective_perturbation
def build():
    estimators = {"none": mle(), "central": objective_perturbation(), "local": debiased_rr()}
    return jaxdp.estimation_run(estimators, gaussian_rewards(num_samples=400, dim=5))
results = jaxdp.sweep(build, axes={"epsilon": [1.0], "delta": [1e-3]}, num_seeds=64, key=jax.random.key(0), tile_size=8)
np.save(sys.argv[1], results.l2_error.values)
"""


@pytest.mark.optimised
def test_how_much_another_processor_moves_results(tmp_path):
    """Checks the module's statement: other bits, by a small part of the standard error."""

    def measure(name: str, **variables: str) -> np.ndarray:
        file: Path = tmp_path / f"{name}.npy"
        subprocess.run(
            [sys.executable, "-c", MEASURE, file], cwd=REPOSITORY, check=True, env={**os.environ, **variables}
        )
        return np.load(file)

    first = measure("first")
    assert np.array_equal(measure("again"), first)
    error = first.std(axis=2) / np.sqrt(first.shape[2])
    for name, variables in {
        "isa": {"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"},
        "optimisation": {"XLA_FLAGS": "--xla_backend_optimization_level=0"},
        "blas": {"OPENBLAS_CORETYPE": "Nehalem"},
    }.items():
        other = measure(name, **variables)
        assert (np.abs(other.mean(axis=2) - first.mean(axis=2)) < 1e-3 * error).all(), name
        # OpenBLAS has the same kernels for small matrices of some processors
        if name != "blas" and jax.devices()[0].platform == "cpu" and "x86" in os.uname().machine:
            assert (other != first).any(), name


def test_jaxs_own_options_are_read():
    """Checks that some of them are no attributes."""
    name = "jax_disable_most_optimizations"
    before = jax.config.read(name)
    try:
        found = []
        for value in (False, True):
            jax.config.update(name, value)
            found.append(processor.settings()[name])
    finally:
        jax.config.update(name, before)
    assert found == ["False", "True"]
