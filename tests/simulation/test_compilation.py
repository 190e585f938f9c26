"""Compiled programs on disk: where, at whose request, including the sweep's own programs, and the same results."""

import json
import os
import subprocess
import sys
import warnings

import jax
import pytest

import jaxdp
from jaxdp.__main__ import main
from jaxdp.bandits import bernoulli_bandit, explore_then_commit
from jaxdp.simulation.sweeps import compilation
from jaxdp.simulation.sweeps.compilation import folder_name
from jaxdp.simulation.sweeps.executables import EXECUTABLES


def setting(name):
    return getattr(jax.config, name)


def kept_in():
    return setting("jax_compilation_cache_dir")


@pytest.fixture
def untold(monkeypatch, tmp_path):
    """Sets no folder, and an empty cache directory of the user; restores both afterwards."""
    was = {
        name: setting(name)
        for name in (
            "jax_compilation_cache_dir",
            "jax_persistent_cache_min_compile_time_secs",
            "jax_enable_compilation_cache",
        )
    }
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", raising=False)
    yield tmp_path
    compilation.compilation_cache.reset_cache()
    for name, value in was.items():
        jax.config.update(name, value)


def test_the_users_cache_directory(untold, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    path = jaxdp.cache_compilations()
    assert path == untold / "jaxdp" / folder_name()
    assert path is not None
    assert path.is_dir()
    assert kept_in() == str(path)
    assert setting("jax_persistent_cache_min_compile_time_secs") == compilation.SHORTEST
    assert jaxdp.cache_compilations() == path
    other = jaxdp.cache_compilations(untold / "other")
    assert other == untold / "other" / folder_name()
    assert kept_in() == str(other)


def test_a_folder_that_jax_is_told_is_left(untold):
    jax.config.update("jax_compilation_cache_dir", str(untold / "mine"))
    assert jaxdp.cache_compilations() == untold / "mine"
    assert kept_in() == str(untold / "mine")
    assert list(untold.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_warning(untold):
    (untold / "jaxdp").write_text("a file")
    with pytest.warns(
        RuntimeWarning, match="compiled programs are not stored on disk, as their folder cannot be"
    ) as caught:
        assert jaxdp.cache_compilations() is None
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)
    assert kept_in() is None


def test_the_name_tells_processors_and_versions_apart(monkeypatch):
    names = []
    for words in ("Intel-6-85 avx avx2 avx512f fma sse", "Intel-6-79 avx avx2 fma sse", "ARM-8 asimd fp"):
        monkeypatch.setattr(compilation, "host_processor", lambda words=words: words)
        names.append(folder_name())
    monkeypatch.setattr(compilation.importlib.metadata, "version", lambda name: "9.9")
    names.append(folder_name())
    assert len(set(names)) == 4
    assert [("avx512f" in name, "avx2" in name, "asimd" in name) for name in names[:3]] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]
    assert all(len(name) < 80 for name in names)


ANOTHER = """
import sys
import jax, jaxdp
from tests.simulation import test_compilation as tests
jax.config.update("jax_numpy_dtype_promotion", "strict")
jaxdp.cache_compilations(sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
print(tests.swept().pseudo_regret.values.tolist())
"""


def swept():
    run = jaxdp.simulator(explore_then_commit(num_arms=2, explore_rounds=4), bernoulli_bandit([0.1, 0.9]), horizon=8)
    return jaxdp.sweep(run, axes={"epsilon": [1.0, 2.0]}, num_seeds=5, key=jax.random.key(0))


def test_another_process_reads_the_sweeps_program(untold, tmp_path):
    """Starts another process, where a name of the program that depends on the process, as on an address, would
    differ.
    """
    EXECUTABLES.clear()
    path = jaxdp.cache_compilations(tmp_path)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)  # tests' programs are small
    here = swept()
    assert path is not None
    programs = sorted(file.name for file in path.iterdir() if file.name.startswith("jit_lane-"))
    assert programs
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_COMPILATION_CACHE")}
    done = subprocess.run(
        [sys.executable, "-c", ANOTHER, str(tmp_path)], capture_output=True, text=True, check=True, env=environment
    )
    assert json.loads(done.stdout) == here.pseudo_regret.values.tolist()
    assert sorted(file.name for file in path.iterdir() if file.name.startswith("jit_lane-")) == programs


def test_the_sweeps_program_is_kept_and_read_again(untold):
    """Compiles it with options of its own, ahead of time: that goes through the cache as well."""
    events = []

    def listen(event, **details):
        events.append(event.split("/")[-1])

    def run():
        EXECUTABLES.clear()  # as a process that starts
        events.clear()
        return swept()

    jax.numpy.zeros(3).block_until_ready()  # the process has compiled before
    path = jaxdp.cache_compilations()
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)  # tests' programs are small
    jax.monitoring.register_event_listener(listen)
    try:
        first = run()
        assert path is not None
        assert [file for file in path.iterdir() if file.name.startswith("jit_lane-")]
        assert "cache_misses" in events
        again = run()
        assert "cache_misses" not in events
        assert "cache_hits" in events
    finally:
        jax.monitoring.unregister_event_listener(listen)
    assert again.identical(first)


@pytest.mark.parametrize("options", [[], ["--no-cache"]])
def test_the_command_line_does_it_by_itself(options, untold, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["jaxdp", *options, "inspect", str(untold / "missing")])
    with pytest.raises(SystemExit):
        main()
    assert "missing" in capsys.readouterr().err
    assert setting("jax_enable_compilation_cache") is not bool(options)
    assert (kept_in() is None) == bool(options)
    assert (untold / "jaxdp").exists() is not bool(options)


def test_the_command_line_tells_in_a_line_that_it_cannot(untold, monkeypatch, capsys):
    (untold / "jaxdp").write_text("a file")
    monkeypatch.setattr(sys, "argv", ["jaxdp", "inspect", str(untold / "missing")])
    with pytest.raises(SystemExit):
        main()
    line = capsys.readouterr().err.splitlines()[0]
    assert line.startswith("warning: compiled programs are not stored on disk, as their folder cannot be written: ")


def test_no_warning_where_all_is_well(untold):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jaxdp.cache_compilations()


def test_compiled_programs_of_a_gpu_are_kept_unless_jax_is_told_otherwise(monkeypatch, tmp_path):
    monkeypatch.setattr(compilation, "cache_compilations", lambda: tmp_path)
    assert compilation.keep_for("gpu") == tmp_path
    assert compilation.keep_for("cpu") is None
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        assert compilation.keep_for("gpu") is None
    finally:
        jax.config.update("jax_enable_compilation_cache", True)
