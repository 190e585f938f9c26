"""Makes project/papers_reproduced.md from the records beside it: `python docs/make_papers_reproduced.py`.

A record is the results.json of `python -m jaxdp reproduce PAPER`, kept as project/reproduced/PAPER.json.
"""

import json
from pathlib import Path

from jaxdp.studies.reproduce import PAPERS
from jaxdp.studies.reproduce.page import page

PROJECT = Path(__file__).parent / "project"


def made() -> str:
    """The page, from the records that are there."""
    files = [PROJECT / "reproduced" / f"{name}.json" for name in PAPERS]
    return page([json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()])


if __name__ == "__main__":
    (PROJECT / "papers_reproduced.md").write_text(made(), encoding="utf-8")
