"""Show what privacy costs a reward head that is learned from your preference pairs.

Fits linear heads on the embeddings of chosen and rejected responses: without
privacy, and with local and central label privacy, per label and per person.
Compares the heads on held-out persons and prompts. Without a table, the data
are synthetic. --release writes one private head instead.
"""

from pathlib import Path
from typing import Annotated, Any

import jax
import numpy as np
import typer
import xarray as xr
from matplotlib.figure import Figure
from tqdm import tqdm

import jaxdp
from jaxdp import plotting
from jaxdp.estimation import predict_fit_cost
from jaxdp.studies.arguments import Delta, Epsilons, Key, NumSeeds
from jaxdp.studies.declared import Study
from jaxdp.studies.pair_data import Part, load, split, with_score
from jaxdp.studies.pair_heads import CLEAR, MECHANISMS, heads, person_error, predictions, release, score
from jaxdp.studies.pair_release import RELEASED, make_release
from jaxdp.studies.tables import columns
from jaxdp.validation import check_above, check_choice, check_count, check_delta, check_epsilon, warn_large_delta

NOT_PRIVATE = "not private, only for people who may see the labels"
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
METRICS = {
    "accuracy": "held-out accuracy",
    "log_loss": "held-out log loss",
    "calibration_error": "calibration error of held-out probabilities",
}
INTERVALS = (
    "Bands and [ ]: 90% of releases, as the privacy noise varies. Bars and +-: 95% confidence, as held-out persons "
    "vary. The noise is drawn again for each seed; the persons in the training data do not vary."
)
WORST_LOSS = 1.5  # largest log loss that is drawn; without a public score, theta = 0 has the log loss ln 2
MARKERS = "osD^v<>P"


def _column(help: str) -> Any:
    return typer.Option(help=help, rich_help_panel="Data")


