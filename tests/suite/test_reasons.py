"""Why a learner does not play an instance: in plain words, from files of earlier versions, too."""

import re

import pytest

from jaxdp.suite import INSTANCES, _bench, _programs
from jaxdp.suite.v1 import FAMILIES

OWN = "jaxdp.bandits:ucb"


@pytest.mark.parametrize(
    ("name", "instance", "reason"),
    [
        ("ucb", "rewards.flat", "ucb must be an estimator to play rewards, got a learner"),
        ("mle", "arms.easy", "mle must be a learner to play arms, got an estimator"),
        ("ucb", "convex.quadratic", "ucb needs num_arms, which instances of convex do not have"),
        (OWN, "rewards.flat", f"{OWN} needs num_arms, which instances of rewards do not have"),
    ],
)
def test_a_learner_of_another_family_is_refused_in_plain_words(name, instance, reason):
    factory, variant = _programs.resolve(name)
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}$"):
        _bench._contestant(name, factory, variant, INSTANCES[instance], "round", True)


@pytest.mark.parametrize(
    ("stored", "printed"),
    [
        ("ValueError: feedback must be the same", "feedback must be the same"),
        ("TypeError: ucb() missing 1 required keyword-only argument: 'num_arms'", "ucb needs num_arms"),
        ("TypeError: f() missing 2 required keyword-only arguments: 'a' and 'b'", "f needs a and b"),
        (_bench._reason(ValueError("a must be > 0,\n got 0")), "a must be > 0, got 0"),
        (_bench._reason(TypeError("unsupported operand")), "TypeError: unsupported operand"),
    ],
)
def test_reasons_of_old_and_new_files_are_plain(stored, printed):
    assert _bench._plain(stored) == printed


def test_the_reason_of_each_family_is_printed(tmp_path):
    """Resumes a file of an earlier version, in which every instance has an entry."""
    family_reason = {"rewards": "TypeError: ucb() missing 1 required keyword-only argument: 'num_arms'"}
    skipped = {
        at: {"skipped": family_reason.get(instance.family, "ValueError: no")} for at, instance in INSTANCES.items()
    }
    played = {"metric": "pseudo_regret", "horizon": 100, "values": {}, "claims": {}}
    instances = skipped | dict.fromkeys([at for at in INSTANCES if at.startswith("arms.")], played)
    instances["arms.many"] = {"skipped": "ValueError: arms must be few, got 64"}
    path, lines = tmp_path / "ucb.json", []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            _bench,
            "_read",
            lambda path, head: head | {"proof": "", "instances": instances, "attack": {"arms.easy": {}}},
        )
        _bench.bench("ucb", path, quick=True, report=lines.append)
    assert lines == [
        "arms.many: not played: arms must be few, got 64",
        *(f"{family}: no instance fits: no" for family in sorted(set(FAMILIES) - {"arms", "rewards"})),
        "rewards: no instance fits: ucb needs num_arms",
    ]
