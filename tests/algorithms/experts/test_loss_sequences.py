"""A user's losses stay one array of the type they have, are checked first, and come from files."""

import math
import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import sequences
from jaxdp.experts import exponential_weights, loss_sequence, read_losses
from jaxdp.numerics import rounding
from jaxdp.simulation.run.stacking import stack_params

KEY = partial(jax.random.key, 54)
FLOAT = jax.dtypes.canonicalize_dtype(float)
BYTES = np.random.default_rng(3).integers(0, 256, (40, 3)).astype(np.uint8)


def shown(environment):
    """Returns all losses, [horizon, num_experts], in order."""
    params = environment.params()
    keys = jax.random.split(KEY(), environment.horizon)
    actions = jnp.zeros(environment.horizon, jnp.int32)

    def play(params):
        return environment.block(keys, params, environment.init(KEY(), params), None, actions)[1]

    return jax.jit(play)(params)


@pytest.mark.parametrize(
    ("losses", "scale", "kept"),
    [
        (BYTES, 255, np.uint8),
        (BYTES % 2, 1, np.uint8),
        (BYTES > 100, 1, np.uint8),
        ((BYTES % 2).astype(np.int64), 1, np.uint8),
        ((BYTES % 2).tolist(), 1, np.uint8),
        (BYTES.astype(np.int32) * 100, 25500, FLOAT),
        ((BYTES / 255).astype(np.float16), 1, np.float16),
        ((BYTES / 255).astype(np.float32), 1, np.float32),
        (BYTES / 255, 1, FLOAT),
        (BYTES / 1.0, 255, FLOAT),
    ],
)
def test_types_are_kept_and_widened(losses, scale, kept):
    environment = loss_sequence(losses, scale=scale)
    assert environment.params().losses.dtype == kept
    found = shown(environment)
    assert found.dtype == FLOAT
    tolerance = 1e-12 if np.float64 == FLOAT else 1e-6
    np.testing.assert_allclose(found, np.asarray(losses, np.float64) / scale, atol=tolerance)


def test_a_byte_of_one_is_not_a_small_loss_unless_it_is_said():
    assert shown(loss_sequence(np.array([[0, 1]], np.uint8))).tolist() == [[0, 1]]
    with pytest.raises(ValueError, match=r"losses must be in \[0, 1\], got \d+ of \d+ that are not$"):
        loss_sequence(np.array([[0, 255]], np.uint8))


@pytest.mark.parametrize("scale", [1, 41, 255])
def test_the_largest_entry_is_a_loss_of_one(scale):
    losses = np.array([[0, scale]], np.uint8)
    assert shown(loss_sequence(losses, scale=scale)).tolist() == [[0, 1]]


def test_one_array_for_all_lanes():
    """Checks that losses are not stacked over grid points, nor widened or copied where lanes are mapped over."""
    losses = np.random.default_rng(4).integers(0, 2, (20_000, 10)).astype(np.uint8)
    environment = loss_sequence(losses)
    learner = exponential_weights(num_experts=10, horizon=20_000)
    run = jaxdp.simulator(learner, environment, 20_000)
    points = [run.params(epsilon=epsilon) for epsilon in (0.5, 1.0)]
    varying, fixed = stack_params(points)
    assert varying["environment"].losses is None
    assert fixed["environment"].losses is points[0]["environment"].losses
    axes = jax.tree.map(lambda leaf: None if np.ndim(leaf) else 0, points[0])
    lanes = jax.vmap(run, in_axes=(0, axes))
    several = jax.tree.map(lambda *leaves: leaves[0] if np.ndim(leaves[0]) else np.stack(leaves), *(points * 32))
    compiled = jax.jit(lanes).lower(jax.random.split(KEY(), 64), several).compile()
    memory = compiled.memory_analysis()
    assert memory is not None
    assert memory.temp_size_in_bytes < losses.nbytes  # 10 MB widened for each lane


def test_read_only_losses_are_not_copied():
    mine = BYTES.copy()
    assert loss_sequence(mine, scale=255).params().losses is not mine
    mine.flags.writeable = False
    assert np.shares_memory(loss_sequence(mine, scale=255).params().losses, mine)


def test_what_does_not_fit_is_refused_with_its_size(monkeypatch):
    monkeypatch.setattr(sequences, "free_bytes", lambda device: 100)
    with pytest.raises(ValueError, match=r"9.31e-08 GiB, got 40 by 3 uint8 losses, which take 1.12e"):
        loss_sequence(BYTES, scale=255)
    loss_sequence(BYTES[:33], scale=255)


