"""Attacks the claims of published code in a checkout, and keeps the results.

`python -m benchmarks.published.run keirp/private-bandits --checkout FOLDER` attacks one repository;
`python -m benchmarks.published.run --checkouts FOLDER` attacks all repositories with a checkout in this folder;
`python -m benchmarks.published.run --table` prints the table of the kept results.
"""

import argparse
import hashlib
import json
import subprocess
import sys
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


def find_checkouts(folder: Path) -> dict[str, Path]:
    """Returns the checkouts in a folder, by repository; a checkout is found by the digest of its files."""
    checkouts = {}
    for path in sorted(folder.iterdir()):
        for name, repository in REPOSITORIES.items():
            if (
                any(any(path.glob(pattern)) for pattern in repository.files)
                and digest(path, repository) == repository.digest
            ):
                checkouts[name] = path
    return checkouts


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


def keep(path: Path, repository: str, name: str, row: dict[str, object]) -> None:
    """Writes a row into the file of results in one step, so that an interruption loses no other row."""
    results = read(path)
    results.setdefault(repository, {})[name] = row
    part = path.with_suffix(".part")
    part.write_text(json.dumps(results, indent=1) + "\n")
    part.replace(path)


def read(path: Path) -> dict[str, dict]:
    return json.loads(path.read_text()) if path.exists() else {}


def attack_all(folder: Path, options: list[str]) -> int:
    """Attacks every repository with a checkout in a folder, each in its own process; returns the exit status."""
    checkouts = find_checkouts(folder)
    for name in sorted(set(REPOSITORIES) - set(checkouts)):
        print(f"{name}: no checkout at {REPOSITORIES[name].commit} in {folder}", flush=True)
    status = 0 if checkouts else 2
    for name, checkout in checkouts.items():
        command = [sys.executable, "-m", "benchmarks.published.run", name, "--checkout", str(checkout), *options]
        status = max(status, subprocess.run(command).returncode)
    return status


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", nargs="?", choices=REPOSITORIES)
    parser.add_argument("--checkout", type=Path, help="folder of the repository at the commit of the table")
    parser.add_argument("--checkouts", type=Path, help="folder of checkouts under any names; attacks all of them")
    parser.add_argument("--only", nargs="*", help="names of classes or functions; by default all")
    parser.add_argument("--missing", action="store_true", help="attack only code without a row in the results")
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--results", type=Path, default=RESULTS, help="JSON file for the rows")
    parser.add_argument("--table", action="store_true", help="print the table of the stored results")
    options = parser.parse_args()
    if options.checkouts is not None and not options.table:
        if options.repository or options.checkout or options.only:
            parser.error("--checkouts attacks all repositories: leave out the repository, --checkout and --only")
        shared = ["--trials", str(options.trials), "--results", str(options.results)]
        raise SystemExit(attack_all(options.checkouts, shared + ["--missing"] * options.missing))
    if options.table or options.repository is None:
        print(table(read(options.results)))
        return
    if options.checkout is None:
        parser.error("--checkout must name a folder")
    check_files(parser, options.repository, options.checkout)
    kept = read(options.results).get(options.repository, {}) if options.missing else {}
    for name, case in REPOSITORIES[options.repository].cases(options.checkout.resolve()).items():
        if name in kept or (options.only and name not in options.only):
            continue
        row = attack(case, options.trials)
        print(f"{name}: {row}", flush=True)
        keep(options.results, options.repository, name, row)


if __name__ == "__main__":
    main()