def preference_pairs(
    *,
    table: Annotated[
        str | None, _column("JSON lines or Parquet, one row per comparison. Default: made-up data.")
    ] = None,
    chosen: Annotated[str | None, _column("Embeddings of the chosen responses: a column, or a .npy file.")] = None,
    rejected: Annotated[str | None, _column("Embeddings of the rejected responses.")] = None,
    tie: Annotated[str | None, _column("Column of truth values: whether the two tied.")] = None,
    person: Annotated[str | None, _column("Column of ids of the persons who gave the labels.")] = None,
    prompt: Annotated[str | None, _column("Column of ids of prompts.")] = None,
    public_score: Annotated[
        int | None,
        _column("Entry of the embeddings, from 0, with a public reward model's score; heads learn its correction."),
    ] = None,
    epsilon: Epsilons = EPSILONS,
    num_seeds: NumSeeds = 20,
    delta: Delta = 1e-6,
    margin_stddev: Annotated[
        float, typer.Option(help="Guess of the margins' standard deviation, made without labels.")
    ] = 1.0,
    feature_norm: Annotated[
        float | None,
        typer.Option(
            help="Bound on the norm of embeddings, chosen without the data; adds the head with private features."
        ),
    ] = None,
    head_epsilon: Annotated[float, typer.Option(help="Epsilon of the head in head.npz.")] = 1.0,
    head: Annotated[
        str,
        typer.Option(
            help="Head in head.npz: randomized_response, gaussian or k_norm; auto: the least predicted margin error."
        ),
    ] = "auto",
    key: Key,
    **scheduling: Any,
) -> xr.Dataset:
    """Fits every head at every epsilon with several draws of the privacy noise, and scores it on held-out comparisons.

    Returns:
        A dataset with `accuracy`, `log_loss`, `calibration_error` and `converged` (head, epsilon, seed); the standard
        errors over persons (over rows if ids of persons are not known) `accuracy_person_error` and
        `log_loss_person_error` (head, epsilon); `predicted_margin_error` (mechanism, epsilon); and `theta` (feature),
        the parameter of the head to be written. The non-private head is fitted once at each epsilon, and its scores are
        repeated for all seeds.

    Raises:
        ValueError: if a value is out of range, `load` or `split` does not accept the data, a store is given, or
            public_score is given with feature_norm or with the head k_norm.
        OSError: if a file cannot be read.
    """
    if scheduling.get("store") is not None:
        raise ValueError(f"store must be left out, as this study has no store (use run), got {scheduling['store']}")
    check_delta(delta)
    check_count("num_seeds", num_seeds)
    check_above("margin_stddev", margin_stddev, 0.0)
    check_choice("head", head, ("auto", *MECHANISMS))
    check_above("head_epsilon", head_epsilon, 0.0)
    for value in epsilon:
        check_epsilon(value)
    if public_score is not None and (feature_norm is not None or head == "k_norm"):
        raise ValueError(
            "public_score must be left out with feature_norm and with the head k_norm, which take no known margins, "
            f"got {public_score}"
        )
    names = {"chosen": chosen, "rejected": rejected, "tie": tie, "person": person}
    data = split(load(table, prompt, public_score, **names))
    train, held_out, per_person = data.train, data.held_out, data.has_persons
    warn_large_delta(delta, len(train.labels))
    fits = heads(train, delta=delta, margin_stddev=margin_stddev, feature_norm=feature_norm, has_persons=per_person)
    dataset = {name: np.zeros((len(fits), len(epsilon), num_seeds)) for name in METRICS}
    converged = np.zeros((len(fits), len(epsilon), num_seeds), bool)
    errors = {name: np.zeros((len(fits), len(epsilon))) for name in ("accuracy", "log_loss")}
    cost = predict_fit_cost(*train.features.shape, whitened=True, weighted=True)
    bar = tqdm(
        total=len(fits) * len(epsilon),
        desc=f"the costliest fit takes {cost}",
        disable=not scheduling.get("progress"),
    )
    for row, (name, head_fit) in enumerate(fits.items()):
        for column, value in enumerate(epsilon):
            keys = [jax.random.fold_in(jax.random.fold_in(key, row), seed) for seed in range(num_seeds)]
            draws = keys[:1] if name == CLEAR else keys
            estimates = [head_fit.fit(draw, value) for draw in draws]
            converged[row, column] = [bool(estimate.converged) for estimate in estimates]
            scores = [score(np.asarray(estimate.theta), held_out) for estimate in estimates]
            for metric in METRICS:
                dataset[metric][row, column] = [getattr(of_draw, metric) for of_draw in scores]
            for metric, rows in (("accuracy", "right"), ("log_loss", "losses")):
                mean = np.mean([getattr(of_draw, rows) for of_draw in scores], axis=0)
                errors[metric][row, column] = person_error(mean, held_out.persons)
            bar.update()
    bar.close()
    predicted = {
        value: predictions(train, value, delta, margin_stddev, per_person=per_person)
        for value in (*epsilon, head_epsilon)
    }
    choices = MECHANISMS if public_score is None else RELEASED
    mechanism = min(choices, key=predicted[head_epsilon].__getitem__) if head == "auto" else head
    key_head = jax.random.fold_in(key, 2**20)
    released = release(key_head, train, mechanism, head_epsilon, delta, margin_stddev, per_person=per_person)
    dims = ("head", "epsilon")
    return xr.Dataset(
        {name: ((*dims, "seed"), values) for name, values in dataset.items()}
        | {f"{name}_person_error": (dims, values) for name, values in errors.items()}
        | {"converged": ((*dims, "seed"), converged)}
        | {
            "predicted_margin_error": (
                ("mechanism", "epsilon"),
                [[predicted[value][name] for value in epsilon] for name in MECHANISMS],
            ),
            "theta": ("feature", with_score(released.theta, public_score)),
        },
        {"head": list(fits), "epsilon": list(epsilon), "mechanism": list(MECHANISMS)},
        {
            "data": data.text + ("" if public_score is None else f" {_score_alone(held_out)}"),
            "delta": delta,
            "head_mechanism": mechanism,
            "head_converged": int(released.converged),
            "head_claim": str(released.claim),
            "head_unit": released.claim.privacy_unit,
            "head_epsilon": head_epsilon,
            "jaxdp": jaxdp.__version__,
            "jax": jax.__version__,
        },
    )


def _score_alone(held_out: Part) -> str:
    alone = score(np.zeros(held_out.features.shape[1]), held_out)
    return f"The public score alone has accuracy {alone.accuracy:.3f} and log loss {alone.log_loss:.3f}."