def test_rounds_by_blocks_bit_for_bit():
    environment = loss_sequence(BYTES, scale=255, num_switches=2)
    params, actions = environment.params(), jnp.arange(12, dtype=jnp.int32) % 3
    start = environment.init(KEY(), params)
    assert environment.block
    worlds, losses, outcome = jax.jit(environment.block)(jax.random.split(KEY(), 12), params, start, None, actions)
    world, feedback = start, jax.jit(environment.feedback)
    for index, action in enumerate(actions):
        world, *one = feedback(KEY(), params, world, action)
        here = jax.tree.map(lambda leaf, i=index: leaf[i], (worlds, losses, outcome))
        for left, right in zip(jax.tree.leaves((world, *one)), jax.tree.leaves(here), strict=True):
            np.testing.assert_array_equal(left, right)


@pytest.mark.optimised
def test_runs_by_blocks_bit_for_bit(monkeypatch):
    """Sums of losses over a scale, which the optimised programs of both engines must round alike."""
    learner = jaxdp.experts.limited_updates(num_experts=3)

    def found():
        world = loss_sequence(BYTES, scale=255)  # again: another program
        runs = [jaxdp.simulator(learner, world, len(BYTES), engine=engine) for engine in ("rounds", "blocks")]
        return [jax.vmap(jax.jit(run), (0, None))(jax.random.split(KEY(), 5), run.params(epsilon=1.0)) for run in runs]

    def check():
        by_rounds, by_blocks = found()
        for name, values in by_rounds.items():
            np.testing.assert_array_equal(by_blocks[name], values)

    check()
    monkeypatch.setattr(rounding, "round_product", lambda product: product)
    with pytest.raises(AssertionError):
        check()


@pytest.mark.parametrize("scale", [0, -1, math.inf, math.nan])
def test_bad_scales(scale):
    with pytest.raises(ValueError, match=f"scale must be .*, got {scale}"):
        loss_sequence(BYTES, scale=scale)


@pytest.mark.parametrize("exponent", [-126, -104, 127, 1000, -1000])
def test_scales_near_the_range_of_floats_are_refused_or_divide_exactly(exponent):
    losses, scale = np.array([[0, 0.5], [1, 0.25]]) * 2.0**exponent, 2.0**exponent
    if np.float32 == FLOAT or exponent == -1000:
        with pytest.raises(ValueError, match=r"scale must be in .* for float"):
            loss_sequence(losses, scale=scale)
    else:
        assert shown(loss_sequence(losses, scale=scale)).tolist() == [[0, 0.5], [1, 0.25]]


@pytest.mark.parametrize("exponent", [-103, 126])
def test_the_extreme_scales_divide_exactly(exponent):
    losses = np.array([[0, 0.5], [1, 0.25]]) * 2.0**exponent
    assert shown(loss_sequence(losses, scale=2.0**exponent)).tolist() == [[0, 0.5], [1, 0.25]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.filterwarnings("error")
def test_infinity_is_refused_at_any_scale(dtype):
    losses = np.array([[math.inf, 0], [1, 2]], dtype)
    with pytest.raises(ValueError, match="losses must be finite, got 1 of 4 that are not"):
        loss_sequence(losses, scale=1e5)


@pytest.mark.parametrize("row", [0, 30])
def test_bad_entries_are_found_in_every_part(monkeypatch, row):
    monkeypatch.setattr(sequences, "AT_A_TIME", 12)
    for bad, rule in ((math.nan, "finite"), (1.5, r"in \[0, 1\]"), (-0.5, r"in \[0, 1\]")):
        losses = np.zeros((40, 3))
        losses[row, 1] = bad
        with pytest.raises(ValueError, match=f"losses must be {rule}, got 1 of 120 that are not$"):
            loss_sequence(losses)


@pytest.mark.parametrize("losses", [np.ma.masked_array(BYTES, BYTES > 3), [["a", "b"]], np.zeros((3, 2), complex)])
def test_what_is_no_number_is_refused(losses):
    with pytest.raises(ValueError, match="losses must"):
        loss_sequence(losses, scale=255)


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.float64, bool])
def test_npy(tmp_path, dtype):
    np.save(tmp_path / "losses.npy", (BYTES % 2).astype(dtype))
    found = read_losses(tmp_path / "losses.npy")
    assert found.dtype == dtype
    assert (np.asarray(found) == BYTES % 2).all()
    assert loss_sequence(found).horizon == 40


