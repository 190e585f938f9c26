"""Entries of the registry: records of an algorithm and its tiny problem.

A size is stored only in `sizes`. The factory and the functions of an entry (environment, neighbours, ...) get the sizes
that are among their arguments. So an entry at other sizes has a matching environment and matching users.
"""

import dataclasses
import itertools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Self

import jax

from jaxdp.audit import Domain, History, UserData, feedback_of_action
from jaxdp.checks import check_made
from jaxdp.core import Environment, Estimator, Guarantee, Learner, MadeBy
from jaxdp.core.made_by import describe, shorten
from jaxdp.registry.data import COMPARISONS, Data, tiny_data
from jaxdp.registry.second import Second
from jaxdp.simulation.run.values import parameters, select_values
from jaxdp.validation import check_choice, check_count

PROOFS = ("proved", "claimed", "none")
BUDGETS = (0.1, 4.0)  # further values of epsilon at which most entries are attacked


class Mechanism(NamedTuple):
    """The functions of a mechanism that makes a single release, at the sizes of its entry.

    Attributes:
        params: (**values) -> pytree, on the host.
        guarantee: (**values) -> Guarantee, on the host.
        release: (key, params, data) -> output.
        exact: data -> the output at epsilon = inf; None if that output is random.
        made_by: the factory and its arguments, for display.
    """

    params: Callable[..., Any]
    guarantee: Callable[..., Guarantee]
    release: Callable[[jax.Array, Any, Any], Any]
    exact: Callable[[Any], Any] | None
    made_by: MadeBy | None = None

    def __repr__(self) -> str:
        return describe(self, "mechanism")


