"""Plays the same problem with published code in a checkout and with jaxdp, and keeps regret and time.

`python -m benchmarks.published.regret keirp/private-bandits --checkout FOLDER` plays the matches of one repository;
`python -m benchmarks.published.regret --table` prints the tables of the kept results.
"""

import argparse
import json
from pathlib import Path

from benchmarks.published.adapters import REPOSITORIES
from benchmarks.published.matches import Match, matches, play_ours, play_theirs
from benchmarks.published.run import RESULTS as ATTACKS
from benchmarks.published.run import check_files

RESULTS = Path(__file__).with_name("regret.json")
HEAD = "| learner | regret | runs | a round, µs |\n|---|---|---|---|"


def measure(match: Match, checkout: Path, seeds: int | None) -> dict[str, object]:
    """Returns the row of one match."""
    theirs = play_theirs(match, match.theirs(checkout), seeds or match.seeds)
    return {
        "world": match.world,
        "epsilon": match.epsilon,
        "horizon": match.horizon,
        "note": match.note,
        "theirs": theirs,
        "ours": {name: play_ours(match.world, match.horizon, *learner) for name, learner in match.ours.items()},
    }


def is_refuted(repository: str, code: str) -> bool:
    """Returns whether a kept attack refuted the claim of the class or function with which a match's name starts."""
    attacks = json.loads(ATTACKS.read_text()).get(repository, {})
    return attacks.get(code.partition(" ")[0], {}).get("verdict") == "violated"


def table(results: dict[str, dict], refuted: bool) -> str:
    """Returns results as Markdown, with one table for each match: those with a refuted claim, or all others."""
    parts = []
    for name, rows in sorted(results.items()):
        repository = REPOSITORIES[name]
        for code, row in sorted(rows.items()):
            if is_refuted(name, code) != refuted:
                continue
            learners = {f"`{code}`": row["theirs"], **{f"jaxdp: `{name}`": ours for name, ours in row["ours"].items()}}
            text = [
                f"### {code}, of [{name}]({repository.url}/tree/{repository.commit})\n",
                f"ε = {row['epsilon']:g}, T = {row['horizon']:,}; {row['world']}.\n{row['note']}.\n",
                lines(learners),
            ]
            parts.append("\n".join(text))
    return "\n\n".join(parts)


def lines(learners: dict[str, dict[str, float]]) -> str:
    """Returns the table of some learners."""
    rows = [
        f"| {learner} | {numbers['regret']:,.0f} ± {numbers['error']:,.0f} | {numbers['seeds']} | "
        f"{numbers['microseconds']:g} |"
        for learner, numbers in learners.items()
    ]
    return "\n".join([HEAD, *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", nargs="?", choices=matches())
    parser.add_argument("--checkout", type=Path, help="folder of the repository at the commit of the table")
    parser.add_argument("--only", nargs="*", help="names of matches; by default all")
    parser.add_argument("--seeds", type=int, help="runs of the published code; by default as in the table")
    parser.add_argument("--results", type=Path, default=RESULTS, help="JSON file for the rows")
    parser.add_argument("--table", action="store_true", help="print the tables of the stored results")
    options = parser.parse_args()
    results = json.loads(options.results.read_text()) if options.results.exists() else {}
    if options.table or options.repository is None:
        print(table(results, refuted=False), table(results, refuted=True), sep="\n\n")
        return
    if options.checkout is None:
        parser.error("--checkout must name a folder")
    check_files(parser, options.repository, options.checkout)
    for name, match in matches()[options.repository].items():
        if options.only and name not in options.only:
            continue
        row = measure(match, options.checkout.resolve(), options.seeds)
        print(f"{name}: {row}", flush=True)
        results.setdefault(options.repository, {})[name] = row
        options.results.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
