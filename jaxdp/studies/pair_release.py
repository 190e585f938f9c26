"""The option --release of the study of preference pairs, which writes one head that may be published.

It also prints at most one private score.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
import typer

import jaxdp
from jaxdp.core import Guarantee, default_float
from jaxdp.estimation import ReleasedHead, debiased_rr, release_head
from jaxdp.estimation.label_reports import unbiased_labels
from jaxdp.estimation.large_fits import fit_large_labels
from jaxdp.estimation.persons import PERSON
from jaxdp.mechanisms import secret_discrete_laplace
from jaxdp.preferences import private_labels
from jaxdp.studies import study
from jaxdp.studies.declared import TextOnly
from jaxdp.studies.pair_data import Part, load, split, with_score
from jaxdp.studies.pair_heads import local_radius, predictions, score
from jaxdp.validation import check_above, check_choice, check_delta, warn_large_delta

RELEASED = ("randomized_response", "gaussian")
UNREAD = ("epsilon", "num_seeds", "seed", "feature_norm")  # options that only the simulation uses
CONFIDENCE = 0.95
STEPS_PER_ANSWER = 2**20  # before noise is added, answers are rounded to multiples of one over this number


def make_release(
    options: Mapping[str, Any],
    *,
    release: Annotated[
        str | None,
        typer.Option(
            help="New .npz file: write one head that may be published, with noise from the operating system, and print "
            "its claim and nothing else that depends on labels. Uses --head, --head-epsilon and --delta."
        ),
    ] = None,
    evaluate_epsilon: Annotated[
        float | None,
        typer.Option(
            help="With --release: hold out a quarter of the persons, and print the accuracy on them with noise of this "
            "epsilon."
        ),
    ] = None,
) -> TextOnly | None:
    """Returns the release that --release writes instead of a simulation; None without --release.

    Raises:
        ValueError: if --evaluate-epsilon is given without --release; or, with --release, if an option in `UNREAD` does
            not have its default, the file is not a new .npz file in a folder that exists, or a value is out of range.
    """
    if release is None:
        if evaluate_epsilon is not None:
            raise ValueError(f"evaluate_epsilon must be left out without --release, got {evaluate_epsilon}")
        return None
    path = Path(release)
    if path.suffix != ".npz" or path.exists() or not path.parent.is_dir():
        raise ValueError(f"release must be a new .npz file in a folder that exists, got {release}")
    for name, default in defaults().items():
        if options[name] != default:
            raise ValueError(f"{name} must be left out with --release, got {options[name]}")
    check_delta(options["delta"])
    check_above("margin_stddev", options["margin_stddev"], 0.0)
    if options["head"] != "auto":
        check_choice("head", options["head"], RELEASED)
    for name, epsilon in (("head_epsilon", options["head_epsilon"]), ("evaluate_epsilon", evaluate_epsilon)):
        if epsilon is not None and math.isinf(check_above(name, epsilon, 0.0)):
            raise ValueError(f"{name} must be finite with --release, got {epsilon}")
    columns = {
        name: options[name] for name in ("table", "chosen", "rejected", "tie", "person", "prompt", "public_score")
    }
    return TextOnly(lambda: _release(path, columns, options, evaluate_epsilon))


def defaults() -> dict[str, Any]:
    """Returns the defaults of the options that --release does not use, keyed by name."""
    return {option.name: option.default for option in study("preference-pairs").options if option.name in UNREAD}


def _release(path: Path, columns: dict[str, Any], options: Mapping[str, Any], evaluate_epsilon: float | None) -> str:
    data = load(**columns)
    has_persons = data.pairs.persons is not None
    persons = data.pairs.persons if has_persons else np.arange(len(data.pairs.labels))
    part, held_out = Part(data.pairs.features, data.pairs.labels, np.asarray(persons), data.offset), None
    if evaluate_epsilon is not None:
        sides = split(data)
        part, held_out = sides.train, sides.held_out
    epsilon, delta, margin_stddev = (options[name] for name in ("head_epsilon", "delta", "margin_stddev"))
    mechanism = options["head"]
    if mechanism == "auto":
        errors = predictions(part, epsilon, delta, margin_stddev, per_person=has_persons)
        mechanism = min(RELEASED, key=errors.__getitem__)
    if mechanism == "gaussian":
        warn_large_delta(delta, len(part.labels))
        ids = part.persons if has_persons else None
        head = release_head(
            part.features,
            part.labels,
            epsilon=epsilon,
            delta=delta,
            persons=ids,
            offset=part.offset,
            margin_stddev=margin_stddev,
        )
    else:
        head = local_head(part, epsilon, margin_stddev, has_persons)
    if not np.isfinite(head.theta).all():
        raise ValueError(
            f"theta must be finite, got {int((~np.isfinite(head.theta)).sum())} entries of {head.theta.size} that are "
            "not; nothing was written. Bring features to sizes near 1, or remove columns that depend on others"
        )
    score_line = ""
    if held_out is not None and evaluate_epsilon is not None:
        score_line = f"\n{accuracy(head.theta, held_out, evaluate_epsilon, has_persons)}"
    np.savez(
        path, theta=with_score(head.theta, options["public_score"]), mechanism=mechanism, claim=str(head.claim),
        argument=head.claim.argument, unit=head.claim.privacy_unit, epsilon=epsilon, delta=head.claim.delta,
        jaxdp=jaxdp.__version__,
    )  # fmt: skip
    doubt = "" if head.converged else "; its fit did not converge: do not rely on theta"
    text = f"head:   {path}, by {mechanism}, from {len(part.labels):,} comparisons{doubt}\n"
    text += f"claim:  {head.claim}{score_line}"
    public = "ids and numbers of labels, " if has_persons else ""
    return (
        f"{text}\nPublic, and not protected: features, {public}which rows there are. Keep the head: a second release "
        "adds its epsilon.\n\n"
        "import numpy as np\n"
        f'theta = np.load("{path}")["theta"]\n'
        "chances = 1 / (1 + np.exp((second - first) @ theta))  # that the first of two embeddings [n, dim] is preferred"
    )


def local_head(part: Part, epsilon: float, margin_stddev: float, per_person: bool) -> ReleasedHead:
    """Fits a head, with the loss of `debiased_rr`, to labels that it first randomizes with secret random bits.

    Each label has the budget epsilon; if `per_person`, the labels of a person share epsilon equally. `margin_stddev`
    determines the radius (`local_radius`).
    """
    reported = private_labels(part.labels, epsilon, persons=part.persons if per_person else None, release=True)
    params = debiased_rr().params(epsilon=epsilon, radius=local_radius(part, margin_stddev))
    targets = unbiased_labels(jnp.asarray(reported.reports), jnp.asarray(reported.epsilons, default_float()))
    fit = fit_large_labels(params, part.features, targets, offset=part.offset)
    return ReleasedHead(np.asarray(fit.theta), bool(fit.converged), reported.claim)


def accuracy(theta: np.ndarray, part: Part, epsilon: float, per_person: bool) -> str:
    """Releases the accuracy on held-out comparisons with exactly sampled discrete Laplace noise, as a line of text.

    If `per_person`, the accuracy is the mean over persons of each person's accuracy. The sensitivity of this mean to
    one person is one over the number of persons.
    """
    right = score(theta, part).right
    if per_person:
        index, counts = np.unique(part.persons, return_inverse=True, return_counts=True)[1:]
        right = np.bincount(index, right) / counts
    total = sum(int(number) for number in np.rint(right * STEPS_PER_ANSWER))
    total += secret_discrete_laplace(1, Fraction(epsilon) / STEPS_PER_ANSWER)[0]
    reach = math.log(1 / (1 - CONFIDENCE)) / epsilon / len(right)
    claim = Guarantee.pure(
        epsilon,
        trust_model="central",
        privacy_unit=PERSON if per_person else "one label",
        unit="person" if per_person else "record",
        argument="one sum of shares of right answers, with exact discrete Laplace noise",
        numerical_delta=0.0,
    )
    mean = min(max(total / STEPS_PER_ANSWER / len(right), 0), 1)
    who = f"as a mean over {len(right):,} other persons" if per_person else f"on {len(right):,} other comparisons"
    margin = f"{reach:.3f} ({CONFIDENCE:.0%}, for the privacy noise only)"
    return f"held-out accuracy: {mean:.3f} +- {margin}, {who}; claim: {claim}"
