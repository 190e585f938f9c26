"""A study of bandits, duels or experts warns of a delta above one over its rounds, for learners that take a delta."""

import warnings
from functools import partial
from importlib import import_module
from itertools import product

import jax
import numpy as np
import pytest

from jaxdp.preferences import Ballots
from jaxdp.studies import comparison
from jaxdp.studies.arguments import fixed_delta

SENTENCE = "delta should be far below 1 / 200, one over the number of records, got 0.5"
LOSSES = np.random.default_rng(0).uniform(size=(200, 3))
BALLOTS = Ballots(("a", "b"), (((0,), (1,)), ((1,), (0,))), (120, 80))
STUDIES = {  # the arguments beside delta, and learners: one that takes a delta, one that does not
    "dueling_regret": ({"horizon": 200}, ("ebs_elimination_gaussian", "rucb")),
    "dueling_trust": ({"horizon": 200, "num_arms": (2,)}, ("ebs_shuffle", "rucb")),
    "dueling_ballots": ({"ballots": BALLOTS, "largest": 400.0}, ("ebs_shuffle", "rucb")),
    "trust_models": ({"horizon": 200}, ("tsallis_inf_gaussian", "tsallis_inf")),
    "ldp_linear": ({"horizon": 200, "dim": (2,)}, ("gaussian", "ball")),
    "tracking_regret": ({"horizon": (200,), "num_switches": (3,)}, ("counter_weights", "svt_restarts")),
    "tracking_separation": ({"horizon": (200,)}, ("counter_weights", "svt_restarts")),
    "tracking_your_losses": ({"losses": LOSSES}, ("counter_weights", "svt_restarts")),
}


class BuiltError(Exception):
    """Ends a study once its runs are built."""


def build_all(build, *, static_axes, **_):
    for values in product(*static_axes.values()):
        build(**dict(zip(static_axes, values, strict=True)))
    raise BuiltError


def said(name, monkeypatch, learner, **delta):
    arguments, _ = STUDIES[name]
    module = import_module(f"jaxdp.studies.{name}")
    for each in (comparison, module):
        monkeypatch.setattr(each, "sweep", build_all, raising=each is comparison)
    study = partial(getattr(module, name), **arguments, **delta, num_seeds=200, key=jax.random.key(0))
    with warnings.catch_warnings(record=True, action="always") as caught, pytest.raises(BuiltError):
        study(learner=(learner,))
    return [str(warning.message) for warning in caught if "delta" in str(warning.message)]


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_warns_of_a_large_delta(name, monkeypatch):
    takes, pure = STUDIES[name][1]
    messages = said(name, monkeypatch, takes, delta=0.5)
    assert messages
    assert all(message.startswith(SENTENCE) for message in messages)
    assert not said(name, monkeypatch, takes)
    assert not said(name, monkeypatch, pure, delta=0.5)


def test_a_learner_without_delta_gets_none():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fixed_delta(("epsilon",), 0.5, 100) == {}
        assert fixed_delta(("epsilon", "delta"), 0.01, 100) == {"delta": 0.01}