def figure(dataset: xr.Dataset) -> Figure:
    """Draws each score against epsilon, with bands for the privacy noise.

    Accuracy and log loss also have error bars for the choice of held-out persons.
    """
    drawing = plotting.panels(1, len(METRICS), width=4.0)
    epsilons, ticks = dataset.epsilon.values, np.arange(dataset.sizes["epsilon"])
    for ax, (metric, title) in zip(drawing.axes, METRICS.items(), strict=True):
        for row, name in enumerate(dataset["head"].values):
            values = dataset[metric].sel(head=name)
            mean, (low, high) = (
                values.mean("seed", skipna=False).values,
                np.quantile(values.values, (0.05, 0.95), axis=1),
            )
            style = {"color": f"C{row}", "label": str(name) if metric == "accuracy" else None}
            position = ticks + 0.04 * (row - len(dataset["head"]) / 2)
            error = dataset.get(f"{metric}_person_error")
            reach = None if error is None else 1.96 * error.sel(head=name).values
            ax.errorbar(position, mean, reach, marker=MARKERS[row % len(MARKERS)], capsize=2, **style)
            if name != CLEAR:
                ax.fill_between(position, low, high, color=f"C{row}", alpha=0.15, linewidth=0)
        ax.set_xticks(ticks, [plotting.epsilon_label(value).replace("ε = ", "") for value in epsilons])
        ax.set(xlabel="ε", title=title)
        if metric == "log_loss":
            ax.set_ylim(top=min(ax.get_ylim()[1], WORST_LOSS))
    is_cut = bool((dataset.log_loss > WORST_LOSS).any())
    note = f"{INTERVALS} Log losses above {WORST_LOSS:g} are outside of the panel." if is_cut else INTERVALS
    drawing.explain(title=f"What privacy costs a reward head: {NOT_PRIVATE}", note=note)
    return drawing


def report(dataset: xr.Dataset) -> str:
    """Formats a sentence on the people who may see the report, and tables of scores and predictions."""
    epsilons = [plotting.epsilon_label(value) for value in dataset.epsilon.values]
    parts = [f"{NOT_PRIVATE}.", dataset.attrs["data"]]
    for metric, title in METRICS.items():
        rows = [[title, *epsilons]]
        for name in dataset["head"].values:
            values = dataset[metric].sel(head=name).transpose("epsilon", "seed").values
            cells = [f"{mean:.3f}" for mean in values.mean(axis=1)]
            if f"{metric}_person_error" in dataset and name == CLEAR:
                error = float(dataset[f"{metric}_person_error"].sel(head=name).isel(epsilon=0))
                cells[0] += f" +- {1.96 * error:.3f}"
            elif name != CLEAR:
                spans = np.quantile(values, (0.05, 0.95), axis=1).T
                cells = [f"{cell} [{low:.3f}, {high:.3f}]" for cell, (low, high) in zip(cells, spans, strict=True)]
            rows.append([str(name), *cells])
        parts.append("\n".join(columns(rows, title)))
    unit = dataset.attrs["head_unit"]
    rows = [[f"predicted margin error, {unit}", *epsilons]]
    for name in dataset.mechanism.values:
        rows.append(
            [str(name), *(f"{value:.2f}" for value in dataset.predicted_margin_error.sel(mechanism=name).values)]
        )
    parts += [
        INTERVALS,
        "\n".join(columns(rows, rows[0][0])),
        "Predictions read features and ids, never labels. A head is worthless if its predicted margin error is above "
        "the guessed standard deviation of margins.",
    ]
    if stopped := int((~dataset.converged).sum()):
        parts.append(f"note: {stopped} of {dataset.converged.size} fits did not converge; do not rely on their scores.")
    return "\n\n".join(parts)


def write_head(dataset: xr.Dataset, folder: Path) -> str:
    """Writes head.npz, and returns text with lines of code that score new pairs."""
    path = folder / "head.npz"
    head_attrs = {name: dataset.attrs[f"head_{name}"] for name in ("mechanism", "claim", "unit", "epsilon")}
    versions = {name: dataset.attrs[name] for name in ("jaxdp", "jax")}
    np.savez(
        path, theta=dataset.theta.values, scaling=np.float32(1), delta=dataset.attrs["delta"], **head_attrs, **versions
    )
    doubt = "" if dataset.attrs["head_converged"] else "; its fit did not converge: do not rely on theta"
    return (
        f"head:   {path}, by {head_attrs['mechanism']}; its claim, in a simulation: {head_attrs['claim']}{doubt}\n\n"
        "import numpy as np\n"
        f'theta = np.load("{path}")["theta"]  # for embeddings as they were read (scaling 1)\n'
        "chances = 1 / (1 + np.exp((second - first) @ theta))  # that the first of two embeddings [n, dim] is preferred"
    )


STUDY = Study(
    preference_pairs, figure, report, instead=make_release, files=write_head, quick={"num_seeds": 4}, minutes=1
)
