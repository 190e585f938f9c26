"""Computes a run at every point of a grid and for many seeds, by `sweep`, which returns an xarray Dataset."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from jaxdp.simulation.run.lane_run import Run
from jaxdp.simulation.store.chunks import Chunk, chunk_shape, chunks, share
from jaxdp.simulation.store.creation import check_same_sweep, check_storable, open_or_create, stored_tile_size
from jaxdp.simulation.store.files import Store
from jaxdp.simulation.store.identity import differences_of_stores, shortfalls
from jaxdp.simulation.store.locks import UnwritableError, can_lock, share_lock
from jaxdp.simulation.store.nans import NanCount
from jaxdp.simulation.store.opening import open_masked
from jaxdp.simulation.store.provenance import add_privacy_unit
from jaxdp.simulation.sweeps._replay import Recipe, attach
from jaxdp.simulation.sweeps.growth import can_grow, grow_store
from jaxdp.simulation.sweeps.lanes import Device
from jaxdp.simulation.sweeps.local import LocalSource
from jaxdp.simulation.sweeps.plan import Plan
from jaxdp.simulation.sweeps.progress import Progress, Reporter, report_chunk
from jaxdp.simulation.sweeps.remote import RemoteSource
from jaxdp.simulation.sweeps.shares import which_share
from jaxdp.simulation.sweeps.source import Source
from jaxdp.validation import check_above, check_count, check_flag, check_local_path

if TYPE_CHECKING:
    import xarray as xr


def sweep(
    build: Callable[..., Run] | Run,
    *,
    axes: Mapping[str, Sequence[Any]],
    static_axes: Mapping[str, Sequence[Any]] | None = None,
    num_seeds: int,
    key: jax.Array,
    tile_size: int | None = None,
    chunk_size: int | None = None,
    devices: Sequence[Device] | None = None,
    store: str | Path | None = None,
    overwrite: bool = False,
    grow: bool = False,
    executor: Executor | None = None,
    timeout: float | None = None,
    process_index: int | str | None = None,
    num_processes: int | str | None = None,
    progress: bool | Callable[[Progress], object] = False,
) -> "xr.Dataset":
    """Runs `build(**static)` for every combination of values and every seed.

    All values of `axes` share one compiled program. Each combination of `static_axes` is compiled separately. A lane is
    one combination of values with one seed.

    On one model of processor and with the same XLA flags, results are bit-identical for every `chunk_size`, for every
    number of `devices`, processes and workers, and after interruptions of a sweep with a store. The last bits may
    differ between tile sizes, kinds of devices, models of processors, XLA flags, and versions of JAX and SciPy. In the
    study `reward-estimation`, other instruction sets and flags changed the mean errors of estimators by less than 0.001
    of a standard error (`jaxdp.simulation.store.processor` describes the measurements).

    With `store`, results are written as they are computed, and the same call resumes an interrupted sweep. The call
    reports damaged files, and computes or writes them again. It rejects a store with another program, tile size, kind
    of device, model of processor, XLA flags, or version of JAX or SciPy, so that a store never mixes results that may
    differ. A newer version of jaxdp resumes the store if it compiles the same programs with the same parameters and
    claims. `jaxdp.open` reads a store while it is being written. Missing lanes are then NaN, and the variable
    `computed` is true where a lane's results exist. If the store is complete, the call returns its results even from a
    read-only folder.

    With `grow=True`, the store of a smaller sweep is extended to cover this sweep, which has more seeds or more values
    of an axis, in any order. The smaller sweep may be unfinished. The results equal the results of a new sweep bit for
    bit: to check this, the call first computes some stored lanes again (`docs/howto/grow_a_sweep.md` lists the checks).
    Other stored lanes are not computed again. Stores of contextual bandits, and stores with a `tile_size` that is not a
    multiple of 16, can grow only if lanes keep their positions in tiles (batches of lanes that run together). For
    example, lanes keep their positions if static axes get more values, or if the old and the new number of seeds are
    multiples of `tile_size`.

    Warns:
        RuntimeWarning: if results contain NaN (the warning has the number of lanes); if a file of the store was
            damaged; if memory ran out, so that fewer tiles now run at a time.

    Args:
        build: (**static) -> Run, called once for every combination of static values, before anything is compiled; or a
            Run, if there are no static_axes.
        axes: lists of values of the run's parameters, keyed by name; the grid is their product.
        static_axes: lists of values of `build`'s arguments, such as arguments that fix shapes, or `unit` of
            `simulator`.
        num_seeds: number of seeds at every grid point, >= 1. Seed i has the key fold_in(key, i) at every grid point.
        key: a typed PRNG key, as from `jax.random.key`, of a Threefry implementation (JAX's default).
        tile_size: number of lanes that are compiled together, >= 1; memory grows with this number. None means the tile
            size of the store, if a store is read, and otherwise a default for the kind of device (of the first worker,
            with an executor). On a CPU, the default is 256, or with many lanes the largest of 272, 528 and 1,056 that
            makes at least eight tiles with states that should fit in a core's cache. On a GPU, it is the number of
            lanes of a program, rounded up to a multiple of 1,024, but at most 65,536, and at most the number that
            should fit in 4 GiB. Several tiles run at a time if memory allows; if memory runs out, the number of tiles
            that run at a time is halved.
        chunk_size: the maximum number of lanes that are returned and written together, >= 1. None means a default,
            limited by free memory. With an executor, it is small, so that workers share chunks evenly. Otherwise, with
            a store, it is at most about 20 seconds of work of the first program, or the tiles that run at a time if
            these take longer. A store keeps the chunk size of the first call.
        devices: devices of one kind; each tile runs on one device. None means all local devices of JAX's default kind.
        store: path of a Zarr store, on a file system with file locks. The path must not exist, or must contain the
            store of this sweep; with `overwrite` or `grow`, it may contain the store of another sweep.
        overwrite: whether to replace an existing store, of this sweep or of another sweep. To resume a sweep, leave it
            False. The old store is removed when the new store exists. Results of the old store that are not yet in
            memory raise an OSError when they are read.
        grow: whether to add the missing part of this sweep to the store of a smaller sweep. If False, the store of a
            smaller sweep is rejected. A store with values or seeds that this sweep lacks is rejected, unless
            `overwrite` replaces it. Chunks keep their size. If there is no store at the path, the call creates one.
        executor: a `concurrent.futures` executor, such as `client.get_executor()` of a Dask cluster. Its workers
            compute the chunks, each on its own devices. Processes must be spawned and not forked, because a fork of a
            process that has used JAX hangs: `ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"))`.
            Options of JAX that change numbers, such as `jax.enable_x64`, are passed on to the workers.
            After each minute in which no chunk is finished, the logger "jaxdp" (on stderr, if logging is not set up)
            reports the missing chunks.
        timeout: the maximum time in seconds, > 0, until the first worker of an executor responds, and between two
            finished chunks, including compilation. None means no limit.
        process_index: index of this process in [0, num_processes), if several processes compute parts of the same
            store. "auto" reads it from SLURM (a job array or srun) or from a Kubernetes indexed job.
        num_processes: the number of processes; "auto" reads it from SLURM.
        progress: True shows a bar in a notebook, or on stderr if it is a terminal. A function is called with a
            `Progress` each time lanes are done.

    Returns:
        A dataset with dimensions (*static_axes, *axes, seed, *dimensions of the run) and the values as coordinates. If
        the values of an axis are neither all numbers nor all text (for example links, or None), their names or texts
        are the labels. The coordinate `privacy_unit` has the unit of the claims ("" without a claim), along the axes
        where units differ. The attribute `provenance` is JSON text with versions, devices, processor, XLA flags, key,
        tile size, and every grid point's parameters and guarantees. With a store, values are read from disk when they
        are used. If lanes of other processes are missing, the dataset has the variable `computed`.

    Raises:
        ValueError: if an axis is empty, has duplicate values, is named twice, or has the name of a result of
            `jaxdp.stats`, such as low or mean; if a count is < 1; if there are no devices, or devices of several kinds;
            if key is not a typed Threefry key; if a value is out of range for the run; if the dimensions of outputs do
            not match their labels, or differ between static values; if the store belongs to another sweep (the message
            states the differences), or cannot be extended to cover this sweep; or if options exclude each other, such
            as `grow` and `overwrite`. Raised before anything is compiled, with two exceptions: growing may first run
            lanes; and without a store or an executor, the outputs of a program are checked only before this program is
            compiled, when earlier programs may have run.
        BlockingIOError: if another process writes this share of the store, or any share if the store must grow.
        OSError: if results cannot be written. Results that were written stay, and the same call resumes the sweep.
        MemoryError: if a single tile or the results do not fit in free memory. Raised before results are computed if
            sizes are known in advance, and otherwise when memory runs out.
        RuntimeError: if the executor fails. Results that were written stay.
        TimeoutError: if no worker responds, or no chunk is finished, within `timeout`. Results that were written stay.
        KeyboardInterrupt: if the user interrupts the sweep; the message says which results are stored and how to
            resume.

    Examples:
        >>> import jax, jaxdp
        >>> def build(num_samples):
        ...     estimators = {"local": jaxdp.estimation.debiased_rr(), "clear": jaxdp.estimation.mle()}
        ...     problem = jaxdp.estimation.gaussian_rewards(num_samples=num_samples, dim=2)
        ...     return jaxdp.estimation_run(estimators, problem)
        >>> results = jaxdp.sweep(build, axes={"epsilon": [0.5, float("inf")]}, static_axes={"num_samples": [100]},
        ...                       num_seeds=4, key=jax.random.key(0))
        >>> results.l2_error.dims
        ('num_samples', 'epsilon', 'seed', 'estimator')
    """
    if isinstance(jnp.zeros(()), Tracer) or isinstance(key, Tracer):
        raise ValueError(
            "sweep must be called outside of jax.jit, jax.vmap and the like, got traced arrays: it compiles its "
            "programs; inside, map the run: jax.vmap(run, in_axes=(0, None))(keys, params)"
        )
    if chunk_size is not None:
        chunk_size = check_count("chunk_size", chunk_size)
    check_flag("overwrite", overwrite)
    check_flag("grow", grow)
    if not (isinstance(progress, bool) or callable(progress)):
        raise ValueError(f"progress must be True, False or a function, got {progress!r}")
    index, count = which_share(process_index, num_processes)
    if store is None and (count > 1 or overwrite):
        raise ValueError(f"store must be given with num_processes > 1 or overwrite, got {count} and {overwrite}")
    if grow and (store is None or overwrite):
        raise ValueError(f"grow must be False {'without a store' if store is None else 'with overwrite'}, got True")
    if overwrite and count > 1:
        raise ValueError(f"overwrite must be False if several processes write, got {count} processes")
    if executor is not None and devices is not None:
        raise ValueError("devices must be None with an executor, whose workers use their devices, got both")
    if timeout is not None:
        timeout = check_above("timeout", timeout, 0.0)
        if executor is None:
            raise ValueError(f"timeout must be None without an executor, got {timeout:g}")
    path = None if store is None else _local(store)

    if tile_size is None and path is not None and not overwrite:
        tile_size = stored_tile_size(path)
    plan = Plan(build, axes, static_axes or {}, num_seeds=num_seeds, key=key, tile_size=tile_size, devices=devices)
    nans = NanCount()
    report = Reporter(progress, plan.num_lanes, plan.rounds(0))
    try:
        with contextlib.closing(report):
            if path is not None or executor is not None:
                plan.check_programs()  # otherwise `LocalSource` checks each program before it compiles it
            plan.check_fits(in_memory=path is None)
            results = plan.dataset(allocate=path is None)
            if path is not None:
                check_storable(results)
            source = LocalSource(plan, report) if executor is None else RemoteSource(plan, executor, timeout, report)
            report.set_tile(plan.tiles())
            results.attrs["provenance"] = plan.provenance(source.hardware)

            def shape() -> tuple[int, ...]:
                lanes = chunk_size or source.best_chunk_lanes(None if path is None else count)
                return chunk_shape(plan.sizes, lanes)

            if path is None:
                _in_memory(source, results, chunks(plan.static_sizes, plan.sizes, shape()), nans, report)
            else:
                if path.exists() and not overwrite and not can_lock(path):
                    _from_read_only(path, source, index, count, nans, report, grow=grow)
                else:
                    if grow:
                        grow_store(path, plan, source, results)
                    with share_lock(path, index, count):
                        opened = open_or_create(
                            path,
                            results,
                            source.identity,
                            shape,
                            num_static=len(plan.static_sizes),
                            overwrite=overwrite,
                            alone=count == 1,
                            can_grow=lambda store: can_grow(store, plan, source, results),
                        )
                        if count == 1:
                            opened.clean()
                        # with overwrite, the sweep would start again
                        again = "the same call without overwrite" if overwrite else "the same call"
                        _to_store(source, opened, share(opened.chunks, index, count), nans, report, again)
                attributes = results.attrs
                results = open_masked(Store(path)).assign_coords(results.coords)
                results.attrs = attributes
    except KeyboardInterrupt as stop:
        if type(stop) is not KeyboardInterrupt:
            raise
        raise KeyboardInterrupt(_interruption(stop, path, report.progress())) from None  # no traceback of the internals
    add_privacy_unit(results)
    attach(results, Recipe(plan.build, {**plan.static_axes, **plan.axes}))
    nans.report()
    return results


def _in_memory(
    source: Source, results: "xr.Dataset", requested: Sequence[Chunk], nans: NanCount, report: Reporter
) -> None:
    report.start(sum(chunk.num_lanes for chunk in requested), 0, source.hardware.devices)
    for chunk, arrays in source.chunks(requested):
        for name, values in arrays.items():
            results[name].values[chunk.region] = values.reshape(*chunk.sizes, *values.shape[1:])
        nans.add(arrays)
        report_chunk(results, chunk.region)


def _from_read_only(
    path: Path, source: Source, index: int, count: int, nans: NanCount, report: Reporter, *, grow: bool
) -> None:
    """Raises an UnwritableError unless a store in a read-only folder has all lanes of share `index` of `count`.

    If the store belongs to another sweep, raises an UnwritableError if the store could be extended to cover this sweep
    and `grow` is True, and otherwise a ValueError.
    """
    store = Store(path)
    differences = differences_of_stores(source.identity, store.identity)
    if grow and differences and not shortfalls(source.identity, store.identity):
        raise UnwritableError(f"store must be in a writable folder to grow, got {path}, where {differences}")
    check_same_sweep(store, source.identity)
    requested = share(store.chunks, index, count)
    missing, damaged = store.examine(requested, nans)
    if missing:
        lanes = sum(chunk.num_lanes for chunk in missing)
        text = "; ".join(damaged.values())
        raise UnwritableError(
            f"store must be in a writable folder, got {path}, where {lanes} lanes are missing"
            f"{f' ({text})' if text else ''}"
        )
    total = sum(chunk.num_lanes for chunk in requested)
    report.start(total, total, source.hardware.devices)


def _interruption(stop: KeyboardInterrupt, path: Path | None, progress: Progress) -> str:
    """Returns the message of an interrupted sweep: how to resume it or, without a store, that its lanes are lost."""
    notes = getattr(stop, "__notes__", [])
    if notes:
        return f"interrupted: {notes[0]}"
    if path is not None:
        return f"interrupted; the same call resumes the sweep in {path}"
    lanes = f"{progress.lanes} of {progress.num_lanes} lanes"
    return f"interrupted after {lanes}, which are lost; a sweep with store= can be resumed"


def _to_store(
    source: Source, store: Store, requested: Sequence[Chunk], nans: NanCount, report: Reporter, again: str
) -> None:
    """Computes the missing lanes of a store. A thread writes each chunk while the next chunk is computed.

    `again` names the call that would compute the rest, for the note on an error.
    """
    missing = store.unmark_damaged(requested, nans)
    total, left = (sum(chunk.num_lanes for chunk in part) for part in (requested, missing))
    report.start(total, total - left, source.hardware.devices)
    writing = None
    try:
        with ThreadPoolExecutor(1) as pool:
            with contextlib.closing(source.chunks(missing)) as computed:
                for chunk, arrays in computed:
                    if writing is not None:
                        writing.result()
                    nans.add(arrays)
                    writing = pool.submit(store.commit, chunk, arrays)
            if writing is not None:
                writing.result()
    except (Exception, KeyboardInterrupt) as error:
        with contextlib.suppress(Exception):  # if the store is gone or broken, the original error matters more
            count = store.lanes_computed()
            error.add_note(f"{count} lanes of the sweep are safe in {store.path}; {again} computes the rest")
        raise


def _local(store: str | Path) -> Path:
    path = check_local_path("store", store).resolve()  # the path stays valid if the working directory changes
    if not path.name:
        raise ValueError(f"store must be a folder with a name, got {store}")
    if path.exists() and not path.is_dir():
        raise ValueError(f"store must be a folder or a free path, got {path}")
    return path
