"""Learners, adversaries and runs that all tracking studies share."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, NamedTuple

import typer
import xarray as xr

from jaxdp import experts
from jaxdp.core import Environment, Learner
from jaxdp.experts import classes
from jaxdp.simulation import Run, simulator
from jaxdp.simulation.run.values import parameters
from jaxdp.studies.arguments import fixed_delta, grid
from jaxdp.studies.comparison import keep_last_round, select_names
from jaxdp.validation import check_choice, check_count, check_horizon, check_positive

METRICS = ("loss", "regret", "best_loss", "dynamic_regret", "best_sequence_loss")
CHECK_EVERY = 16  # rounds between two checks of `svt_restarts`


def _lazy_weights(num_experts: int, horizon: int, num_switches: int) -> Learner:
    sequences = classes.switching(num_switches=num_switches) if num_switches else classes.static()
    return experts.lazy_weights(num_experts=num_experts, horizon=horizon, sequences=sequences)


def _counter_weights(num_experts: int, horizon: int, num_switches: int) -> Learner:
    if not num_switches or horizon == 1:
        return experts.counter_weights(num_experts=num_experts, horizon=horizon)
    rate = min(num_switches / (horizon - 1), 1 - 1 / horizon)  # a rate of 1 has no prior
    sequences = classes.markov(switch_rate=rate)
    return experts.counter_weights(num_experts=num_experts, horizon=horizon, sequences=sequences)


def _mirror_descent(num_experts: int, horizon: int, num_switches: int, **form: str) -> Learner:
    switches = max(1, num_switches)  # mirror descent requires comparators that switch
    return experts.mirror_descent(num_experts=num_experts, horizon=horizon, num_switches=switches, **form)


LEARNERS: dict[str, Callable[[int, int, int], Learner]] = {  # (num_experts, horizon, num_switches) -> a learner
    "exponential_weights": lambda size, horizon, _: experts.exponential_weights(
        num_experts=size, horizon=horizon, noise="gaussian"
    ),
    "limited_updates": lambda size, *_: experts.limited_updates(num_experts=size),
    "svt_restarts": lambda size, horizon, _: experts.svt_restarts(
        num_experts=size, horizon=horizon, check_every=CHECK_EVERY
    ),
    "limited_updates_oblivious": lambda size, horizon, _: experts.limited_updates_oblivious(
        num_experts=size, horizon=horizon, accounting="zcdp"
    ),
    "svt_lazy": lambda size, horizon, _: experts.svt_lazy(num_experts=size, horizon=horizon, accounting="zcdp"),
    "lazy_weights_static": lambda size, horizon, _: experts.lazy_weights(num_experts=size, horizon=horizon),
    "lazy_weights": _lazy_weights,
    "counter_weights_static": lambda size, horizon, _: experts.counter_weights(num_experts=size, horizon=horizon),
    "counter_weights": _counter_weights,
    "mirror_descent": _mirror_descent,
    "mirror_descent_noisy": partial(_mirror_descent, form="noisy_losses"),
    "mirror_descent_intervals": partial(_mirror_descent, form="intervals"),
    "mirror_descent_paper": partial(_mirror_descent, constants="paper"),
}


class Setting(NamedTuple):
    """A setting of a study: an adversary and sizes.

    Attributes:
        adversary: a name in `ADVERSARIES`.
        num_experts: N, the number of experts.
        horizon: T, the number of rounds.
        num_switches: S, the maximum number of switches of the comparator, and the number of shifts of the adversary
            ("alternating" may shift less often; "punish_repeats" has no shifts).
    """

    adversary: str
    num_experts: int
    horizon: int
    num_switches: int

    def __str__(self) -> str:
        return f"{self.adversary}, N = {self.num_experts:,}, T = {self.horizon:,}, S = {self.num_switches:,}"


class Adversary(NamedTuple):
    """An adversary of the studies.

    Attributes:
        make: function(setting, gap) that returns the environment.
        kind: the row of Table 1 of Asi et al. (2025): "shifting", "oblivious" or "adaptive".
        mean_loss: function(num_experts, gap) that returns the expected loss of uniform play per round; None if this
            loss is not known.
    """

    make: Callable[[Setting, float], Environment]
    kind: str
    mean_loss: Callable[[int, float], float] | None


def _shifting(setting: Setting, gap: float) -> Environment:
    _, size, horizon, switches = setting
    return experts.shifting_losses(
        num_experts=size, horizon=horizon, num_shifts=switches, gap=gap, num_switches=switches
    )


def _lower_bound(setting: Setting, gap: float) -> Environment:
    _, size, horizon, switches = setting
    if switches >= size:
        raise ValueError(
            f"num_switches must be < num_experts = {size} with lower_bound, which has a good expert for each segment, "
            f"got {switches}"
        )
    return experts.lower_bound_losses(
        num_experts=size, horizon=horizon, num_phases=switches + 1, gap=gap, num_switches=switches
    )


def _alternating(setting: Setting, gap: float) -> Environment:
    del gap
    _, size, horizon, switches = setting
    losses = experts.alternating_losses(num_experts=size, horizon=horizon, period=-(-horizon // (switches + 1)))
    return experts.loss_sequence(losses, num_switches=switches)


def _punish_repeats(setting: Setting, gap: float) -> Environment:
    return experts.punish_repeats(num_experts=setting.num_experts, gap=gap, num_switches=setting.num_switches)


ADVERSARIES = {
    "shifting": Adversary(_shifting, "shifting", lambda size, gap: 0.5 - gap / size),
    "lower_bound": Adversary(_lower_bound, "shifting", lambda size, gap: 0.5 - gap / size),
    "alternating": Adversary(_alternating, "oblivious", None),
    "punish_repeats": Adversary(_punish_repeats, "adaptive", None),
}


Names = Annotated[Sequence[str], grid(f"Learner: {', '.join(LEARNERS)}; or all. Repeat for several.")]
Gap = Annotated[float, typer.Option(help="1/2 minus the best mean loss, in (0, 1/2].")]
NotPure = Annotated[float, typer.Option(help="Delta of learners that are not purely private, in (0, 1).")]


def check_gap(gap: float) -> None:
    """Raises ValueError unless a gap is in (0, 1/2]."""
    if check_positive("gap", gap) > 0.5:
        raise ValueError(f"gap must be in (0, 1/2], got {gap}")


def check_learners(names: Sequence[str]) -> list[str]:
    """Returns the names, or all names if `names` is ["all"] or empty; raises ValueError for an unknown name."""
    return select_names([] if list(names) == ["all"] else names, LEARNERS)


def star(
    adversary: Sequence[str], num_experts: Sequence[int], horizon: Sequence[int], num_switches: Sequence[int]
) -> list[Setting]:
    """Returns the settings for each adversary: the setting with all first values, and settings that change one value.

    Raises:
        ValueError: if a name is unknown, a number is out of range, or an argument is empty.
    """
    axes = {"adversary": adversary, "num_experts": num_experts, "horizon": horizon, "num_switches": num_switches}
    for name, values in axes.items():
        if not len(values):
            raise ValueError(f"{name} must have at least one value, got none")
    sizes = [check_count("num_experts", value, 2) for value in num_experts]
    horizons = [check_horizon(value, minimum=2) for value in horizon]
    switches = [check_count("num_switches", value, 0) for value in num_switches]
    settings = []
    for name in adversary:
        check_choice("adversary", name, tuple(ADVERSARIES))
        base = Setting(name, sizes[0], horizons[0], switches[0])
        settings += [base._replace(horizon=value) for value in horizons]
        settings += [base._replace(num_switches=value) for value in switches]
        settings += [base._replace(num_experts=value) for value in sizes]
    for setting in settings:
        if setting.num_switches >= setting.horizon:
            raise ValueError(f"num_switches must be < horizon = {setting.horizon}, got {setting.num_switches}")
    return list(dict.fromkeys(settings))


def tracking_run(learner: Learner, environment: Environment, horizon: int, delta: float) -> Run:
    """Returns the run of a learner, with only the outputs `METRICS` after the last round.

    Args:
        learner: a learner.
        environment: an environment with the outputs `METRICS`.
        horizon: number of rounds.
        delta: value of the parameter delta, if the learner has this parameter.
    """
    run = simulator(learner, environment, horizon, checkpoints=[horizon])
    return keep_last_round(run, METRICS, fixed_delta(parameters(learner.params), delta, horizon))


def claim_of(learner: Learner, delta: float) -> str:
    """Formats, for labels, the trust model and the kind of claim of a learner with privacy budget epsilon."""
    values = {"delta": delta} if "delta" in parameters(learner.params) else {}
    claim = learner.guarantee(epsilon=1.0, **values)
    if claim.kind != "pure":
        return f"{claim.trust_model}, (ε, δ)"
    return f"{claim.trust_model}, {'' if claim.epsilon == 1 else f'{claim.epsilon:g}'}ε"


def proved_bound(name: str, setting: Setting, epsilon: float, delta: float) -> float | None:
    """Returns the proved regret bound of a learner; None if there is no bound to show.

    Only the names "lazy_weights" and, without switches, "counter_weights" have bounds here, and only if losses do not
    adapt to the learner. Studies do not show the bound of `mirror_descent`, which is in `mirror_descent_parameters`.
    """
    _, num_experts, horizon, switches = setting
    values = {"epsilon": epsilon, "delta": delta, "num_experts": num_experts, "horizon": horizon}
    if ADVERSARIES[setting.adversary].kind == "adaptive":
        return None
    if name == "lazy_weights":
        sequences = classes.switching(num_switches=switches) if switches else classes.static()
        return experts.lazy_weights_parameters(**values, num_switches=switches, sequences=sequences).regret_bound
    if name == "counter_weights" and not switches:
        return experts.counter_weights_parameters(**values).regret_bound
    return None


def at_setting(results: xr.Dataset, setting: Setting) -> xr.Dataset:
    """Returns the results of one setting, without the dimension `setting`."""
    return results.sel(setting=str(setting), drop=True)


def settings_of(results: xr.Dataset) -> list[Setting]:
    """Returns the settings of results from `with_settings`, in order."""
    columns = [results[name].values.tolist() for name in Setting._fields]
    return [Setting(*row) for row in zip(*columns, strict=True)]


def with_settings(results: xr.Dataset, settings: Sequence[Setting]) -> xr.Dataset:
    """Adds the fields of the settings as coordinates along the dimension `setting`."""
    parts = zip(*settings, strict=True)
    return results.assign_coords(
        {name: ("setting", list(part)) for name, part in zip(Setting._fields, parts, strict=True)}
    )
