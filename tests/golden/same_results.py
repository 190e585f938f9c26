"""Whether two checkouts of jaxdp give the same results, bit for bit, on this machine: a tool, not a test.

Usage: python tests/golden/same_results.py OLD NEW, two folders as `git worktree add` makes them. Every case of
`same_results_worker.py` is run in both, in both precisions and with the same XLA flags; what differs is listed, a line
each, and the exit status is then 1. Cases and outputs of one checkout alone differ, and so do cases that fail. If
public names changed between the checkouts, `--renamed` has the table of old and new names.
"""

import argparse
import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
WORKER = ROOT / "tests" / "golden" / "same_results_worker.py"
# Most of the time is compiling; these are the flags by which `make test` compiles.
QUICKLY = (
    "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1 --xla_cpu_use_fusion_emitters=false"
)
Outputs = Mapping[str, np.ndarray]


def quick_flags() -> str:
    """Returns the flags of a quick compilation, those that this XLA knows: it ends a process that names another one."""
    known = ""
    for flag in QUICKLY.split():
        environment = {**os.environ, "XLA_FLAGS": f"{known} {flag}", "JAX_PLATFORMS": "cpu"}
        start = [sys.executable, "-c", "import jax; jax.devices()"]
        if subprocess.run(start, env=environment, capture_output=True).returncode == 0:
            known = f"{known} {flag}"
    return known


def results(
    checkout: Path, bits: int, only: str, flags: str, file: Path, times: bool, worker: Path = WORKER
) -> dict[str, Outputs]:
    """Returns outputs of every case, by the case's name and their own, from a separate process."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment |= {
        "PYTHONPATH": str(checkout),
        "PYTHONDONTWRITEBYTECODE": "1",
        "XLA_FLAGS": flags,
        "JAX_ENABLE_X64": str(int(bits == 64)),
        "JAX_ENABLE_COMPILATION_CACHE": "0",  # programs of one checkout are not to stand for the other's
        "JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", ""),
    }
    command = [sys.executable, str(worker), str(checkout), str(file), only]
    subprocess.run(command, env=environment, check=True, stdout=None if times else subprocess.DEVNULL)
    return pickle.loads(file.read_bytes())


def under_new_names(results: Mapping[str, Outputs], names: Mapping[str, str]) -> dict[str, Outputs]:
    """Returns results with the old names of cases and outputs replaced by the new ones."""
    if not names:
        return dict(results)
    pattern = re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)))

    def replace(text: str) -> str:
        return pattern.sub(lambda match: names[match.group()], text)

    return {
        replace(case): {replace(output): values for output, values in outputs.items()}
        for case, outputs in results.items()
    }


def differences(old: Mapping[str, Outputs], new: Mapping[str, Outputs]) -> Iterator[str]:
    """Yields a line for each output that differs."""
    for case in [*old, *(case for case in new if case not in old)]:
        if case not in old or case not in new:
            yield f"{case}: only in {'the new' if case in new else 'the old'} checkout"
            continue
        mine, theirs = old[case], new[case]
        for which, outputs in (("old", mine), ("new", theirs)):
            if "error" in outputs:
                yield f"{case}: fails in the {which} checkout: {outputs['error']}"
        if "error" in mine or "error" in theirs:
            continue
        for output in [*mine, *(output for output in theirs if output not in mine)]:
            if output not in mine or output not in theirs:
                yield f"{case}: {output}: only in {'the new' if output in theirs else 'the old'} checkout"
            elif difference := _difference(mine[output], theirs[output]):
                yield f"{case}: {output}: {difference}"


def _difference(old: np.ndarray, new: np.ndarray) -> str:
    """Returns how two outputs differ; nothing where they do not. NaN is NaN, and 0 is not -0."""
    is_text = old.dtype.kind == new.dtype.kind == "U"
    if (old.shape, old.dtype) != (new.shape, new.dtype) and not (is_text and old.shape == new.shape):
        return f"{old.dtype}{list(old.shape)} and {new.dtype}{list(new.shape)}"
    differs = old != new
    if old.dtype.kind == "f":
        differs = (differs | (np.signbit(old) != np.signbit(new))) & ~(np.isnan(old) & np.isnan(new))
    if not differs.any():
        return ""
    counted = f"{differs.sum()} of {differs.size} entries differ"
    if is_text:
        return f"{counted}: {old[differs].flat[0]!r} and {new[differs].flat[0]!r}"
    with np.errstate(all="ignore"):
        largest = np.abs(old[differs].astype(np.longdouble) - new[differs].astype(np.longdouble)).max()
    return f"{counted}, by at most {largest:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--bits", type=int, choices=(32, 64), help="one precision only")
    parser.add_argument("--only", default="", help="cases in whose name this regular expression is found")
    parser.add_argument("--allow", default="^$", help="differences in whose line this is found are listed as allowed")
    parser.add_argument("--optimised", action="store_true", help="compile by XLA_FLAGS as they are, not quickly")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--times", action="store_true", help="print how long each case takes")
    parser.add_argument(
        "--renamed",
        nargs="+",
        default=[],
        metavar="OLD=NEW",
        help="old and new names in cases and outputs; each checkout then runs its own cases",
    )
    options = parser.parse_args()
    names = dict(pair.split("=") for pair in options.renamed)
    flags = os.environ.get("XLA_FLAGS", "") + ("" if options.optimised else quick_flags())
    precisions = [options.bits] if options.bits else [32, 64]
    outputs, found, allowed = 0, 0, 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:

        def start(name: str, bits: int):
            checkout, file = getattr(options, name).resolve(), Path(folder, f"{name}{bits}")
            worker = checkout / WORKER.relative_to(ROOT) if names else WORKER
            return pool.submit(results, checkout, bits, options.only, flags, file, options.times, worker)

        running = {bits: (start("old", bits), start("new", bits)) for bits in precisions}
        for bits, (old, new) in running.items():
            outputs += sum(map(len, old.result().values()))
            for line in differences(under_new_names(old.result(), names), new.result()):
                is_allowed = re.search(options.allow, line) is not None
                allowed, found = allowed + is_allowed, found + (not is_allowed)
                print(f"{bits} bits: {line}{' (allowed)' if is_allowed else ''}", flush=True)
    print(f"{outputs} outputs compared, {found} differences, and {allowed} that are allowed")
    sys.exit(found > 0 or outputs == 0)


if __name__ == "__main__":
    main()