@pytest.mark.parametrize("names", ["", "first,second,third\n", "\ufeffa,b,c\r\n"])
def test_csv(tmp_path, names):
    path = tmp_path / "losses.csv"
    path.write_text(names + "0.25,0.5,1\n\n0,1e-1,0\n", encoding="utf-8")
    found = read_losses(path)
    assert found.dtype == FLOAT
    np.testing.assert_allclose(found, [[0.25, 0.5, 1], [0, 0.1, 0]], rtol=1e-6)
    path.write_text(names + "0,255,1\n3,4,5\n", encoding="utf-8")
    found = read_losses(str(path))
    assert found.dtype == np.uint8
    assert found.tolist() == [[0, 255, 1], [3, 4, 5]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n0,1\n0,1,1\n", r"losses.csv, line 3: 3 fields where there were 2 before"),
        ("0,1\n\n0,x\n", r"losses.csv, line 3: a loss must be a finite number, got 'x'"),
        ("0,1\n0,nan\n", r"losses.csv, line 2: a loss must be a finite number, got 'nan'"),
        ("0,1\n0,\n", r"losses.csv, line 2: a loss must be a finite number, got ''"),
        (
            "0,1\n0.2,0.7\n0.9,0.1\n",
            r"losses.csv, line 1: '0,1' may name columns or be a round: use names, or decimals",
        ),
        ("2023,2024\n0.2,0.7\n", r"losses.csv, line 1: '2023,2024' may name columns"),
        ("2019,2024\n0,1\n1,1\n", r"losses.csv, line 1: '2019,2024' may name columns"),
        ("0,1,2\n0,1,1\n1,1,0\n", r"losses.csv, line 1: '0,1,2' may name columns"),
        ('"0","1"\n0.2,0.7\n', r"""losses.csv, line 1: '"0","1"' may name columns"""),
        (",a,b\n0,0.2,0.7\n1,0.9,0.1\n", r"losses.csv, line 1: the first column looks like an index"),
        ("round,a,b\n1,0.2,0.7\n2,0.9,0.1\n3,0,1\n", r"losses.csv, line 1: the first column looks like an index"),
        ("5,0.2,0.7\n6,0.9,0.1\n7,0,1\n", r"losses.csv, line 1: the first column looks like an index"),
        ("0,1,0\n1,0,1\n2,1,1\n", r"losses.csv, line 1: the first column looks like an index"),
        ("index,a,b\n0,0,1\n1,1,0\n", r"losses.csv, line 1: the first column looks like an index"),
        ("Unnamed: 0,a,b\n5,0.2,0.7\n9,0.9,0.1\n", r"losses.csv, line 1: the first column looks like an index"),
        (",0,1\n0,0.2,0.7\n1,0.9,0.1\n", r"losses.csv, line 1: a loss must be a finite number, got ''"),
        ('"' + "0" * 200_000, r"losses.csv, data: field larger than field limit"),
        ('"0.1","0.2"\n"x","0.7"\n', r"losses.csv, line 2: a loss must be a finite number, got 'x'"),
        ("0\n1\n", r"losses.csv, data: losses must be at least one round of two experts, got shape \(2, 1\)"),
    ],
)
def test_bad_csv(tmp_path, text, message):
    (tmp_path / "losses.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_losses(tmp_path / "losses.csv")


@pytest.mark.parametrize(
    ("text", "losses"),
    [
        ('"0.2","0.7"\n"0.9","0.1"\n', [[0.2, 0.7], [0.9, 0.1]]),
        ('"a","b"\n"0.9",0.1\n', [[0.9, 0.1]]),
        ("a,b\r0.2,0.7\r0.9,0.1", [[0.2, 0.7], [0.9, 0.1]]),
        ("0.0,1.0\n0.2,0.7\n", [[0, 1], [0.2, 0.7]]),
        ("index,bond\n0,0.7\n0.5,0.1\n", [[0, 0.7], [0.5, 0.1]]),  # a fund's name
        ("0,9\n1,9\n2,8\n3,7\n", [[0, 9], [1, 9], [2, 8], [3, 7]]),
    ],
)
@pytest.mark.filterwarnings("error")
def test_csv_of_other_writers(tmp_path, text, losses):
    (tmp_path / "losses.csv").write_bytes(text.encode())
    np.testing.assert_allclose(read_losses(tmp_path / "losses.csv"), losses, rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "losses"),
    [("0,1\n1,0\n0,1\n", [[0, 1], [1, 0], [0, 1]]), ("0,1,2\n255,4,9\n", [[0, 1, 2], [255, 4, 9]])],
)
def test_a_first_line_that_may_number_the_columns_is_warned_of(tmp_path, text, losses):
    (tmp_path / "losses.csv").write_text(text)
    with pytest.warns(UserWarning, match=r"losses.csv, line 1: '0,1.*' was read as a round") as warned:
        np.testing.assert_array_equal(read_losses(tmp_path / "losses.csv"), losses)
    assert warned[0].filename == __file__


