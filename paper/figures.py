"""Draws the paper's figure from the committed results of published code: `make paper`."""

import json
from pathlib import Path

import matplotlib.pyplot as plt

import jaxdp

HERE = Path(__file__).parent
RESULTS = HERE.parent / "benchmarks" / "published" / "regret.json"


def rows() -> list[tuple[str, dict[str, float], dict[str, float]]]:
    """Returns (name, theirs, ours) for each published algorithm that jaxdp has unchanged."""
    same = []
    for repository, algorithms in json.loads(RESULTS.read_text(encoding="utf-8")).items():
        for name, row in algorithms.items():
            if row["note"].startswith("The same algorithm"):
                same.append(
                    (f"{repository.partition('/')[0]}\n{name}", row["theirs"], next(iter(row["ours"].values())))
                )
    return same


def main() -> None:
    """Writes beside_published_code.png."""
    pairs = rows()
    with jaxdp.plotting.paper(6.3):
        figure, (regrets, times) = plt.subplots(
            1, 2, sharey=True, layout="constrained", figsize=(6.3, 0.9 + 0.5 * len(pairs))
        )
        for place, (_, *both) in enumerate(pairs):
            styles = ((0.12, "o", "C0", "published code"), (-0.12, "s", "C1", "jaxdp"))
            for (shift, marker, color, label), row in zip(styles, both, strict=True):
                label = label if place == 0 else None
                x, error = row["regret"], 2 * row["error"]
                regrets.errorbar(x, place + shift, xerr=error, fmt=marker, color=color, label=label, markersize=4)
                times.plot(row["microseconds"], place + shift, marker, color=color, markersize=4)
        regrets.set(yticks=range(len(pairs)), yticklabels=[name for name, *_ in pairs])
        regrets.set(xlabel="Cumulative regret, ±2 standard errors")
        times.set(xscale="log", xlabel="Time of a round (µs)")
        figure.legend(loc="outside upper center", ncols=2, frameon=False)
        figure.savefig(HERE / "beside_published_code.png", dpi=200)


if __name__ == "__main__":
    main()
