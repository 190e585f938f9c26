"""Privacy claims, and how they add up."""

import json
import math
from typing import Any

import jax
import numpy as np
import pytest
from scipy.stats import norm

from jaxdp import Guarantee
from jaxdp.audit import Attack, audit
from jaxdp.core import guarantee_for
from jaxdp.core.guarantee import claim_from_dict
from jaxdp.mechanisms import gaussian, gaussian_delta, zcdp_epsilon
from jaxdp.registry import ESTIMATORS, LEARNERS

ABOUT: dict[str, Any] = {"trust_model": "central", "privacy_unit": "one label", "argument": "noise"}
MAKERS = {
    "pure": Guarantee.pure(0.5, **ABOUT),
    "approximate": Guarantee.approximate(0.5, 1e-3, **ABOUT),
    "zcdp": Guarantee.zcdp(0.1, **ABOUT),
    "gaussian": Guarantee.gaussian(0.3, **ABOUT),
    "none": Guarantee.none(**ABOUT),
}


def test_claims_as_text():
    assert [str(claim) for claim in MAKERS.values()] == [
        "0.5-DP, central, one label",
        "(0.5, 0.001)-DP, central, one label",
        "0.1-zCDP, central, one label",
        "0.3-GDP, central, one label",
        "no claim, central, one label",
    ]


@pytest.mark.parametrize("kind", MAKERS)
def test_kinds(kind):
    claim = MAKERS[kind]
    assert claim.kind == kind
    assert claim.is_private == (kind != "none")
    assert math.isinf(claim.epsilon) == (kind in ("zcdp", "gaussian", "none"))
    assert claim.delta == (1e-3 if kind == "approximate" else 0)


@pytest.mark.parametrize("make", [Guarantee.pure, Guarantee.zcdp, Guarantee.gaussian])
def test_an_infinite_budget_claims_nothing(make):
    claim = make(math.inf, **ABOUT)
    assert (claim.kind, claim.epsilon, claim.is_private) == ("none", math.inf, False)


def test_delta_zero_is_pure():
    assert Guarantee.approximate(0.5, 0.0, **ABOUT) == MAKERS["pure"]


# ---- other currencies ------------------------------------------------------------------------------------------------
def test_epsilon_at_a_delta():
    assert MAKERS["pure"].epsilon_at(0.0) == MAKERS["pure"].epsilon_at(0.1) == 0.5
    assert MAKERS["approximate"].epsilon_at(1e-3) == 0.5
    assert MAKERS["approximate"].epsilon_at(1e-4) == math.inf
    assert MAKERS["none"].epsilon_at(0.5) == math.inf
    for native in ("zcdp", "gaussian"):
        assert MAKERS[native].epsilon_at(0.0) == math.inf
    assert MAKERS["zcdp"].epsilon_at(1e-5) == zcdp_epsilon(0.1, 1e-5)


@pytest.mark.parametrize("mu", [0.01, 0.3, 5.0])
def test_a_gaussian_claim_is_the_mechanisms_own(mu):
    """Compares with the hockey-stick divergence of N(0, 1) and N(mu, 1), and the Gaussian mechanism's profile."""
    claim = Guarantee.gaussian(mu, **ABOUT)
    for delta in (1e-6, 1e-3):
        epsilon = claim.epsilon_at(delta)
        assert gaussian_delta(epsilon, 1 / mu) == pytest.approx(delta, rel=1e-6) or epsilon == 0
        if epsilon > 0:
            exact = norm.sf(epsilon / mu - mu / 2) - math.exp(epsilon) * norm.sf(epsilon / mu + mu / 2)
            assert exact == pytest.approx(delta, rel=1e-4)


@pytest.mark.parametrize("delta", [-0.1, 1.0, math.nan])
def test_a_delta_that_is_none(delta):
    with pytest.raises(ValueError, match=f"delta must be .*{delta}"):
        MAKERS["pure"].epsilon_at(delta)


