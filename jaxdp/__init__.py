"""What differential privacy costs, in regret or estimation error, by Monte Carlo with error bars.

>>> import jaxdp
>>> claim = jaxdp.estimation.debiased_rr().guarantee(epsilon=0.5)
>>> claim.epsilon, claim.trust_model, claim.privacy_unit
(0.5, 'local', 'one label')
"""

import importlib
from typing import TYPE_CHECKING, Any

from jaxdp import bandits, core, dueling, estimation, experts, mechanisms, preferences, random, theory
from jaxdp.core import Environment, Estimator, Guarantee, Learner, Problem, Sample, State
from jaxdp.simulation import Look, Run, estimation_run, log_spaced, open, replay, simulator, sweep

if TYPE_CHECKING:  # imported when they are first used, below: `import jaxdp` stays quick, and needs no matplotlib
    from jaxdp import audit as audit
    from jaxdp import plotting as plotting
    from jaxdp import registry as registry
    from jaxdp import stats as stats
    from jaxdp import studies as studies
    from jaxdp import testing as testing
    from jaxdp.registry import register as register

__all__ = [
    "Environment",
    "Estimator",
    "Guarantee",
    "Learner",
    "Look",
    "Problem",
    "Run",
    "Sample",
    "State",
    "bandits",
    "core",
    "dueling",
    "estimation",
    "estimation_run",
    "experts",
    "log_spaced",
    "mechanisms",
    "open",
    "preferences",
    "random",
    "replay",
    "simulator",
    "sweep",
    "theory",
]

_WHEN_USED = ("audit", "plotting", "registry", "stats", "studies", "testing")
_FORMER = ("interface", "learner")  # names of what is in `core` now


def __getattr__(name: str) -> Any:
    if name == "register":
        return importlib.import_module("jaxdp.registry").register
    if name in (*_WHEN_USED, *_FORMER):
        return importlib.import_module(f"jaxdp.{name}")
    raise AttributeError(f"module 'jaxdp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHEN_USED, "register"})
