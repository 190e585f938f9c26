"""The study of preference pairs: its split, its scores, its files and its words."""

import json
from typing import Any

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

from jaxdp.__main__ import app
from jaxdp.mechanisms.numerical import vector_delta
from jaxdp.studies import pair_data, pair_heads, pair_release, preference_pairs

COUNT, DIM = 400, 4


@pytest.fixture
def table(tmp_path):
    random = np.random.default_rng(0)
    responses = random.normal(size=(2, COUNT, DIM)).astype(np.float16)
    wins = random.random(COUNT) < 1 / (1 + np.exp(-2 * (responses[0] - responses[1])[:, 0].astype(float)))
    for name, want in (("chosen", True), ("rejected", False)):
        np.save(tmp_path / f"{name}.npy", np.where((wins == want)[:, None], *responses))
    rows = [{"who": f"p{row % 40}", "prompt": row % 50, "tie": row % 20 == 0} for row in range(COUNT)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def arguments(folder, *more):
    files = [str(folder / name) for name in ("pairs.jsonl", "chosen.npy", "rejected.npy")]
    options = ["--table", "--chosen", "--rejected"]
    return ["run", "preference-pairs", *(text for pair in zip(options, files, strict=True) for text in pair), *more]


SMALL = ("--seeds", "2", "--epsilon", "2", "--person", "who", "--tie", "tie", "--delta", "1e-4")


def test_the_command_writes_a_head_and_the_lines_that_use_it(table):
    out = table / "out"
    run = CliRunner().invoke(app, arguments(table, *SMALL, "--out", str(out), "--feature-norm", "4"))
    assert run.exit_code == 0, run.output
    text = run.stdout
    assert text.startswith("not private, only for people who may see the labels.")
    for name in (pair_heads.CLEAR, pair_heads.WHITENED_PERSON, pair_heads.FULL, "predicted margin error, one person"):
        assert name in text
    assert "-DP" in text.split("its claim, in a simulation: ")[1].split("\n")[0]
    with np.load(out / "head.npz") as head:
        assert set(head) == {"theta", "scaling", "mechanism", "claim", "unit", "epsilon", "delta", "jaxdp", "jax"}
        assert (str(head["unit"]), float(head["epsilon"]), head["theta"].shape) == ("one person", 1.0, (DIM,))
    code = text[text.index("import numpy as np") :]
    embeddings = np.eye(DIM)
    scope = {"first": embeddings[:1] * 9, "second": embeddings[1:2]}
    exec(code, scope)
    np.testing.assert_allclose(scope["chances"], 1 / (1 + np.exp(-(9 * scope["theta"][0] - scope["theta"][1]))))
    assert (out / "figure.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--person", "nobody"), "no column 'nobody'"),
        ((*SMALL, "--head", "laplace"), "head must be one of auto, randomized_response"),
        ((*SMALL, "--head-epsilon", "0"), "head_epsilon must be > 0"),
        ((*SMALL, "--margin-stddev", "0"), "margin_stddev must be > 0"),
        ((*SMALL, "--public-score", "4"), "public_score must be one of several entries of embeddings, from 0 to 3"),
        ((*SMALL, "--public-score", "0", "--head", "k_norm"), "public_score must be left out with feature_norm"),
    ],
)
def test_wrong_options_are_refused(table, more, message):
    run = CliRunner().invoke(app, arguments(table, *more, "--out", str(table / "out")))
    assert run.exit_code != 0
    assert message in run.output + str(run.exception)
    assert not (table / "out").exists()


def test_it_has_no_store(table):
    with pytest.raises(ValueError, match="store must be left out"):
        preference_pairs.preference_pairs(key=None, store="x")  # pyright: ignore[reportArgumentType]