# ---- composition -----------------------------------------------------------------------------------------------------
def test_one_kind_composes_in_its_currency():
    twice = {kind: claim.compose(claim) for kind, claim in MAKERS.items()}
    assert (twice["pure"].epsilon, twice["pure"].kind) == (1.0, "pure")
    assert (twice["approximate"].epsilon, twice["approximate"].delta) == (1.0, pytest.approx(2e-3))
    assert (twice["zcdp"].rho, twice["zcdp"].kind) == (pytest.approx(0.2), "zcdp")
    assert (twice["gaussian"].mu, twice["gaussian"].kind) == (pytest.approx(0.3 * math.sqrt(2)), "gaussian")
    assert twice["none"].kind == "none"
    assert twice["zcdp"].epsilon_at(1e-6) < 2 * MAKERS["zcdp"].epsilon_at(5e-7)


def test_a_pure_claim_beside_others():
    assert MAKERS["pure"].compose(MAKERS["zcdp"]).rho == pytest.approx(0.1 + 0.5**2 / 2)
    assert MAKERS["gaussian"].compose(MAKERS["zcdp"]).rho == pytest.approx(0.1 + 0.3**2 / 2)
    pair = MAKERS["pure"].compose(MAKERS["approximate"])
    assert (pair.epsilon, pair.delta) == (1.0, 1e-3)
    assert MAKERS["none"].compose(MAKERS["pure"]).kind == MAKERS["pure"].compose(MAKERS["none"]).kind == "none"


@pytest.mark.parametrize(
    ("first", "second"), [("pure", "gaussian"), ("approximate", "zcdp"), ("gaussian", "approximate")]
)
def test_what_needs_a_delta(first, second):
    one, other = MAKERS[first], MAKERS[second]
    with pytest.raises(ValueError, match="delta must be given to compose"):
        one.compose(other)
    pair = one.compose(other, delta=1e-6)
    deltas = [1e-6 if kind in ("zcdp", "gaussian") else MAKERS[kind].delta for kind in (first, second)]
    assert pair.delta == pytest.approx(sum(deltas))
    assert pair.epsilon == sum(claim.epsilon_at(d) for claim, d in zip((one, other), deltas, strict=True))


def test_what_is_said_of_a_pair():
    pair = MAKERS["pure"].compose(Guarantee.pure(0.25, **{**ABOUT, "argument": "other noise"}))
    assert (pair.trust_model, pair.privacy_unit, pair.adjacency) == ("central", "one label", "replace-one")
    assert "noise" in pair.argument
    assert "other noise" in pair.argument


def test_deltas_that_reach_one_claim_nothing():
    half = Guarantee.approximate(0.5, 0.5, **ABOUT)
    pair = half.compose(half)
    assert (pair.epsilon, pair.is_private) == (math.inf, False)
    assert half.compose(Guarantee.approximate(0.5, 0.25, **ABOUT)).delta == 0.75


@pytest.mark.parametrize(
    "other",
    [
        {"trust_model": "local"},
        {"privacy_unit": "one user"},
        {"adjacency": "add-or-remove-one"},
        {"sensitive_fields": ("reward",)},
    ],
)
def test_claims_about_different_things_do_not_compose(other):
    name, value = next(iter(other.items()))
    with pytest.raises(ValueError, match=f"{name} must be the same") as error:
        MAKERS["pure"].compose(Guarantee.pure(0.5, **{**ABOUT, **other}))
    assert repr(value) in str(error.value)


def test_a_shuffled_claim():
    about = {**ABOUT, "trust_model": "shuffle"}
    claim = Guarantee.approximate(0.5, 1e-6, batch=100, local_epsilon=2.0, **about)
    assert (claim.batch, claim.local_epsilon, claim.compose(claim).local_epsilon) == (100, 2.0, 4.0)
    for name, value in (("batch", 0), ("local_epsilon", -1.0)):
        with pytest.raises(ValueError, match=f"{'epsilon' if 'epsilon' in name else name} must be .*{value}"):
            Guarantee.pure(0.5, **{**about, name: value})
    with pytest.raises(ValueError, match="batch must be None outside the shuffle model, got 3"):
        Guarantee.pure(0.5, batch=3, **ABOUT)


