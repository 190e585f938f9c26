"""Every registered mechanism, estimator and learner passes the structural checks of its contract."""

import pytest

from jaxdp.registry import ESTIMATORS, LEARNERS, MECHANISMS
from jaxdp.testing import checks_of
from jaxdp.testing.checks import STRUCTURE, run_checks


@pytest.mark.always
@pytest.mark.parametrize("name", [*MECHANISMS, *ESTIMATORS, *LEARNERS])
def test_structure(name):
    run_checks([check for check in checks_of(name) if check.kind == STRUCTURE])
