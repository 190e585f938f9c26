"""The packages that each part needs installed."""

import ast
import importlib
import importlib.metadata
import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import pytest

import jaxdp
from jaxdp import registry
from jaxdp.studies import STUDIES, study

SWEEP = """
import sys
for name in ("zarr", "matplotlib", "dask", "distributed", "cloudpickle", "typer"):
    sys.modules[name] = None  # importing it fails
import jax, jaxdp
learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=4)
run = jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit([0.1, 0.9]), 8)
print(jaxdp.sweep(lambda: run, axes={"epsilon": [1.0]}, num_seeds=2, key=jax.random.key(0)).sizes["seed"])
"""


def test_a_sweep_in_memory_needs_neither_zarr_nor_matplotlib_nor_dask():
    result = subprocess.run([sys.executable, "-c", SWEEP], capture_output=True, text=True, check=False)
    assert result.stdout == "2\n", result.stderr


LATER = """
import sys, jaxdp
later = ("audit", "plotting", "registry", "stats", "studies", "testing")
loaded = ("jax", "scipy", "xarray", "matplotlib", "zarr", *(f"jaxdp.{name}" for name in (*later, "core")))
print([name for name in loaded if name in sys.modules])
print(set(later) <= set(dir(jaxdp)))
print(jaxdp.testing.check_learner.__module__, "jaxdp.registry" in sys.modules, "matplotlib" in sys.modules)
"""


def test_submodules_are_imported_when_they_are_used():
    result = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, check=False)
    assert result.stdout.splitlines() == [
        "[]",
        "True",
        "jaxdp.testing.contracts False False",
    ], result.stderr


FIRST_USE = """
import sys
from jaxdp import dueling, simulator
simulator(dueling.ebs_phased(num_arms=2), dueling.utility_duels([1.0, 0.0]), horizon=8)
print([name for name in ("scipy.optimize", "xarray", "pandas", "optax", "chex", "typer") if name in sys.modules])
from jaxdp import sweep
print(sweep.__module__)
import jaxdp.theory
print(jaxdp.theory.dueling.__name__)
"""


def test_what_is_used_loads_what_it_needs_alone():
    result = subprocess.run([sys.executable, "-c", FIRST_USE], capture_output=True, text=True, check=False)
    assert result.stdout.splitlines() == ["[]", "jaxdp.simulation.sweeps._sweep", "jaxdp.theory.dueling"], result.stderr