def test_what_may_be_logged():
    assert MAKERS["pure"].adversary_view == {"action", "public"}
    assert Guarantee.pure(0.5, **{**ABOUT, "trust_model": "local"}).adversary_view == {"report", "action", "public"}
    contextual = Guarantee.pure(
        0.5, **{**ABOUT, "trust_model": "local"}, adversary_view=("report", "public"), sensitive_fields=["x"]
    )
    assert (contextual.adversary_view, contextual.sensitive_fields) == ({"report", "public"}, ("x",))
    assert Guarantee.pure(0.5, **ABOUT, adversary_view=iter(["action"])).adversary_view == {"action"}  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="adversary_view must be one of report, action, public, got 'context'"):
        Guarantee.pure(0.5, **ABOUT, adversary_view=("context",))
    for adversary_view in ((), "report"):  # nothing at all is not the default
        with pytest.raises(ValueError, match="adversary_view must be a list of some of report, action, public, got"):
            Guarantee.pure(0.5, **ABOUT, adversary_view=adversary_view)  # pyright: ignore[reportArgumentType]
    joint = {**ABOUT, "trust_model": "joint"}
    assert Guarantee.pure(0.5, **joint).adversary_view == {"public"}
    assert (
        Guarantee.pure(0.5, **joint, adversary_view=()).compose(Guarantee.pure(0.5, **joint)).adversary_view
        == frozenset()
    )
    for adversary_view in ("action", "report"):  # a user's own ones follow that user's data
        with pytest.raises(
            ValueError, match=f"adversary_view in the joint model must be one of public, got '{adversary_view}'"
        ):
            Guarantee.pure(0.5, **joint, adversary_view=("public", adversary_view))
    with pytest.raises(ValueError, match="sensitive_fields must be a list of names, got 'context'"):
        Guarantee.pure(0.5, **ABOUT, sensitive_fields="context")


def test_the_order_of_sensitive_fields_does_not_matter():
    first, second = (Guarantee.pure(0.5, **ABOUT, sensitive_fields=names) for names in (["b", "a"], ["a", "b", "a"]))
    assert first == second == claim_from_dict(first.to_dict())
    assert first.compose(second).sensitive_fields == ("a", "b")


def test_a_text_may_be_inf():
    unbounded = Guarantee.none(trust_model="shuffle", privacy_unit="inf", argument="inf", local_epsilon=math.inf)
    for claim in (unbounded, Guarantee.pure(0.5, **{**ABOUT, "privacy_unit": "inf", "adjacency": "inf"})):
        assert claim_from_dict(json.loads(json.dumps(claim.to_dict()))) == claim


def test_a_pair_may_be_logged_where_both_may():
    about = {**ABOUT, "trust_model": "local"}
    everything, contextual = (
        Guarantee.pure(0.5, **about),
        Guarantee.pure(0.5, **about, adversary_view=("report", "public")),
    )
    assert (
        everything.compose(contextual).adversary_view
        == contextual.compose(everything).adversary_view
        == {"report", "public"}
    )
    with pytest.raises(ValueError, match="adversary_view must have a part in common"):
        contextual.compose(Guarantee.pure(0.5, **about, adversary_view=("action",)))


