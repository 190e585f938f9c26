"""Releases behind `branch` are read from programs, and the findings are the same as operation by operation."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp import registry
from jaxdp.audit import full_information, grey_box, noise_distributions, replay
from jaxdp.audit.decided import Undecided, with_decisions
from jaxdp.core import State
from jaxdp.mechanisms import laplace
from jaxdp.mechanisms.branches import branch
from tests.audit import small_learners as small

ROUNDS = 6


def audit_small(learner):
    options = {"rounds": ROUNDS, "num_neighbours": 8, "answer": full_information}
    return grey_box(jax.random.key(0), learner, {"epsilon": 1.0}, small.draw_corners(2), **options)


def releases_in(rounds, flag_of=lambda public, report: public):
    """Releases the user's number in these rounds, behind one branch for each of them."""

    def update(key, params, state, report):
        noisy = jnp.zeros(())
        for number, round_ in enumerate(rounds):
            key_release = jax.random.fold_in(key, number)
            noisy += branch(
                flag_of(state.public[0], report) == round_,
                lambda key=key_release: laplace(key, report[0], params, l1_sensitivity=1.0),
                lambda: jnp.zeros(()),
            )
        return State((), (state.public[0] + 1, noisy))

    return small.curator(update, lambda: State((), (jnp.int32(0), jnp.zeros(()))))


def refuse_eager_steps(monkeypatch):
    def refuse():
        raise AssertionError("a step ran operation by operation")

    monkeypatch.setattr(jax, "disable_jit", refuse)


def test_a_branch_is_that_of_jax():
    sides = (lambda x: x + 1), (lambda x: x - 1)
    for flag in (True, False):
        assert jax.jit(lambda flag: branch(flag, *sides, 5))(flag) == jax.lax.cond(flag, *sides, 5)


def test_a_program_returns_the_flag_of_its_first_undecided_branch():
    def function(x):
        larger = branch(x > 1, lambda: x * 10, lambda: x)
        return branch(larger > 15, lambda: larger + 1, lambda: larger - 1)

    for x, flags in ((2.0, (True, True)), (1.5, (True, False)), (0.5, (False, False))):
        for known in range(2):
            result = jax.jit(with_decisions(function, flags[:known]))(x)
            assert isinstance(result, Undecided)
            assert bool(result.flag) == flags[known]
        assert jax.jit(with_decisions(function, flags))(x) == function(x)


def test_constant_flags_need_no_decision():
    constant: Any = np.bool_(True)
    assert jax.jit(with_decisions(lambda x: branch(constant, lambda: x, lambda: -x), ()))(3.0) == 3.0


def test_findings_are_those_without_programs(monkeypatch):
    entry = registry.LEARNERS["explore_then_commit"]
    options = {"rounds": 13, "num_bases": 2, "num_neighbours": 8, "answer": entry.users_answer}

    def audit():
        return grey_box(jax.random.key(0), entry.make(), entry.values, entry.make_user, **options)

    with monkeypatch.context() as patched:
        refuse_eager_steps(patched)
        compiled = audit()
    for module in (replay, noise_distributions):
        monkeypatch.setattr(module, "MOST_DECISIONS", -1)
    eager = audit()
    assert compiled.sites
    assert [(one.site, one.declared, one.drawn) for one in compiled.sites] == [
        (one.site, one.declared, one.drawn) for one in eager.sites
    ]
    assert [one.measured for one in compiled.sites] == pytest.approx([one.measured for one in eager.sites], rel=1e-5)
    assert compiled.spent == pytest.approx(eager.spent, rel=1e-5)
    assert (compiled.faults, compiled.notes) == (eager.faults, eager.notes)


def test_each_outcome_has_a_program_of_its_own(monkeypatch):
    refuse_eager_steps(monkeypatch)
    result = audit_small(releases_in((1, 4)))
    assert [one.site for one in result.sites] == ["laplace in update"]
    assert result.spent == pytest.approx(1.0)


def test_steps_with_too_many_branches_run_operation_by_operation(monkeypatch):
    for module in (replay, noise_distributions):
        monkeypatch.setattr(module, "MOST_DECISIONS", 1)
    result = audit_small(releases_in((-1, 0)))
    assert result.spent == pytest.approx(1.0)
    refuse_eager_steps(monkeypatch)
    with pytest.raises(AssertionError, match="operation by operation"):
        audit_small(releases_in((-1, 0)))


def test_a_branch_on_private_data_is_refused():
    with pytest.raises(ValueError, match="not behind a branch on private data"):
        audit_small(releases_in((1,), lambda public, report: report[0]))