def test_ids_of_prompts_are_those_of_the_rows_that_are_left(tmp_path):
    rows = [{"chosen": [row], "rejected": [0], "tie": row == 2, "prompt": f"p{row}"} for row in range(1, 5)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    names: dict[str, Any] = {"chosen": "chosen", "rejected": "rejected", "tie": "tie"}
    data = pair_data.load(str(tmp_path / "a.jsonl"), "prompt", **names, ties="drop", ties_public=True)
    assert data.prompts is not None
    assert sorted(data.prompts) == ["p1", "p3", "p4"]
    assert [f"p{row + 1}" for row in data.pairs.rows] == data.prompts.tolist()


def test_the_split_reads_public_ids_alone(table):
    columns: dict[str, Any] = {name: str(table / f"{name}.npy") for name in ("chosen", "rejected")}
    swapped: dict[str, Any] = {"chosen": columns["rejected"], "rejected": columns["chosen"]}
    loaded = [
        pair_data.load(str(table / "pairs.jsonl"), "prompt", person="who", **names) for names in (columns, swapped)
    ]
    sides = [pair_data.split(data) for data in loaded]
    for one, other in zip((sides[0].train, sides[0].held_out), (sides[1].train, sides[1].held_out), strict=True):
        np.testing.assert_array_equal(one.features, other.features)
        np.testing.assert_array_equal(one.labels, 1 - other.labels)
    assert not set(sides[0].train.persons) & set(sides[0].held_out.persons)
    assert "are in neither part" in sides[0].text
    data = loaded[0]._replace(prompts=None)
    assert len(pair_data.split(data).train.labels) > len(sides[0].train.labels)
    single = data._replace(pairs=data.pairs._replace(persons=np.zeros(COUNT, int)))
    with pytest.raises(ValueError, match="person and prompt must have enough ids"):
        pair_data.split(single)


def test_rows_of_the_same_responses_stay_together_without_ids():
    pairs = pair_data.demo().pairs
    twice = pairs._replace(features=np.repeat(pairs.features, 2, axis=0), labels=np.repeat(pairs.labels, 2))
    data = pair_data.split(pair_data.Data(twice._replace(persons=None), None, ""))
    rows = [{row.tobytes() for row in part.features} for part in (data.train, data.held_out)]
    assert not rows[0] & rows[1]
    assert "nothing is claimed for a person" in data.text


def test_scores_are_those_of_the_formulas():
    features, labels = np.asarray([[2.0], [-1.0], [0.5], [0.0]]), np.asarray([1.0, 1.0, 0.5, 0.0])
    scores = pair_heads.score(np.asarray([1.0]), pair_data.Part(features, labels, np.arange(4)))
    assert scores.right.tolist() == [1, 0, 0.5, 0.5]
    chances = 1 / (1 + np.exp(-features[:, 0]))
    np.testing.assert_allclose(scores.losses, -labels * np.log(chances) - (1 - labels) * np.log(1 - chances))
    assert scores.calibration_error == pytest.approx(np.abs(labels - chances).mean())


def test_a_head_that_is_not_a_number_has_no_score():
    part = pair_data.Part(np.ones((3, 1)), np.asarray([1.0, 0.0, 0.5]), np.arange(3))
    assert np.isnan(pair_heads.score(np.asarray([np.nan]), part).accuracy)


def test_the_claim_of_a_released_head_counts_rounding_of_all_features():
    random = np.random.default_rng(2)
    part = pair_data.Part(
        random.normal(size=(300, 128)).astype(np.float32), (random.random(300) < 0.5).astype(np.float32), np.arange(300)
    )
    released = pair_heads.release(jax.random.key(0), part, "gaussian", 1.0, 1e-4, 1.0, per_person=False)
    assert released.claim.argument.endswith("rounding is counted for at most 128 features")
    assert released.claim.numerical_delta == vector_delta(1.0, 1e-4, numbers=128)


def test_a_released_local_head_lies_within_the_radius_of_the_compared_one():
    """Checks labels that a margin separates, where a head without a radius has no minimum."""
    features = np.asarray([[1.0], [-1.0]] * 20, np.float32)
    part = pair_data.Part(features, (features[:, 0] > 0).astype(np.float32), np.arange(40))
    released = pair_heads.release(jax.random.key(0), part, "randomized_response", 20.0, 1e-4, 1.0, per_person=False)
    assert released.converged
    assert abs(float(released.theta[0])) == pytest.approx(2.0, rel=1e-5)


def test_heads_correct_a_public_score(table):
    """Hides the entry on which labels depend from the heads; planted: scores without it."""
    chosen, rejected = (str(table / f"{name}.npy") for name in ("chosen", "rejected"))
    loaded = pair_data.load(str(table / "pairs.jsonl"), public_score=0, chosen=chosen, rejected=rejected, person="who")
    data = pair_data.split(loaded)
    fits = pair_heads.heads(data.train, delta=1e-4, margin_stddev=1.0, feature_norm=None, has_persons=True)
    for name in (pair_heads.CLEAR, pair_heads.LOCAL, pair_heads.WHITENED_PERSON):
        theta = np.asarray(fits[name].fit(jax.random.key(0), 1e3).theta, float)
        margins = data.train.features @ theta + data.train.offset
        slope = data.train.features.T @ (data.train.labels - 1 / (1 + np.exp(-margins)))
        without = data.train.features.T @ (data.train.labels - 1 / (1 + np.exp(-data.train.features @ theta)))
        assert np.abs(slope).max() < 3 < np.abs(without).max()
    theta = np.asarray(fits[pair_heads.CLEAR].fit(jax.random.key(0), 1.0).theta)
    assert pair_heads.score(theta, data.held_out).accuracy > 0.65
    assert pair_heads.score(theta, data.held_out._replace(offset=None)).accuracy < 0.6


@pytest.mark.parametrize("out", ["--out", "--release"])
def test_a_written_head_has_weight_one_for_the_public_score(table, out):
    path, small = table / "made", ("--seeds", "1", "--epsilon", "2")
    options = (*RELEASE, *small, out, str(path)) if out == "--out" else (*RELEASE, out, f"{path}.npz")
    run = CliRunner().invoke(app, arguments(table, *options, "--public-score", "1"))
    assert run.exit_code == 0, run.output
    assert ("The public score alone has accuracy 0." in run.stdout) == (out == "--out")
    with np.load(path / "head.npz" if out == "--out" else f"{path}.npz") as head:
        assert head["theta"].shape == (DIM,)
        assert (head["theta"] == 1).tolist() == [False, True, False, False]


RELEASE = ("--person", "who", "--tie", "tie", "--delta", "1e-4")


@pytest.mark.parametrize("head", ["gaussian", "randomized_response"])
def test_a_release_prints_the_head_and_claims_alone(table, head):
    path, options = table / "one.npz", ("--head", head, "--head-epsilon", "8", "--evaluate-epsilon", "2")
    run = CliRunner().invoke(app, arguments(table, *RELEASE, "--release", str(path), *options))
    assert run.exit_code == 0, run.output
    trust = "(8, 0.0001)-DP, central" if head == "gaussian" else "8-DP, local"
    assert f"claim:  {trust}, one person" in run.stdout
    assert "2-DP, central, one person" in run.stdout.split("held-out accuracy: ")[1]
    assert "predicted" not in run.stdout
    assert "simulation" not in run.stdout
    with np.load(path) as released:
        assert released["theta"].shape == (DIM,)
        assert str(released["claim"]) == f"{trust}, one person"
    again = CliRunner().invoke(app, arguments(table, *RELEASE, "--release", str(path)))
    assert "release must be a new .npz file" in again.output + str(again.exception)


def test_the_released_accuracy_has_the_noise_of_its_claim(monkeypatch):
    """Checks the noise's scale against the change by one person; planted: noise for one label."""
    random = np.random.default_rng(3)
    part = pair_data.Part(random.normal(size=(90, 1)), np.ones(90), np.repeat(np.arange(9), 10))
    budgets = []
    monkeypatch.setattr(pair_release, "secret_discrete_laplace", lambda size, budget: budgets.append(budget) or [0])
    theta = np.asarray([1.0])

    def shares(labels):
        text = pair_release.accuracy(theta, part._replace(labels=labels), 2.0, per_person=True)
        assert "over 9 other persons; claim: 2-DP, central, one person" in text
        return float(text.split("accuracy: ")[1].split()[0])

    sides = [np.where(part.persons == 4, (part.features[:, 0] > 0) == won, 1.0) for won in (True, False)]
    change = abs(shares(sides[0]) - shares(sides[1]))
    assert change == pytest.approx(1 / 9, abs=2e-3)
    scale = 1 / float(budgets[0]) / pair_release.STEPS_PER_ANSWER / 9
    assert change <= 2 * scale + 2e-3
    pair_release.accuracy(theta, part, 2.0, per_person=False)
    assert change > 2 / float(budgets[-1]) / pair_release.STEPS_PER_ANSWER / 90


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--seeds", "3"), "seeds must be left out with --release, got 3"),
        (("--epsilon", "1"), "epsilon must be left out with --release"),
        (("--seed", "7"), "seed must be left out with --release, got 7"),
        (("--feature-norm", "2"), "feature_norm must be left out with --release"),
        (("--head", "k_norm"), "head must be one of randomized_response, gaussian"),
        (("--head-epsilon", "inf"), "head_epsilon must be finite with --release"),
        (("--evaluate-epsilon", "inf"), "evaluate_epsilon must be finite with --release"),
        (("--evaluate-epsilon", "-1"), "evaluate_epsilon must be > 0"),
        (("--quick",), "quick must be left out if only text is printed"),
    ],
)
def test_wrong_options_of_a_release_are_refused(table, more, message):
    run = CliRunner().invoke(app, arguments(table, *RELEASE, "--release", str(table / "one.npz"), *more))
    assert run.exit_code != 0
    assert message in run.output + str(run.exception)
    assert not (table / "one.npz").exists()