@pytest.mark.parametrize("budget", ["pure", "zcdp", "gaussian"])
def test_a_budget_that_overflows_claims_nothing(budget):
    huge, small = getattr(Guarantee, budget)(1e300, **ABOUT), MAKERS["zcdp"]
    if budget != "zcdp":
        assert huge.compose(small).kind == "none"
    if budget == "gaussian":
        assert huge.compose(MAKERS["approximate"], delta=1e-6).kind == "none"


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("epsilon must be > 0, got 0", lambda: Guarantee.pure(0.0, **ABOUT)),
        ("epsilon must be > 0, got nan", lambda: Guarantee.pure(math.nan, **ABOUT)),
        (r"delta must be in \[0, 1\).*1.0", lambda: Guarantee.approximate(0.5, 1.0, **ABOUT)),
        (r"delta must be in \[0, 1\).*-0.1", lambda: Guarantee.approximate(0.5, -0.1, **ABOUT)),
        ("delta must be finite, got nan", lambda: Guarantee.approximate(0.5, math.nan, **ABOUT)),
        ("delta must be a number, got 'a'", lambda: Guarantee.approximate(1.0, "a", **ABOUT)),  # pyright: ignore
        ("privacy_unit must be a text, got 3", lambda: MAKERS["pure"].at_user_level(2, privacy_unit=3)),  # pyright: ignore
        ("other must be a jaxdp.Guarantee, got int", lambda: MAKERS["pure"].compose(3)),  # pyright: ignore
        ("rho must be > 0, got -1", lambda: Guarantee.zcdp(-1.0, **ABOUT)),
        ("mu must be > 0, got nan", lambda: Guarantee.gaussian(math.nan, **ABOUT)),
        ("trust_model must be .*trusted", lambda: Guarantee.pure(0.5, **{**ABOUT, "trust_model": "trusted"})),
        ("kind must be .*rdp", lambda: Guarantee(kind="rdp", **ABOUT)),
        ("rho must be given", lambda: Guarantee(kind="zcdp", **ABOUT)),
        ("mu must be given", lambda: Guarantee(kind="pure", epsilon=1.0, mu=1.0, **ABOUT)),
        ("epsilon must be finite", lambda: Guarantee(kind="pure", **ABOUT)),
        ("epsilon must be finite", lambda: Guarantee(kind="none", epsilon=1.0, **ABOUT)),
        ("delta must be .* 0 for pure", lambda: Guarantee(kind="pure", epsilon=1.0, delta=0.1, **ABOUT)),
    ],
)
def test_a_wrong_claim(name, make):
    with pytest.raises(ValueError, match=name):
        make()


def test_a_claim_as_plain_values():
    values = json.loads(json.dumps(MAKERS["zcdp"].to_dict(), allow_nan=False))
    assert values == {
        **ABOUT,
        "kind": "zcdp",
        "epsilon": "inf",
        "delta": 0.0,
        "rho": 0.1,
        "mu": None,
        "adjacency": "replace-one",
        "adversary_view": ["action", "public"],
        "sensitive_fields": None,
        "batch": None,
        "local_epsilon": None,
        "numerical_delta": None,
    }


def test_numbers_of_any_type_are_plain():
    budget: Any = np.float32(0.25)
    about = {**ABOUT, "trust_model": "shuffle"}
    for claim, plain in (
        (Guarantee.zcdp(budget, **ABOUT), Guarantee.zcdp(0.25, **ABOUT)),
        (Guarantee.gaussian(budget, **ABOUT), Guarantee.gaussian(0.25, **ABOUT)),
        (Guarantee.approximate(1, budget, **ABOUT), Guarantee.approximate(1.0, 0.25, **ABOUT)),
        (
            Guarantee.pure(budget, batch=np.int64(3), local_epsilon=budget, **about),
            Guarantee.pure(0.25, batch=3, local_epsilon=0.25, **about),
        ),
    ):
        assert json.dumps(claim.to_dict()) == json.dumps(plain.to_dict())


# ---- where claims are used -------------------------------------------------------------------------------------------
def test_a_guarantee_takes_what_params_takes():
    def params(*, epsilon, rate=0.5):
        if not 0 < rate < 1:
            raise ValueError(f"rate must be in (0, 1), got {rate}")

    guarantee = guarantee_for(params, lambda epsilon: Guarantee.pure(epsilon, **ABOUT))
    assert guarantee(epsilon=0.5, rate=0.1) == MAKERS["pure"]
    with pytest.raises(ValueError, match="rate must be"):
        guarantee(epsilon=0.5, rate=2.0)
    with pytest.raises(TypeError):
        guarantee(epsilon=0.5, pace=2.0)
    with pytest.raises(ValueError, match="claim must only need values that params takes, epsilon, rate, got delta"):
        guarantee_for(params, lambda epsilon, delta: MAKERS["pure"])