@pytest.mark.parametrize(
    ("text", "line"),
    [("0,0.2,0.7\n1,0.9,0.1\n", 1), ("1,0.2,0.7\n2,0.9,0.1\n", 1), ("0,0.2\n", 1), ("round,a\n0,0.2\n1,0.9\n", 2)],
)
def test_a_first_column_that_may_number_two_rows_is_warned_of(tmp_path, text, line):
    (tmp_path / "losses.csv").write_text(text)
    with pytest.warns(UserWarning, match=rf"losses.csv, line {line}: the first column was read as an") as warned:
        assert read_losses(tmp_path / "losses.csv").shape[0] <= 2
    assert warned[0].filename == __file__
    (tmp_path / "losses.csv").write_text(text.replace("0,", "0.0,").replace("1,", "1.0,"))  # as the warning advises
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_losses(tmp_path / "losses.csv")


@pytest.mark.parametrize("text", ["", "a,b\n", "\n\n"])
@pytest.mark.filterwarnings("error")
def test_empty_csv(tmp_path, text):
    (tmp_path / "losses.csv").write_text(text)
    with pytest.raises(ValueError, match=r"losses.csv, data: losses must be at least one round of two experts"):
        read_losses(tmp_path / "losses.csv")


def test_bad_npy(tmp_path):
    path = tmp_path / "losses.npy"
    for data in (b"", b"not numpy", b"\x93NUMPY\x01\x00", b"PK\x03\x04", b"PK\x03\x04" + bytes(100)):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r"losses.npy, data: not a readable npy file"):
            read_losses(path)
    np.save(path, np.array([[0, 1], [math.nan, 1]]))
    with pytest.raises(ValueError, match=r"losses.npy, row 1: losses must be finite, got nan"):
        read_losses(path)
    with path.open("wb") as file:
        np.savez(file, losses=np.eye(2))
    with pytest.raises(ValueError, match=r"losses.npy, data: not an npy file but an npz archive"):
        read_losses(path)
    np.save(path, np.array([["a", "b"]]))
    with pytest.raises(ValueError, match=r"losses.npy, data: losses must be numbers, got dtype"):
        read_losses(path)


def test_other_endings(tmp_path):
    with pytest.raises(ValueError, match=r"path must end in one of .csv, .npy, .parquet, got losses.txt"):
        read_losses("losses.txt")
    with pytest.raises(FileNotFoundError):
        read_losses(tmp_path / "losses.csv")


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "losses.parquet"

    def written(*columns):
        pq.write_table(pa.table(list(columns), names=["a", "b"]), path)
        return read_losses(path)

    for dtype in (np.uint8, np.float16, np.float32, np.float64):
        found = written(*(pa.array(column.astype(dtype)) for column in (BYTES % 2).T[:2]))
        assert found.dtype == dtype
        assert (found == (BYTES % 2)[:, :2]).all()
    assert written(pa.array([True, False]), pa.array([False, False])).tolist() == [[True, False], [False, False]]
    with pytest.raises(ValueError, match=r"losses.parquet, row 1: no value in column 'b'"):
        written(pa.array([0.5, 0.5]), pa.array([0.5, None]))
    with pytest.raises(ValueError, match=r"losses.parquet, schema: column 'b' must hold numbers or truth values"):
        written(pa.array([0.5, 0.5]), pa.array(["x", "y"]))
    with pytest.raises(ValueError, match=r"losses.parquet, row 1: losses must be finite"):
        written(pa.array([0.5, 0.5]), pa.array([0.5, math.inf]))
    path.write_bytes(b"PAR1 not parquet")
    with pytest.raises(ValueError, match=r"losses.parquet, data: not a readable Parquet file"):
        read_losses(path)


@pytest.mark.parametrize("index", [[5, 6], [0.0, 0.5]])
@pytest.mark.parametrize("name", [None, "day"])
def test_an_index_in_parquet_is_no_expert(tmp_path, index, name):
    pandas, path = pytest.importorskip("pandas"), tmp_path / "losses.parquet"
    pytest.importorskip("pyarrow")
    rows = pandas.DataFrame({"a": [0.2, 0.7], "b": [0.9, 0.1]})
    rows.to_parquet(path)
    np.testing.assert_array_equal(read_losses(path), rows.to_numpy())
    rows.index = pandas.Index(index, name=name)
    rows.to_parquet(path)
    with pytest.raises(ValueError, match=r"losses\.parquet, schema: column '(day|__index_level_0__)' is an index"):
        read_losses(path)
