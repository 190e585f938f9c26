"""Draws the gallery's small figures of studies: `python docs/make_studies.py`, or with the names of some of them.

Each study runs in its quick form, as `python -m jaxdp run NAME --quick` does.
`docs/gallery/studies.json` says what each figure shows: if a figure is drawn again, read its sentence again.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from site_pages.gallery import OF_STUDIES, thumbnail

from jaxdp.studies import STUDIES

# Arguments of studies that have no problem of their own.
ARGUMENTS = {
    "advise": ("--problem", "bandit", "--arms", "10", "--horizon", "1e6", "--epsilon", "1"),
    "dueling-ballots": ("--ballots", "docs/examples/lunch.soi"),
    "tracking-your-losses": ("--losses", "docs/examples/losses.csv", "--switches", "2"),
}


def main() -> None:
    """Runs the command."""
    OF_STUDIES.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or STUDIES:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "jaxdp", "run", name, *ARGUMENTS.get(name, ()), "--quick", "--out", folder]
            subprocess.run(command, check=True, cwd=Path(__file__).parents[1])
            (OF_STUDIES / f"{name}.png").write_bytes(thumbnail((Path(folder) / "figure.png").read_bytes()))


if __name__ == "__main__":
    main()
