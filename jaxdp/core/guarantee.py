"""Privacy claims (`Guarantee`). A claim stores the budget for which it was proved, as epsilon, rho or mu."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from jaxdp.core.accounting import dp_event
from jaxdp.core.composition import at_user_level, compose_claims
from jaxdp.core.conversions import gaussian_epsilon, zcdp_epsilon
from jaxdp.core.made_by import shorten
from jaxdp.core.shown import budget_text, guarantee_rows, page, rounded_up
from jaxdp.validation import (
    check_above,
    check_at_least,
    check_choice,
    check_count,
    check_epsilon,
    check_flag,
    check_number,
)

TRUST_MODELS = ("central", "local", "shuffle", "joint")
KINDS = ("pure", "approximate", "zcdp", "gaussian", "none")
SEEN = ("report", "action", "public")
UNITS = ("record", "person")
_ADVERSARY_VIEW = {  # default by trust model; reports to a curator are private, randomized reports of a user are not
    "central": ("action", "public"),
    "local": SEEN,
    "shuffle": ("action", "public"),
    "joint": ("public",),
}
_AS_TRUSTED = frozenset({"as the trust model says"})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A privacy claim and its justification. Create one with `pure`, `approximate`, `zcdp`, `gaussian` or `none`.

    Attributes:
        kind: "pure" (epsilon-DP), "approximate" ((epsilon, delta)-DP), "zcdp" (rho-zCDP), "gaussian" (mu-GDP) or
            "none".
        epsilon: budget of a pure or approximate claim, in (0, inf); infinity for all other kinds.
        delta: delta of an approximate claim, in [0, 1). A guarantee of kind "none" may also have a delta. It is 0 for
            pure, zCDP and Gaussian claims.
        rho: budget of a zCDP claim, in (0, inf); None for all other kinds.
        mu: budget of a Gaussian claim, in (0, inf): neighbours are no easier to distinguish than N(0, 1) from N(mu, 1).
            None for all other kinds.
        trust_model: "central" (a curator sees the data), "local" (only the user does), "shuffle" or "joint".
        privacy_unit: the data that the claim protects, for example "one label".
        adjacency: how two neighbouring inputs differ, for example "replace-one".
        argument: one sentence that says why the claim holds.
        adversary_view: the parts of each round of a learner that may be published under this claim, among "report",
            "action" and "public". By default these are all three in the local model, "action" and "public" in the
            central and the shuffle model, and "public" in the joint model. The view of a contextual learner has no
            "action" if its action depends on a private context. In the joint model the view is "public" or empty,
            because a user's action may depend on the user's data without noise; the claim protects a user against
            someone who sees this view and the actions of all other users.
        sensitive_fields: names of the leaves of a user's data that may differ between neighbours, stored in
            alphabetic order; None if all may differ.
        batch: in the shuffle model, the number of users whose reports are shuffled together, >= 1; None in other
            models.
        local_epsilon: in the shuffle model, the epsilon of one user's report before shuffling, > 0; None in other
            models.
        unit: "record" for the data of one round or one record, or "person" for all data of a person.
        numerical_delta: a bound, in [0, 1), on the additional delta due to the program's rounding; 0 if the
            arithmetic is exact. The bound assumes ideal random bits. None if no bound is known; the claim then holds
            for real numbers, and ignores rounding.

    Examples:
        >>> label = {"privacy_unit": "one label", "argument": "randomized response"}
        >>> rr = Guarantee.pure(0.5, trust_model="local", **label)
        >>> print(rr.compose(rr))
        1-DP, local, one label
        >>> noised = Guarantee.zcdp(0.02, trust_model="central", **label)
        >>> print(noised.compose(noised), round(noised.compose(noised).epsilon_at(1e-6), 3), sep="; ")
        0.04-zCDP, central, one label; 1.305
    """

    kind: str
    epsilon: float = math.inf
    delta: float = 0.0
    rho: float | None = None
    mu: float | None = None
    trust_model: str
    privacy_unit: str
    adjacency: str = "replace-one"
    argument: str
    adversary_view: frozenset[str] = _AS_TRUSTED
    sensitive_fields: tuple[str, ...] | None = None
    batch: int | None = None
    local_epsilon: float | None = None
    numerical_delta: float | None = None
    unit: str = "record"

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        check_choice("trust_model", self.trust_model, TRUST_MODELS)
        check_choice("unit", self.unit, UNITS)
        for name in ("privacy_unit", "adjacency", "argument"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be a text, got {getattr(self, name)!r}")
        for name, kind in (("rho", "zcdp"), ("mu", "gaussian")):
            value = getattr(self, name)
            if (self.kind == kind) != (value is not None):
                raise ValueError(
                    f"{name} must be given for a {kind} claim, and for no other, got {value} for {self.kind}"
                )
        budget = {"zcdp": self.rho, "gaussian": self.mu, "none": 1.0}.get(self.kind, self.epsilon)
        check_above({"zcdp": "rho", "gaussian": "mu"}.get(self.kind, "epsilon"), budget or 0.0, 0.0)
        in_epsilon = self.kind in ("pure", "approximate")
        if (self.epsilon < math.inf) != in_epsilon or budget == math.inf:
            raise ValueError(
                f"epsilon must be finite for pure and approximate claims, and infinite for others, got {self.epsilon} "
                f"for {self.kind}"
            )
        if not 0 <= check_number("delta", self.delta) < 1 or (
            self.delta > 0 and self.kind not in ("approximate", "none")
        ):
            raise ValueError(f"delta must be in [0, 1), and 0 for {self.kind} claims, got {self.delta}")
        for name, check in (("batch", check_count), ("local_epsilon", lambda name, value: check_epsilon(value))):
            value = getattr(self, name)
            if value is not None:
                if self.trust_model != "shuffle":
                    raise ValueError(f"{name} must be None outside the shuffle model, got {value}")
                check(name, value)
        if self.numerical_delta is not None and not 0 <= check_number("numerical_delta", self.numerical_delta) < 1:
            raise ValueError(f"numerical_delta must be in [0, 1) or None, got {self.numerical_delta}")
        view = _ADVERSARY_VIEW[self.trust_model] if self.adversary_view == _AS_TRUSTED else self.adversary_view
        view = view if isinstance(view, str) else frozenset(view)
        is_joint = self.trust_model == "joint"
        if isinstance(view, str) or not (view or is_joint):
            raise ValueError(f"adversary_view must be a list of some of {', '.join(SEEN)}, got {view!r}")
        for part in view:
            check_choice(
                "adversary_view in the joint model" if is_joint else "adversary_view",
                part,
                SEEN[-1:] if is_joint else SEEN,
            )
        object.__setattr__(self, "adversary_view", view)
        if self.sensitive_fields is not None:
            if isinstance(self.sensitive_fields, str):
                raise ValueError(f"sensitive_fields must be a list of names, got {self.sensitive_fields!r}")
            object.__setattr__(self, "sensitive_fields", tuple(sorted(set(self.sensitive_fields))))
        # Plain numbers, so that equal claims have equal texts for any type of their budget.
        for name in ("epsilon", "delta", "rho", "mu", "batch", "local_epsilon", "numerical_delta"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, int(value) if name == "batch" else float(value))

    @classmethod
    def pure(cls, epsilon: float, **about: Any) -> "Guarantee":
        """Returns an epsilon-DP claim.

        Args:
            epsilon: in (0, inf]; at infinity the result claims nothing.
            **about: trust_model, privacy_unit, argument, and any other attributes.
        """
        return cls.approximate(epsilon, 0.0, **about)

    @classmethod
    def approximate(cls, epsilon: float, delta: float, **about: Any) -> "Guarantee":
        """Returns an (epsilon, delta)-DP claim.

        Args:
            epsilon: in (0, inf]; at infinity the result claims nothing.
            delta: in [0, 1); at 0 the result is a pure claim.
            **about: trust_model, privacy_unit, argument, and any other attributes.
        """
        kind = "none" if check_epsilon(epsilon) == math.inf else "approximate" if delta else "pure"
        return cls(kind=kind, epsilon=float(epsilon), delta=delta, **about)

    @classmethod
    def zcdp(cls, rho: float, **about: Any) -> "Guarantee":
        """Returns a rho-zCDP claim: every Rényi divergence of order a > 1 is at most rho * a (Bun & Steinke, 2016).

        Args:
            rho: in (0, inf]; at infinity the result claims nothing.
            **about: trust_model, privacy_unit, argument, and any other attributes.
        """
        return cls.none(**about) if check_above("rho", rho, 0.0) == math.inf else cls(kind="zcdp", rho=rho, **about)

    @classmethod
    def gaussian(cls, mu: float, **about: Any) -> "Guarantee":
        """Returns a mu-GDP claim (Dong, Roth & Su, 2022).

        Two neighbours are no easier to distinguish than N(0, 1) from N(mu, 1).

        Args:
            mu: in (0, inf]; at infinity the result claims nothing.
            **about: trust_model, privacy_unit, argument, and any other attributes.
        """
        return cls.none(**about) if check_above("mu", mu, 0.0) == math.inf else cls(kind="gaussian", mu=mu, **about)

    @classmethod
    def none(cls, **about: Any) -> "Guarantee":
        """Returns a guarantee that claims nothing, for a non-private algorithm or an infinite budget."""
        return cls(kind="none", **about)

    @property
    def is_private(self) -> bool:
        """Whether the guarantee claims any privacy."""
        return self.kind != "none"

    def __repr__(self) -> str:
        return shorten(f"Guarantee({self})")

    def _repr_html_(self) -> str:
        return page(str(self), "guarantee", guarantee_rows(self))

    def __str__(self) -> str:
        delta = self.numerical_delta if self.is_private else None
        rounding = f" (rounding: delta {rounded_up(delta, 1)})" if delta else ""
        return f"{budget_text(self)}{rounding}, {self.trust_model}, {self.privacy_unit}"

    @property
    def arithmetic(self) -> str:
        """A text on the effect of rounding (unknown, at most `numerical_delta`, or none), or "no claim"."""
        if not self.is_private:
            return "no claim"
        if self.numerical_delta is None:
            return "up to floating point: no bound on what rounding adds is stated"
        return (
            f"rounding adds at most {rounded_up(self.numerical_delta, 3)} to delta" if self.numerical_delta else "exact"
        )

    def epsilon_at(self, delta: float) -> float:
        """Returns the smallest epsilon for which the claim is known to imply (epsilon, delta)-DP.

        Args:
            delta: in [0, 1). The delta of rounding, `numerical_delta`, is not included; add it to get the total delta.

        Returns:
            epsilon in [0, inf]. For a pure claim this is the claim's epsilon. For an approximate claim it is the
            claim's epsilon if delta is at least the claim's delta, and infinity otherwise. For zCDP it is the infimum
            over Rényi orders, and for a Gaussian claim the exact value; both are rounded up slightly. It is infinity
            for zCDP and Gaussian claims at delta = 0, and for a guarantee that claims nothing.

        Raises:
            ValueError: if delta lies outside [0, 1).

        Source:
            Canonne, Kamath & Steinke (2020), Corollary 13, for zCDP; Balle & Wang (2018), Theorem 8, for GDP.
        """
        if not check_at_least("delta", delta, 0.0) < 1:
            raise ValueError(f"delta must be < 1, got {delta}")
        if self.kind in ("pure", "approximate"):
            return self.epsilon if delta >= self.delta else math.inf
        if delta == 0 or not self.is_private:
            return math.inf
        if self.rho is not None:
            return zcdp_epsilon(self.rho, delta)
        assert self.mu is not None
        return gaussian_epsilon(delta, 1.0, self.mu)

    def compose(self, other: "Guarantee", *, delta: float | None = None) -> "Guarantee":
        """Returns the guarantee for releasing the results of two mechanisms, by adaptive composition.

        For two claims of the same kind, epsilons and deltas add up, or rhos add up, or mus give sqrt(mu_1^2 + mu_2^2).
        In a pair with a zCDP claim, a pure claim counts as rho = epsilon^2 / 2 and a Gaussian claim as rho = mu^2 / 2.
        Every other pair is composed as (epsilon, delta). The second mechanism may depend on the result of the first,
        but its budget must not. If you choose budgets after seeing results, use a `jaxdp.Ledger`.

        Args:
            other: the guarantee of the other release, on the same data.
            delta: the delta at which a zCDP or Gaussian claim is converted to (epsilon, delta), for pairs that need the
                conversion. It is added to the delta of the other claim.

        Returns:
            The guarantee of the pair. Its `adversary_view` contains the parts that both views have in common. The
            result claims nothing if the sum of deltas reaches 1, the budget overflows, or either guarantee claims
            nothing. Local epsilons add up; the sum is None if one of them is None. Numerical deltas add up; the sum is
            None if one of them is None or if it reaches 1.

        Raises:
            ValueError: if other is not a `Guarantee`; if the two differ in trust model, unit, privacy unit, adjacency,
                sensitive fields or batch; if their views have no part in common (except in the joint model); or if
                delta is needed, and is missing or outside (0, 1).

        Source:
            Dwork & Roth (2014), Theorem 3.16; Bun & Steinke (2016), Lemma 1.7 and Proposition 1.4; Dong, Roth & Su
            (2022), Corollary 3.3.
        """
        return compose_claims(self, other, delta)

    def at_user_level(self, units: int, *, privacy_unit: str) -> "Guarantee":
        """Returns the claim for a person who contributes several privacy units, which may all change at once.

        Let k = units. In the local model each unit is sent in a separate report, whose distribution depends on that
        unit and on earlier releases. The k reports of a person compose adaptively: epsilon, delta and rho are
        multiplied by k, and mu by sqrt(k). In all other models one mechanism reads all k units. A chain of k + 1
        inputs, in which consecutive inputs differ in one unit, gives k epsilon, k^2 rho or k mu. The delta becomes the
        sum of delta * e^(i epsilon) over i < k, which is delta * (e^(k epsilon) - 1) / (e^epsilon - 1). In the shuffle
        model `local_epsilon` then covers all reports of the person and is k times as large.

        Args:
            units: the maximum number of units of one person, >= 1.
            privacy_unit: the name of the person's data, for example "one voter".

        Returns:
            The guarantee of replacing one person. It claims nothing if delta reaches 1, the budget overflows, or this
            guarantee claims nothing. `numerical_delta` is multiplied by the same factor as delta, and becomes None if
            it reaches 1. Outside the local model a `numerical_delta` above 0 also becomes None for units > 1 if this
            guarantee has no epsilon (zCDP, Gaussian or none).

        Raises:
            ValueError: if units is not an integer >= 1, or the claim is already for a person.

        Source:
            Composition: see `compose`. Groups: Dwork & Roth (2014), Theorem 2.2; with a delta, the same chain
            (Vadhan, 2017, Lemma 2.2); Bun & Steinke (2016), Proposition 1.9; Dong, Roth & Su (2022), Theorem 2.14.

        Examples:
            >>> about = {"privacy_unit": "one duel's outcome", "argument": "noise"}
            >>> print(Guarantee.zcdp(0.1, trust_model="central", **about).at_user_level(3, privacy_unit="one voter"))
            0.9-zCDP, central, one voter
        """
        return at_user_level(self, units, privacy_unit)

    def to_dp_event(self, *, accountant: str = "pld", delta_apart: bool = False) -> Any:
        """Returns the claim as an event for dp-accounting's accountants (`pip install 'jaxdp[accounting]'`).

        The event describes the worst pair of neighbours. Compose it once for each run of the algorithm, in one call or
        in several. Use an accountant based on privacy loss distributions (PLD) for `ADD_OR_REMOVE_ONE`, or on Rényi
        divergences (RDP) for `REPLACE_ONE`. The accountants give, for each kind:

        * pure: PLD gives the epsilon of the worst composition of mechanisms with this claim, RDP an upper bound. The
          accountant other than `accountant` rejects the event.
        * zcdp: RDP gives about `epsilon_at`, because it tries few orders. PLD accountants reject the event.
        * gaussian: PLD gives `epsilon_at`, RDP an upper bound. PLD accountants for `REPLACE_ONE` double the
          sensitivity, which is safe but not tight.
        * approximate (most shuffle claims are): dp-accounting has no event with a delta. With `delta_apart=True` the
          event covers only epsilon. Subtract the sum of these claims' deltas from the delta that you pass to the
          accountant.
        * none: a non-private event.

        Args:
            accountant: "pld" or "rdp", the accountant that composes the event. Events of pure and approximate claims
                depend on it.
            delta_apart: whether you account for the delta of an approximate claim yourself. If False, such a claim
                raises a ValueError.

        Returns:
            A `dp_accounting.DpEvent`.

        Raises:
            ValueError: if accountant is unknown, delta_apart is not a bool, or a private claim has a delta > 0 and
                delta_apart is False.
            ImportError: if dp-accounting is not installed.

        Examples:
            >>> about = {"trust_model": "central", "privacy_unit": "one record", "argument": "noise"}
            >>> Guarantee.gaussian(0.5, **about).to_dp_event()
            GaussianDpEvent(noise_multiplier=2.0)
            >>> Guarantee.pure(0.5, **about).to_dp_event()
            DiscreteLaplaceDpEvent(noise_parameter=0.5, sensitivity=1)
        """
        check_choice("accountant", accountant, ("pld", "rdp"))
        return dp_event(self, accountant=accountant, delta_apart=check_flag("delta_apart", delta_apart))

    def to_dict(self) -> dict[str, Any]:
        """Returns the claim as a dict for JSON, for provenance. Infinity becomes "inf", as JSON has no infinity.

        The key "unit" is omitted if its value is "record", so that files equal the files of earlier versions.
        """
        values = {
            **dataclasses.asdict(self),
            "adversary_view": sorted(self.adversary_view),
            "sensitive_fields": None if self.sensitive_fields is None else list(self.sensitive_fields),
        }
        return {
            name: "inf" if isinstance(value, float) and math.isinf(value) else value
            for name, value in values.items()
            if (name, value) != ("unit", "record")
        }


def claim_from_dict(values: Mapping[str, Any]) -> Guarantee:
    """Restores a claim from the result of `Guarantee.to_dict`."""
    fields: dict[str, Any] = dict(values)
    for name in ("epsilon", "local_epsilon"):  # a text may be "inf", too
        if fields.get(name) == "inf":
            fields[name] = math.inf
    return Guarantee(**fields)
