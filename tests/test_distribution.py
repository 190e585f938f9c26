"""The distribution: a description that stands alone, and every file that it names."""

import ast
import email
import importlib.util
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Builds the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder), "-t", "wheel", "-t", "sdist"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="module")
def metadata(built):
    with zipfile.ZipFile(built[0]) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_string(wheel.read(name).decode())


@pytest.fixture(scope="module")
def shipped(built):
    with tarfile.open(built[1]) as sdist:
        return {name.split("/", 1)[1] for name in sdist.getnames() if "/" in name}


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_description_has_no_link_that_is_dead_elsewhere(metadata):
    text = metadata.get_payload()
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert len(text) > 5000
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    targets = re.findall(r"\]\(([^)\s]+)\)", prose)
    assert targets
    assert [target for target in targets if not re.match("https?://", target)] == []
    assert "](docs/" in (ROOT / "README.md").read_text(encoding="utf-8")  # else this test sees nothing


def test_every_file_that_the_description_names_is_in_the_source_distribution(metadata, shipped):
    named = set(re.findall(r"`([^`\s]+)` of\s+the\s+source\s+distribution", metadata.get_payload()))
    assert {"docs/regret.png", "benchmarks/README.md", "docs/howto/own_learner.md"} <= named
    for path in named:
        assert path.rstrip("/") in shipped or any(name.startswith(f"{path.rstrip('/')}/") for name in shipped), path
    assert {"README.md", "LICENSE", "hatch_build.py", "pyproject.toml", "Makefile"} <= shipped
    assert {"requirements.lock", "requirements-newest.lock"} <= shipped
    assert not [name for name in shipped if name.startswith((".venv", ".cache", "results", "runs"))]


def test_the_version_is_said_once_and_no_host_is_made_up(metadata):
    assert metadata["Version"] == PROJECT["version"]
    assert metadata.get_all("Project-URL") is None
    assert metadata["Home-page"] is None
    assert "accounting" in metadata.get_all("Provides-Extra")


def test_every_package_that_is_imported_is_declared():
    """Checks that extras are imported only on request."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "jaxdp").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0}
    packages = {name.split(".")[0] for name in imported} - set(sys.stdlib_module_names) - {"jaxdp"}
    packages -= {"google_crc32c", "crc32c", "rich"}  # zarr needs one of the first two, and typer the last
    extras = [line for name in ("parquet", "accounting", "paper") for line in PROJECT["optional-dependencies"][name]]
    declared = {re.split("[<>=]", line)[0].replace("-", "_") for line in (*PROJECT["dependencies"], *extras)}
    assert {"jax", "pandas"} <= packages <= declared


def test_exact_versions_name_no_host():
    for name in ("requirements.lock", "requirements-newest.lock"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "pandas==" in text
        assert not re.search(r"https?:|--(extra-)?index-url|--find-links| @ ", text)


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("see [the page](https://a.b/c)", "see [the page](https://a.b/c)"),
        ("![A picture](docs/a.png)", "(Picture: A picture. It is `docs/a.png` of the source distribution.)"),
        ("[docs/a.csv](docs/a.csv) is", "`docs/a.csv` of the source distribution is"),
        ("[notes](docs/a.md#part)", "notes (`docs/a.md` of the source distribution)"),
        ("[below](#below)", "below"),
        ("[`rucb`](jaxdp/dueling)", "`rucb` (`jaxdp/dueling` of the source distribution)"),
        ("`a[0](b)` and\n```python\nf[1](x)\n```\n", "`a[0](b)` and\n```python\nf[1](x)\n```\n"),
    ],
)
def test_links(markdown, text):
    assert load("hatch_build").description(markdown) == text


def test_a_version_is_not_built_before_all_files_name_it():
    faults = load("release").faults
    assert [line.split()[0] for line in faults("9.9.9")][:3] == ["pyproject.toml", "CITATION.cff", "CHANGELOG.md"]
    heading = "CHANGELOG.md has no heading"
    dated = re.search(
        rf"^## {re.escape(PROJECT['version'])} \(\d", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    assert any(line.startswith(heading) for line in faults(PROJECT["version"])) == (dated is None)
    assert not any(line.startswith(("pyproject", "CITATION")) for line in faults(PROJECT["version"]))