@dataclass(frozen=True, kw_only=True, repr=False)
class Entry:
    """The fields of every kind of entry. A "function of the sizes" takes any of `variant` and `sizes` by keyword.

    Attributes:
        summary: one line that describes the algorithm.
        title: the name in figures and tables; if empty, it is derived from the registered name.
        factory: function that makes the algorithm, from `variant` and the sizes among its arguments.
        variant: keywords of the factory that select one of its algorithms, such as {"noise": "gaussian"}.
        sizes: the values that determine shapes, such as {"num_arms": 3, "horizon": 24}.
        values: the grid point that tests and audits use.
        neighbours: two inputs that differ in one privacy unit, at which the algorithm is least private or nearly so; or
            a function of the sizes and values that returns two such inputs.
        family: name of a group of algorithms for the same problems; "own" for users' own algorithms.
        source: paper and algorithm.
        proof: state of the proof of the privacy claim: "proved", "claimed" (nobody has checked a proof), or "none" if
            nothing is claimed.
        distribution: for audits: (params, data, **sizes) -> the exact distribution of the output for one of
            `neighbours`, a mapping from outcomes to probabilities, on the host; None if it is not known.
        grid: for audits: maps the name of a value to further numbers at which the claim is attacked; each attack
            changes one of the values. Library entries with a claim and a value `epsilon` are also attacked at epsilon =
            0.1 and 4, unless `grid` has epsilon.
        other_sizes: for audits: further sizes at which the claim is attacked.
        domain: for audits: a function of the sizes and values that makes a `jaxdp.audit.Domain`, the pairs of inputs to
            search. If None, a search for a learner draws users by `draw_user`, and other entries are not searched.
        reached: for audits: the fraction of the claimed budget that attacks on correct code find with 10^6 trials; None
            if it is not known, which becomes 0.85 in the library's own entries with a claim.
        second: for audits: a second point to attack, at which the algorithm reaches code that the tiny problem does
            not, such as a second phase or an exhausted budget; None if there is no second point.

    Raises:
        ValueError: if a field is invalid. Numbers in dicts, `source`, `family`, `other_sizes`, `reached` are unchecked.
    """

    summary: str
    factory: Callable[..., Any] | None
    variant: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    neighbours: Any
    family: str = "own"
    source: str = ""
    proof: str = "claimed"
    title: str = ""
    distribution: Callable[..., Any] | None = None
    grid: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    other_sizes: tuple[Mapping[str, Any], ...] = ()
    domain: Callable[..., Domain] | None = None
    reached: float | None = None
    second: Second | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.summary, str) or not self.summary.strip() or "\n" in self.summary:
            raise ValueError(f"summary must be one line of text, got {self.summary!r}")
        if not isinstance(self.title, str) or "\n" in self.title:
            raise ValueError(f"title must be one line of text, got {self.title!r}")
        check_choice("proof", self.proof, PROOFS)
        for name in ("variant", "sizes", "values", "grid"):
            mapping = getattr(self, name)
            if not isinstance(mapping, Mapping) or not all(isinstance(key, str) for key in mapping):
                raise ValueError(f"{name} must be a mapping whose keys are names, got {mapping!r}")
        if not (self.second is None or isinstance(self.second, Second)):
            raise ValueError(f"second must be a jaxdp.registry.Second, got {self.second!r}")
        for name in self._functions:
            function = getattr(self, name)
            if not (callable(function) or (function is None and self._default(name) is None)):
                raise ValueError(f"{name} must be a function, got {function!r}")
        if not callable(self.neighbours) and not (isinstance(self.neighbours, tuple) and len(self.neighbours) == 2):
            raise ValueError(
                f"neighbours must be a pair of inputs, or a function that makes it, got {self.neighbours!r}"
            )
        for keyword in self.variant:
            if self.factory is not None and keyword not in parameters(self.factory):
                raise ValueError(f"variant must be keywords of the factory, got {keyword!r}")
        self._check_sizes(self.sizes)

    def __repr__(self) -> str:
        """Returns the factory and its arguments, in under 200 characters."""
        return shorten(f"{type(self).__name__} of {self.made_by}")

    @property
    def made_by(self) -> MadeBy:
        """The factory's name and its arguments."""
        return MadeBy(getattr(self._maker, "__name__", type(self._maker).__name__), self._arguments())

    def sized(self, **sizes: Any) -> Self:
        """Returns the entry at other sizes, for a larger or a smaller problem.

        Args:
            **sizes: the sizes to change; with None, functions that take the size use their defaults.

        Returns:
            An entry of the same algorithm.

        Raises:
            ValueError: if no function takes such a size, `variant` has it, or a size of the factory or claim is None.
        """
        return dataclasses.replace(self, sizes=self._change_sizes(sizes))

    def at_second(self) -> Self | None:
        """Returns the entry at the sizes, values and neighbours of `second`; None if `second` is None.

        The returned entry has neither `second`, `grid`, `other_sizes` nor `reached`.
        """
        second = self.second
        if second is None:
            return None
        at = dataclasses.replace(self, second=None, grid={}, other_sizes=(), reached=None).sized(**second.sizes)
        neighbours = at.neighbours if second.neighbours is None else second.neighbours
        return dataclasses.replace(at, values={**at.values, **second.values}, neighbours=neighbours)

    def make_neighbours(self) -> tuple[Any, Any]:
        """Returns the two neighbouring inputs, at the entry's sizes and values."""
        return self._at_values(self.neighbours)() if callable(self.neighbours) else self.neighbours

    def make_domain(self) -> Domain | None:
        """Returns the pairs of inputs to search, at the entry's sizes and values; None if `domain` is None."""
        return None if self.domain is None else self._at_values(self.domain)()

    def make_distribution(self) -> Callable[[Any, Any], Any] | None:
        """Returns (params, data) -> exact distribution of the output, at the entry's sizes; None if it is not known."""
        return None if self.distribution is None else self._bind_sizes(self.distribution)

    @property
    def _functions(self) -> tuple[str, ...]:
        """The names of the fields that may contain a function of the sizes, except `neighbours` and `others`."""
        return ("factory", "distribution", "domain")

    @property
    def _maker(self) -> Callable[..., Any]:
        """The function that makes the algorithm; `made_by` shows its name and arguments."""
        assert self.factory is not None
        return self.factory

    def _default(self, name: str) -> Any:
        return next(one_field.default for one_field in dataclasses.fields(self) if one_field.name == name)

    def _names(self) -> set[str]:
        """Returns the names of all arguments of the entry's functions."""
        functions = [getattr(self, name) for name in (*self._functions, "neighbours")]
        return {name for function in functions if callable(function) for name in parameters(function)}

    def _arguments(self) -> dict[str, Any]:
        return {**self.variant, **select_values(self._maker, self.sizes)}

    def _arguments_of_all(self) -> dict[str, Any]:
        return {**self.variant, **self.sizes}

    def _check_sizes(self, sizes: Collection[str]) -> None:
        if both := set(self.variant) & set(sizes):
            raise ValueError(f"variant must name no size, got {', '.join(sorted(both))}")
        names = self._names()
        for size in sizes:
            if size not in names:
                raise ValueError(f"sizes must be arguments of the factory or of another function, got {size!r}")

    def _change_sizes(self, sizes: Mapping[str, Any]) -> dict[str, Any]:
        self._check_sizes(sizes)
        makers = [getattr(self, name, None) for name in ("factory", "params", "guarantee", "release")]
        for parameter in itertools.chain(*(parameters(maker).values() for maker in makers if maker)):
            if parameter.default is parameter.empty and sizes.get(parameter.name, 1) is None:
                raise ValueError(f"{parameter.name} must not be None, because it has no default")
        return {name: size for name, size in {**self.sizes, **sizes}.items() if size is not None}

    def _bind_sizes(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Binds the entry's sizes to a function; returns the same object if the function takes none of them."""
        sizes = select_values(function, self._arguments_of_all())
        return partial(function, **sizes) if sizes else function

    def _at_values(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Binds the entry's sizes and values to a function."""
        return partial(function, **select_values(function, {**self.values, **self._arguments_of_all()}))

    def _make(self, kind: type) -> Any:
        algorithm = self._maker(**self._arguments())
        check_made("the result of factory", algorithm, kind)
        return algorithm


@dataclass(frozen=True, kw_only=True, repr=False)
class LearnerEntry(Entry):
    """A learner with a tiny problem. The other fields are those of `Entry`.

    Attributes:
        factory: takes the keywords in `variant` and the sizes; returns a Learner.
        environment: function of the sizes that makes an Environment for the learner.
        horizon: rounds of the tiny problem, >= 2; by default the size "horizon". Functions of the sizes may take it;
            the factory gets it only if it is among the sizes.
        neighbours: the users of two runs that differ in one user, chosen so that the algorithm uses this user's answer
            in every way that it can.
        draw_user: (key, **sizes) -> random UserData of one round, sometimes the extremes of a user's data; None if only
            `neighbours` are known. A function that also has an argument `history` is an adversary who chooses users
            while the learner plays, given a `jaxdp.audit.History`; it draws all users except the user who differs.
        users_answer: (answers, history, action) -> feedback.
        observe: function of the adversary's view that makes attacks sharper, as for `jaxdp.audit.learner_attack`; None
            attacks the whole view.
        randomizes: whether reports are random choices, such as randomized responses or random points of a sphere. They
            then depend on the data at any epsilon if the key is the same; see `jaxdp.audit.leaks`.
        draws_in_update: whether `update` draws the next play even in the non-private case, from weights or among equal
            scores.
        may_claim_less: whether the claimed epsilon may be below the value of `epsilon`, because the learner spends
            less.
        multiple: name of a size if the claimed epsilon is this size times the value of `epsilon`, because the published
            claim is too small by this factor; else "".
    """

    factory: Callable[..., Learner]
    environment: Callable[..., Environment]
    horizon: int = 0
    draw_user: Callable[..., UserData] | None = None
    users_answer: Callable[..., Any] = feedback_of_action
    observe: Callable[[Any], Any] | None = None
    randomizes: bool = False
    draws_in_update: bool = False
    may_claim_less: bool = False
    multiple: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.multiple and self.multiple not in self.sizes:
            raise ValueError(f"multiple must be the name of a size, or empty, got {self.multiple!r}")
        horizon = self.sizes.get("horizon", self.horizon)
        if self.horizon not in (0, horizon):
            raise ValueError(f"horizon must equal the horizon in sizes, {horizon}, got {self.horizon}")
        object.__setattr__(self, "horizon", check_count("horizon", horizon, 2))

    def sized(self, **sizes: Any) -> Self:
        """Returns the entry at other sizes. With None, functions that take the size use their defaults.

        `horizon` must not be None. It changes the tiny problem and, if it is among the sizes, the factory's argument.

        Raises:
            ValueError: as for `Entry.sized`, or if the horizon is not an integer >= 2.
        """
        horizon = sizes.get("horizon", self.horizon)
        if "horizon" not in self.sizes:
            sizes.pop("horizon", None)
        return dataclasses.replace(self, sizes=self._change_sizes(sizes), horizon=horizon)

    def make(self) -> Learner:
        """Makes the learner, at the entry's sizes."""
        return self._make(Learner)

    def make_environment(self) -> Environment:
        """Makes the environment of the tiny problem, at the entry's sizes."""
        return self._bind_sizes(self.environment)()

    @property
    def is_adaptive(self) -> bool:
        """Whether `draw_user` takes `history`, so that the drawn users depend on the run so far."""
        return self.draw_user is not None and "history" in parameters(self.draw_user)

    def make_user(self, key: jax.Array, history: History | None = None) -> UserData:
        """Draws one user, at the entry's sizes; the user depends on `history` if `draw_user` takes it.

        Raises:
            ValueError: if the entry has no `draw_user`, or `draw_user` needs a history and gets none.
        """
        if self.draw_user is None:
            raise ValueError("draw_user must be given in the entry, got None")
        if not self.is_adaptive:
            return self._bind_sizes(self.draw_user)(key)
        if history is None:
            raise ValueError("history must be given to a draw_user that takes it, got None")
        return self._bind_sizes(self.draw_user)(key, history=history)

    @property
    def _functions(self) -> tuple[str, ...]:
        return ("factory", "distribution", "domain", "environment", "draw_user")

    def _arguments_of_all(self) -> dict[str, Any]:
        return {**super()._arguments_of_all(), "horizon": self.horizon}


@dataclass(frozen=True, kw_only=True, repr=False)
class EstimatorEntry(Entry):
    """An estimator with a tiny problem. The other fields are those of `Entry`.

    Attributes:
        factory: takes the keywords in `variant` and the sizes; returns an Estimator.
        data: (key, **sizes) -> (features, labels) of the tiny problem.
        neighbours: two data sets (features, labels) that differ in one privacy unit.
    """

    factory: Callable[..., Estimator]
    data: Callable[..., tuple[jax.Array, jax.Array]] = tiny_data
    neighbours: tuple[Data, Data] | Callable[..., tuple[Data, Data]] = COMPARISONS

    def make(self) -> Estimator:
        """Makes the estimator, at the entry's sizes."""
        return self._make(Estimator)

    def make_data(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Draws the tiny problem's (features, labels), at the entry's sizes."""
        return self._bind_sizes(self.data)(key)

    @property
    def _functions(self) -> tuple[str, ...]:
        return ("factory", "distribution", "domain", "data")


@dataclass(frozen=True, kw_only=True, repr=False)
class MechanismEntry(Entry):
    """A mechanism as one release. The other fields are those of `Entry`.

    Attributes:
        factory: the library's function that makes the mechanism, for display; None if there is none.
        params: takes the values and the sizes as keywords; returns a pytree, on the host.
        guarantee: takes the values and the sizes as keywords; returns a Guarantee, on the host.
        release: (key, params, data, **sizes) -> output.
        neighbours: two adjacent inputs.
        exact: (data, **sizes) -> the output at epsilon = inf; None if that output is random.
        others: other implementations of the release, keyed by name (not "release"), with the same arguments as
            `release`. Audits attack these implementations as well, under the same claim.
    """

    params: Callable[..., Any]
    guarantee: Callable[..., Guarantee]
    release: Callable[..., Any]
    exact: Callable[..., Any] | None = None
    others: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    factory: Callable[..., Any] | None = None

    @property
    def _maker(self) -> Callable[..., Any]:
        return self.factory or self.release

    def __post_init__(self) -> None:
        named = isinstance(self.others, Mapping) and all(isinstance(name, str) for name in self.others)
        if not named or not all(callable(other) for other in self.others.values()) or "release" in self.others:
            raise ValueError(f"others must be functions by name, without the name release, got {self.others!r}")
        super().__post_init__()

    def make(self) -> Mechanism:
        """Makes the mechanism, at the entry's sizes."""
        exact = None if self.exact is None else self._bind_sizes(self.exact)
        params, guarantee, release = (
            self._bind_sizes(function) for function in (self.params, self.guarantee, self.release)
        )
        return Mechanism(params, guarantee, release, exact, self.made_by)

    def make_releases(self) -> dict[str, Callable[[jax.Array, Any, Any], Any]]:
        """Returns all implementations of the release, keyed by name, at the entry's sizes."""
        return {name: self._bind_sizes(release) for name, release in {"release": self.release, **self.others}.items()}

    @property
    def _functions(self) -> tuple[str, ...]:
        return ("factory", "distribution", "domain", "params", "guarantee", "release", "exact")

    def _names(self) -> set[str]:
        return super()._names() | {name for other in self.others.values() for name in parameters(other)}