@pytest.mark.parametrize("name", [*LEARNERS, *ESTIMATORS])
def test_registered_claims_know_their_kind(name):
    entry = (LEARNERS | ESTIMATORS)[name]
    claim = entry.make().guarantee(**entry.values)
    with_delta = "zcdp" if claim.rho is not None else "approximate"
    expected = "none" if "epsilon" not in entry.values else with_delta if "delta" in entry.values else "pure"
    assert claim.kind == ("none" if name == "literal_objective_perturbation" else expected)


@pytest.mark.parametrize("native", ["zcdp", "gaussian"])
def test_a_claim_without_an_epsilon_is_attacked(native):
    """Checks that noise of standard deviation 1 is 1/2-zCDP and 1-GDP; a tenth of either budget is refuted."""

    make, budget = (Guarantee.zcdp, 0.5) if native == "zcdp" else (Guarantee.gaussian, 1.0)

    def release(key, params, data):
        return gaussian(key, data, params, l2_sensitivity=1.0)

    def verdict(share):
        claim = make(share * budget, **ABOUT)
        attack = Attack(release, np.float32(1), (np.zeros(1, np.float32), np.ones(1, np.float32)), claim)
        return audit(jax.random.key(5), attack, trials=20_000).verdict

    assert (verdict(1.0), verdict(0.1)) == ("consistent", "violated")


def test_what_arithmetic_adds_to_delta():
    exact, drifts = (Guarantee.pure(0.5, **ABOUT, numerical_delta=delta) for delta in (0, 1e-10))
    unknown = Guarantee.pure(0.5, **ABOUT)
    assert (unknown.numerical_delta, exact.numerical_delta) == (None, 0.0)
    assert [claim.arithmetic for claim in (unknown, exact, drifts, Guarantee.none(**ABOUT))] == [
        "up to floating point: no bound on what rounding adds is stated",
        "exact",
        "rounding adds at most 1e-10 to delta",
        "no claim",
    ]
    assert str(drifts) == "0.5-DP (rounding: delta 1e-10), central, one label"
    more = Guarantee.pure(0.5, **ABOUT, numerical_delta=1.4901e-9)
    assert "delta 2e-09)" in str(more)  # a bound is rounded up
    assert more.arithmetic == "rounding adds at most 1.5e-09 to delta"
    assert str(exact) == str(unknown) == "0.5-DP, central, one label"
    assert drifts.to_dict()["numerical_delta"] == 1e-10
    for delta in (-1e-9, 1.0, math.nan):
        with pytest.raises(ValueError, match="numerical_delta must be"):
            Guarantee.pure(0.5, **ABOUT, numerical_delta=delta)


def test_what_arithmetic_adds_is_composed():
    exact, drifts = (Guarantee.pure(0.5, **ABOUT, numerical_delta=delta) for delta in (0, 1e-10))
    half, unknown = Guarantee.pure(0.5, **ABOUT, numerical_delta=0.5), Guarantee.pure(0.5, **ABOUT)
    pairs = ((exact, drifts, 1e-10), (drifts, drifts, 2e-10), (exact, unknown, None), (half, half, None))
    for one, other, expected in pairs:
        assert one.compose(other).numerical_delta == other.compose(one).numerical_delta == expected
    gaussian = Guarantee.gaussian(1.0, **ABOUT, numerical_delta=1e-10)
    assert gaussian.compose(drifts, delta=1e-3).numerical_delta == 2e-10
    local = Guarantee.pure(0.5, **{**ABOUT, "trust_model": "local"}, numerical_delta=1e-10)
    assert local.at_user_level(3, privacy_unit="one voter").numerical_delta == pytest.approx(3e-10)
    group = drifts.at_user_level(3, privacy_unit="one voter").numerical_delta
    assert group == pytest.approx(1e-10 * (1 + math.exp(0.5) + math.exp(1)))
    assert [gaussian.at_user_level(k, privacy_unit="one voter").numerical_delta for k in (1, 2)] == [1e-10, None]
