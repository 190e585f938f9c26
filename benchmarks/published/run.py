"""Attacks the claims of published code in a checkout, and keeps the results.

`python -m benchmarks.published.run keirp/private-bandits --checkout FOLDER` attacks one repository;
`python -m benchmarks.published.run --table` prints the table of the kept results.
"""

import argparse
import hashlib
import json
import time
from pathlib import Path

import jax

from benchmarks.published.adapters import REPOSITORIES
from benchmarks.published.cases import Case, Repository

RESULTS = Path(__file__).with_name("results.json")
TRIALS = 4_000
HEAD = "| code | claim | rounds | the attack sees | lower bound | verdict |\n|---|---|---|---|---|---|"


def digest(folder: Path, repository: Repository) -> str:
    """Returns the start of the SHA-256 of the files that are imported."""
    paths = sorted({path for pattern in repository.files for path in folder.glob(pattern)})
    if not paths:
        raise ValueError(f"checkout must be a folder with {', '.join(repository.files)}, got {folder}")
    content = hashlib.sha256()
    for path in paths:
        content.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return content.hexdigest()[:16]


def check_files(parser: argparse.ArgumentParser, name: str, checkout: Path) -> None:
    """Ends the program if the files of a checkout differ from the files of the commit."""
    repository = REPOSITORIES[name]
    found = digest(checkout, repository)
    if found != repository.digest:
        parser.error(f"--checkout must be {name} at {repository.commit}: its files have another digest, {found}")


def attack(case: Case, trials: int) -> dict[str, object]:
    """Returns the row of one attack."""
    start = time.perf_counter()
    result = case.learner.audit(jax.random.key(0), rounds=case.rounds, trials=trials)
    return {
        "epsilon": result.claimed,
        "delta": result.delta,
        "model": result.guarantee.trust_model,
        "rounds": case.rounds,
        "setting": case.setting,
        "seen": case.seen,
        "trials": trials,
        "lower_bound": round(result.lower_bound, 3),
        "verdict": result.verdict,
        "repeatable": result.repeatable,
        "seconds": round(time.perf_counter() - start, 1),
    }


def table(results: dict[str, dict]) -> str:
    """Returns the results as Markdown, with one table for each repository."""
    parts = []
    for name, rows in sorted(results.items()):
        repository = REPOSITORIES[name]
        lines = [f"### [{name}]({repository.url}/tree/{repository.commit}), {repository.commit}\n", HEAD]
        for code, row in rows.items():
            delta = f", δ = {row['delta']:g}" if row["delta"] else ""
            lines.append(
                f"| `{code}` | ε = {row['epsilon']:g}{delta}, {row['model']} | {row['rounds']} | {row['seen']} | "
                f"{row['lower_bound']:.2f} | {row['verdict']} |"
            )
        settings = {code: row["setting"] for code, row in rows.items() if row["setting"]}
        if settings:
            lines.append("\n" + "\n".join(f"* `{code}`: {setting}." for code, setting in settings.items()))
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", nargs="?", choices=REPOSITORIES)
    parser.add_argument("--checkout", type=Path, help="folder of the repository at the commit of the table")
    parser.add_argument("--only", nargs="*", help="names of classes or functions; all if left out")
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of JSON that gets the rows")
    parser.add_argument("--table", action="store_true", help="print the table of the kept results")
    options = parser.parse_args()
    results = json.loads(options.results.read_text()) if options.results.exists() else {}
    if options.table or options.repository is None:
        print(table(results))
        return
    if options.checkout is None:
        parser.error("--checkout must name a folder")
    check_files(parser, options.repository, options.checkout)
    for name, case in REPOSITORIES[options.repository].cases(options.checkout.resolve()).items():
        if options.only and name not in options.only:
            continue
        row = attack(case, options.trials)
        print(f"{name}: {row}", flush=True)
        results.setdefault(options.repository, {})[name] = row
        options.results.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
