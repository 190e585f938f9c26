"""Builds a release and tries it in an empty environment, and uploads nothing: `make release VERSION=0.2.0`.

It stops unless the version stands in pyproject.toml, CITATION.cff and a heading of CHANGELOG.md, and all is committed.
The wheel and the source distribution go to dist/VERSION, a new folder. twine checks them strictly; the source
distribution builds the same wheel again; and in an empty environment with the wheel alone, at the exact versions of
requirements.lock, the README's Python code runs.
"""

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent


def faults(version: str) -> list[str]:
    """Lists the faults that must be mended before this version can be built."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = re.search(r"^version: *(.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    heading = re.search(rf"^## {re.escape(version)}\b(.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    lines = []
    if project["version"] != version:
        lines.append(f"pyproject.toml has version {project['version']}, not {version!r}")
    if cited is None or cited[1] != version:
        lines.append(f"CITATION.cff has version {cited and cited[1]}, not {version!r}")
    if heading is None or "unreleased" in heading[1]:
        lines.append(f"CHANGELOG.md has no heading '## {version} (DATE)'")
    if output("git", "status", "--porcelain"):
        lines.append("not all is committed; see git status")
    if (ROOT / "dist" / version).exists():
        lines.append(f"dist/{version} exists, and is not overwritten")
    return lines


def output(*command: str | Path, folder: Path = ROOT, **variables: str) -> str:
    """Runs a command and returns its output; if it fails, prints the output and stops."""
    result = subprocess.run(
        command, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    if result.returncode:
        sys.exit(f"{result.stdout}{result.stderr}\nfailed: {' '.join(map(str, command))}")
    return result.stdout


def make_environment(folder: Path, *packages: str | Path) -> Path:
    """Makes a virtual environment with these packages, and returns the path of its Python."""
    output(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    output(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return python


def build(source: Path, folder: Path, *targets: str) -> list[Path]:
    """Builds distributions of a source tree, and returns their paths."""
    options = [option for target in targets for option in ("-t", target)]
    output(sys.executable, "-m", "hatchling", "build", "-d", folder, *options, folder=source)
    return list(folder.iterdir())


def contents(wheel: Path) -> dict[str, int]:
    """Returns the checksum of each file of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {member.filename: member.CRC for member in archive.infolist()}


def run_readme(python: Path, folder: Path) -> str:
    """Runs the README's Python code with an interpreter, in an empty folder, and returns its output."""
    code = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    folder.mkdir()
    (folder / "readme.py").write_text("\n".join(code), encoding="utf-8")
    return output(python, "readme.py", folder=folder, PYTHONPATH="", MPLBACKEND="Agg")


def main(version: str) -> None:
    """Builds and tries a version."""
    if lines := faults(version):
        sys.exit("\n".join(["nothing was built:", *lines]))
    wheel, sdist = sorted(
        build(ROOT, ROOT / "dist" / version, "wheel", "sdist"), key=lambda path: path.suffix != ".whl"
    )
    print("built", wheel.relative_to(ROOT), sdist.relative_to(ROOT), flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        twine = make_environment(folder / "twine", "twine")
        print(output(twine, "-m", "twine", "check", "--strict", wheel, sdist).strip(), flush=True)
        with tarfile.open(sdist) as archive:
            archive.extractall(folder / "source", filter="data")
        (source,) = (folder / "source").iterdir()
        (again,) = build(source, folder / "again", "wheel")
        if contents(again) != contents(wheel):
            sys.exit("the source distribution builds another wheel")
        print("the source distribution builds the same wheel", flush=True)
        python = make_environment(folder / "empty", wheel, "-c", ROOT / "requirements.lock")
        installed = output(python, "-m", "jaxdp", "--version", folder=folder, PYTHONPATH="").strip()
        if installed != f"jaxdp {version}":
            sys.exit(f"the installed command prints {installed!r}, not 'jaxdp {version}'")
        print(run_readme(python, folder / "readme").strip())
    print(f"{installed} is ready in dist/{version}; nothing was uploaded")


if __name__ == "__main__":
    main(*sys.argv[1:])
