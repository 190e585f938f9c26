"""A run over a grid of parameters and many seeds, as an xarray Dataset with every seed's value."""

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
from jaxdp.simulation.store.files import COMPUTED, Store, open_dataset
from jaxdp.simulation.store.identity import differences_of_stores, shortfalls
from jaxdp.simulation.store.locks import UnwritableError, can_lock, share_lock
from jaxdp.simulation.store.nans import NanCount
from jaxdp.simulation.sweeps._replay import Recipe, attach
from jaxdp.simulation.sweeps.growth import grow_store
from jaxdp.simulation.sweeps.lanes import Device
from jaxdp.simulation.sweeps.local import LocalSource
from jaxdp.simulation.sweeps.plan import Plan
from jaxdp.simulation.sweeps.progress import Progress, Reporter
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

    Every value of `axes` shares one compiled program; every combination of `static_axes` has its own. Results are the
    same bit for bit whatever `chunk_size`, however many `devices` of one kind, processes and workers, and however often
    a sweep with a store was interrupted, on processors of one model under equal XLA flags. They may differ in the last
    bits between tile sizes, kinds of devices, models of processors, XLA flags, and versions of JAX and SciPy. Another
    instruction set or other flags moved the mean errors of `reward-estimation` by less than 0.001 of their standard
    error (`jaxdp.simulation.store.processor` has the measurements).

    With `store`, results are written as they come. The same call goes on where an interrupted one stopped; damaged
    files are named, and computed or written again. A store never mixes what may differ: it refuses to go on with
    another program, tile size, kind of device, model of processor, XLA flags, or versions of JAX and SciPy. It goes on
    with a newer jaxdp that compiles the same programs with the same parameters and claims. `jaxdp.open` reads the store
    while it is written, with NaN where lanes are missing; its variable `computed` is true where a lane's results are
    there. A finished store can also be asked for where nothing can be written beside it.

    With `grow=True` a store of a smaller sweep, finished or not, becomes one of this, which has more seeds, or more
    values of an axis, anywhere among the others. What is there is kept and not computed again, and the results are bit
    for bit those of one sweep of the whole, as a lane depends on its values and its seed's index alone. What can be
    checked is: the smaller sweep must have all of its programs, parameters and claims as they were; where lanes would
    have other places in tiles, 256 or more of each program are run in other places and must have the same bits, which
    those of contextual bandits have not; and where more grid points make another program, one tile of lanes that are
    there is run again and must have the same bits. With a `tile_size` that is no multiple of 16 a store can grow only
    where lanes keep their places, as by values of static axes, or from one multiple of `tile_size` seeds to another.

    Warns:
        RuntimeWarning: if results have NaN, with how many lanes; if a file of the store was damaged; if memory ran out
            and fewer tiles are run at a time.

    Args:
        build: (**static) -> Run. Called once for every combination of static values, before anything is compiled. Or,
            without static_axes, a Run.
        axes: values of the run's parameters, by name; their product is the grid.
        static_axes: values of `build`'s arguments, which fix shapes.
        num_seeds: seeds for every grid point, >= 1. Seed i has the key fold_in(key, i) at every grid point.
        key: a typed PRNG key, as from `jax.random.key`, of a Threefry implementation (JAX's default).
        tile_size: lanes in a compiled unit, >= 1; memory grows with it. None is that of the store, if there is one;
            else 256 on a CPU, and on a GPU all lanes of a program, rounded up to a multiple of 1,024, at most 65,536
            and what should fit in 4 GiB. With an executor the first worker's kind of device decides. Tiles run side by
            side as memory allows; where it runs out, half as many do.
        chunk_size: lanes that are handed over and written together, at most, >= 1. None is as many as take about 20
            seconds and a part of the free memory. A store keeps that of its first call.
        devices: of one kind, where tiles run, each on one of them; None is all local devices of JAX's default kind.
        store: path of a Zarr store, on a file system that has locks; nothing, or the store of the same sweep.
        overwrite: replace what the store holds of another sweep, or of this one: to go on, call without it. The old
            store is removed once the new one is made. Results that were returned from the old one and are not yet read
            cannot be read then: an OSError says so.
        grow: add to the store what it lacks of this sweep, if its own is a part of this. Without it, and with a store
            that has values or seeds which this sweep has not, the store is refused. The chunks stay as large as they
            are. Without a store at the path, one is made.
        executor: any `concurrent.futures` executor, whose workers compute the chunks, each on its own devices; for a
            Dask cluster `client.get_executor()`. Workers must be new processes, as forks of one that has used JAX hang:
            `ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"))`. After each minute in which it
            finishes nothing, a line of the logger "jaxdp" (on stderr, if logging is not set up) says what is awaited.
        timeout: seconds in which the executor must finish some chunk, compiling included, > 0; None is any time.
        process_index: which of several processes this is, in [0, num_processes), each with a part of the same store;
            "auto" is what SLURM (of an array, or srun) or a Kubernetes indexed job says.
        num_processes: how many there are; "auto" is what SLURM says.
        progress: True for a bar in a notebook, and on stderr if it is a terminal; or a function, called with a
            `Progress` as lanes are done.

    Returns:
        A dataset with dimensions (*static_axes, *axes, seed, *the run's own) and coordinates as given; values that are
        neither all numbers nor all text (links, None) are labelled by their name or their text. Its attribute
        `provenance` is JSON text: versions, devices, processor, XLA flags, key, tile size, and every grid point's
        parameters and guarantees. With a store, values are read when they are used; while other processes' shares are
        missing, `computed` is among the variables.

    Raises:
        ValueError: if an axis is empty, has a repeated value, is named twice, or has the name of a result of
            `jaxdp.stats`, such as low or mean; if a count is < 1; if devices are none or of several kinds; if key is
            not a typed Threefry key; if a value is out of range for the run; if the outputs' dimensions do not match
            their labels, or differ between static values; if the store is of another sweep, with what differs, or
            cannot grow to this one; all before anything is compiled.
        BlockingIOError: if another process writes this share of the store, or any, and it would have to grow.
        OSError: if results cannot be written. What was written stays, and the same call goes on.
        MemoryError: if a single tile, or the results, do not fit in free memory, before they are computed.
        RuntimeError: if the executor gives up. What was written stays, and the same call goes on.
        TimeoutError: if the executor finishes nothing within `timeout`. What was written stays, as above.
        KeyboardInterrupt: if the user interrupts it, with what was kept and how to go on.

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
            "sweep must be called outside of jax.jit, jax.vmap and the like, as it compiles by itself, got traced "
            "arrays; inside, map the run: jax.vmap(run, in_axes=(0, None))(keys, params)"
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
        raise ValueError(f"overwrite must be False where several processes write, got {count} of them")
    if executor is not None and devices is not None:
        raise ValueError("devices must be None with an executor, whose workers have their own, got both")
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
            plan.check_fits(in_memory=path is None)
            results = plan.dataset(allocate=path is None)
            if path is not None:
                check_storable(results)
            source = LocalSource(plan, report) if executor is None else RemoteSource(plan, executor, timeout, report)
            report.set_tile(plan.tiles())
            results.attrs["provenance"] = plan.provenance(source.place)

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
                        )
                        if count == 1:
                            opened.clean()
                        again = "the same call without overwrite" if overwrite else "the same call"  # it begins anew
                        _to_store(source, opened, share(opened.chunks, index, count), nans, report, again)
                stored = open_dataset(path)
                if bool(stored[COMPUTED].all()):
                    stored = stored.drop_vars(COMPUTED)
                attributes = results.attrs
                results = stored.assign_coords(results.coords)
                results.attrs = attributes
    except KeyboardInterrupt as stop:
        if type(stop) is not KeyboardInterrupt:
            raise
        raise KeyboardInterrupt(_interruption(stop, path, report.now())) from None  # no traceback of what is inside
    attach(results, Recipe(plan.build, {**plan.static_axes, **plan.axes}))
    nans.report()
    return results


def _in_memory(
    source: Source, results: "xr.Dataset", wanted: Sequence[Chunk], nans: NanCount, report: Reporter
) -> None:
    report.start(sum(chunk.num_lanes for chunk in wanted), 0, source.place.devices)
    for chunk, arrays in source.chunks(wanted):
        for name, values in arrays.items():
            results[name].values[chunk.region] = values.reshape(*chunk.sizes, *values.shape[1:])
        nans.add(arrays)


def _from_read_only(
    path: Path, source: Source, index: int, count: int, nans: NanCount, report: Reporter, *, grow: bool
) -> None:
    """Checks that a store, beside which nothing can be written, has all that is wanted.

    Raises:
        OSError: if it has not.
    """
    store = Store(path)
    more = differences_of_stores(source.identity, store.identity)
    if grow and more and not shortfalls(source.identity, store.identity):
        raise UnwritableError(f"store must be where files can be written to grow, got {path}, where {more}")
    check_same_sweep(store, source.identity)
    wanted = share(store.chunks, index, count)
    missing, damaged = store.examine(wanted, nans)
    if missing:
        lanes = sum(chunk.num_lanes for chunk in missing)
        text = "; ".join(damaged.values())
        raise UnwritableError(
            f"store must be where files can be written to go on, got {path}, where {lanes} lanes are missing"
            f"{f' ({text})' if text else ''}"
        )
    total = sum(chunk.num_lanes for chunk in wanted)
    report.start(total, total, source.place.devices)


def _interruption(stop: KeyboardInterrupt, path: Path | None, now: Progress) -> str:
    """Returns what is left of a sweep that was interrupted, and how to go on."""
    notes = getattr(stop, "__notes__", [])
    if notes:
        return f"interrupted: {notes[0]}"
    if path is not None:
        return f"interrupted; the same call goes on with {path}"
    return f"interrupted after {now.lanes} of {now.num_lanes} lanes, which are lost; a sweep with store= can go on"


def _to_store(
    source: Source, store: Store, wanted: Sequence[Chunk], nans: NanCount, report: Reporter, again: str
) -> None:
    """Computes what a store lacks. A thread writes one chunk while the next is computed."""
    missing = store.survey(wanted, nans)
    total, left = (sum(chunk.num_lanes for chunk in part) for part in (wanted, missing))
    report.start(total, total - left, source.place.devices)
    writing = None
    try:
        with ThreadPoolExecutor(1) as pool:
            with contextlib.closing(source.chunks(missing)) as found:
                for chunk, arrays in found:
                    if writing is not None:
                        writing.result()
                    nans.add(arrays)
                    writing = pool.submit(store.commit, chunk, arrays)
            if writing is not None:
                writing.result()
    except (Exception, KeyboardInterrupt) as error:
        with contextlib.suppress(Exception):  # a store that is gone or broken must not hide what happened
            count = store.lanes_computed()
            error.add_note(f"{count} lanes of the sweep are safe in {store.path}; {again} goes on from there")
        raise


def _local(store: str | Path) -> Path:
    path = check_local_path("store", store).resolve()  # one store has one path, wherever the working directory is then
    if not path.name:
        raise ValueError(f"store must be a folder of its own, got {store}")
    if path.exists() and not path.is_dir():
        raise ValueError(f"store must be a folder, or a path where nothing is yet, got {path}")
    return path