def test_a_head_that_is_not_a_number_is_not_written(table, monkeypatch):
    fit = pair_release.release_head

    def broken(*args, **values):
        released = fit(*args, **values)
        return released._replace(theta=released.theta * np.nan)

    monkeypatch.setattr(pair_release, "release_head", broken)
    options = ("--head", "gaussian", "--evaluate-epsilon", "2", "--release", str(table / "one.npz"))
    run = CliRunner().invoke(app, arguments(table, *RELEASE, *options))
    assert f"theta must be finite, got {DIM} entries of {DIM} that are not; nothing was written" in str(run.exception)
    assert not (table / "one.npz").exists()


def test_one_of_two_responses_is_refused_by_its_options(table):
    run = CliRunner().invoke(app, ["run", "preference-pairs", "--chosen", str(table / "chosen.npy")])
    assert "chosen and rejected must both be given" in str(run.exception)
    assert "first" not in str(run.exception)


def test_errors_over_persons_are_those_of_drawn_persons():
    random = np.random.default_rng(1)
    sizes = random.integers(1, 9, size=400)
    persons = np.repeat(np.arange(400), sizes)
    values = random.normal(size=400)[persons] + 0.1 * random.normal(size=len(persons))
    drawn = []
    for _ in range(400):
        counts = np.bincount(random.integers(400, size=400), minlength=400)[persons]
        drawn.append(counts @ values / counts.sum())
    assert pair_heads.person_error(values, persons) == pytest.approx(np.std(drawn), rel=0.2)
    of_rows = values.std() / np.sqrt(len(values))  # planted: rows instead of persons
    assert of_rows < 0.7 * np.std(drawn)
    assert np.isnan(pair_heads.person_error(values, np.zeros_like(persons)))


def test_the_made_up_data_are_as_described():
    data = pair_data.demo()
    assert data.pairs.features.shape == (4000, 64)
    assert data.pairs.persons is not None
    assert len(set(data.pairs.persons.tolist())) == 150