def test_every_public_name_is_found_and_listed():
    tree = ast.parse(Path(jaxdp.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    promised = {alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert {*jaxdp.__all__, "register", "audit", "__version__"} <= promised | {"__version__"}
    for name in promised:
        assert name in dir(jaxdp)
        assert getattr(jaxdp, name) is not None
    for name in dir(jaxdp):
        assert hasattr(jaxdp, name)


def test_the_version_is_that_of_the_distribution():
    project = tomllib.loads((Path(jaxdp.__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert jaxdp.__version__ == importlib.metadata.version("jaxdp") == project["version"]


HELP = """
import runpy, sys
for arguments in (["--help"], ["run", "--help"], ["sweep", "--help"], ["--version"]):
    sys.argv = ["jaxdp", *arguments]
    try:
        runpy.run_module("jaxdp", run_name="__main__")
    except SystemExit as stopped:
        heavy = [name for name in ("jax", "scipy", "xarray", "matplotlib", "tqdm") if name in sys.modules]
        print("status", stopped.code, heavy)
"""


def test_help_starts_nothing():
    result = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=False)
    *helps, version, rest = result.stdout.split("status 0 []\n")
    assert len(helps) == 3, result.stderr
    assert all("Usage: jaxdp" in text for text in helps)
    assert (version, rest) == (f"jaxdp {jaxdp.__version__}\n", "")


def test_bars_of_notebooks_are_imported_where_the_warning_about_missing_widgets_is_silenced():
    package = Path(jaxdp.__file__).parent
    texts = {str(path.relative_to(package)): path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    assert [path for path, text in texts.items() if "tqdm.auto" in text] == ["simulation/sweeps/progress.py"]


def test_the_sentence_of_each_study_is_the_first_of_what_it_says_itself():
    for name, sentence in STUDIES.items():
        assert study(name).text.splitlines()[0] == sentence
    modules = {path.stem for path in Path(jaxdp.studies.__path__[0]).glob("*.py")}
    found = {stem for stem in modules if hasattr(importlib.import_module(f"jaxdp.studies.{stem}"), "STUDY")}
    assert found == {name.replace("-", "_") for name in STUDIES}


def test_a_name_that_jaxdp_does_not_have():
    with pytest.raises(AttributeError, match="module 'jaxdp' has no attribute 'bandit'"):
        _ = jaxdp.bandit  # pyright: ignore[reportAttributeAccessIssue]
    assert not hasattr(jaxdp, "__wrapped__")


def hidden_modules(package):
    """Returns the modules of a package that an attribute of their name hides."""
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    modules = [importlib.import_module(each.name) for each in found if not each.name.endswith("__main__")]
    parents = [importlib.import_module(module.__name__.rpartition(".")[0]) for module in modules]
    return [
        module.__name__
        for module, parent in zip(modules, parents, strict=True)
        if getattr(parent, module.__name__.rpartition(".")[2]) is not module
    ]


def test_no_module_is_hidden_behind_a_function_of_its_name(tmp_path, monkeypatch):
    """Checks that `import jaxdp.dueling.rucb` does not give the function."""
    assert hidden_modules(jaxdp) == []
    (tmp_path / "hiding").mkdir()
    (tmp_path / "hiding" / "__init__.py").write_text("from hiding.name import name")
    (tmp_path / "hiding" / "name.py").write_text("def name(): ...")
    monkeypatch.syspath_prepend(tmp_path)
    assert hidden_modules(importlib.import_module("hiding")) == ["hiding.name"]
    for name in ("hiding", "hiding.name"):
        del sys.modules[name]


def test_doctests_run_in_the_modules_that_programs_import():
    """Collects a module before everything else: a second copy of it would have another class of this name."""
    tests = ["jaxdp/audit/_python_learner.py", "tests/audit/test_python_arguments.py", "-k", "trials_asked_for"]
    run = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *tests]
    result = subprocess.run(run, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert "2 passed" in result.stdout


# ---- algorithms are to be read, layouts lie beside them --------------------------------------------------------------
ALGORITHMS = ("bandits", "dueling", "estimation", "experts")
FACTORY = {"factory", "reusing_factory"}  # decorators
# The last three only choose the order in which one array's axes are stored.
READABLE = {"own_kernel", "across_lanes", "any_lane", "lanes_last", "lanes_last_if_many", "lanes_slow"}
LAID_OUT = """
from jaxdp.numerics.kernels import separate_kernels, own_kernel

@factory
def laid_out(*, num_arms: int) -> Learner:
    return own_kernel(separate_kernels, num_arms)
"""


def factories(text):
    """Returns the factories of learners, estimators and environments that a source defines."""
    defined = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return {node.name for node in defined if FACTORY & {*map(ast.unparse, node.decorator_list)}}


def of_kernels(text):
    """Returns a source's imports from `jaxdp.numerics.kernels`; all of it, under the name of the module."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "jaxdp.numerics.kernels":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "jaxdp.numerics":
            found |= {alias.name for alias in node.names if alias.name == "kernels"}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name == "jaxdp.numerics.kernels"}
    return found


def laid_out(sources):
    """Returns the sources of factories that import the layout of arrays, and those imports."""
    using = {name: text for name, text in sources.items() if "kernels" in text}
    found = {name: of_kernels(text) - READABLE for name, text in using.items() if factories(text)}
    return {name: imported for name, imported in found.items() if imported}


def test_algorithms_import_no_layouts():
    folder = Path(jaxdp.__file__).parent
    paths = [path for name in ALGORITHMS for path in (folder / name).rglob("*.py")]
    sources = {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in paths}
    registered = {entry.factory.__name__ for entry in (*registry.LEARNERS.values(), *registry.ESTIMATORS.values())}
    assert registered <= set().union(*map(factories, sources.values()))
    assert laid_out(sources) == {}


@pytest.mark.parametrize(
    "text",
    [
        LAID_OUT,
        LAID_OUT.replace("import separate_kernels, own_kernel", "import tree_reduce"),
        LAID_OUT.replace(
            "from jaxdp.numerics.kernels import separate_kernels, own_kernel", "from jaxdp.numerics import kernels"
        ),
        LAID_OUT.replace(
            "from jaxdp.numerics.kernels import separate_kernels, own_kernel", "import jaxdp.numerics.kernels"
        ),
    ],
)
def test_an_algorithm_that_imports_layouts_is_found(text):
    assert set(laid_out({"laid_out.py": text})) == {"laid_out.py"}
    assert laid_out({"kernels.py": text.replace("@factory", "")}) == {}  # no factory
    assert laid_out({"read.py": LAID_OUT.replace("separate_kernels, own_kernel", "own_kernel, any_lane")}) == {}


def circles(graph):
    """Returns groups of modules that import each other, directly or not."""
    reached = {module: graph.find_downstream_modules(module) for module in graph.modules}
    groups = {frozenset(other for other in reached[module] if module in reached[other]) for module in graph.modules}
    return [sorted(group) for group in groups if group]


def test_no_files_import_one_another_in_a_circle():
    """Checks imports for type checkers, too."""
    graph = grimp.build_graph("jaxdp", exclude_type_checking_imports=False, cache_dir=None)
    assert circles(graph) == []
    graph.add_import(importer="jaxdp.core.params", imported="jaxdp.core.guarantee")  # planted
    assert any({"jaxdp.core.params", "jaxdp.core.guarantee"} <= {*group} for group in circles(graph))
