"""Private learning algorithms, their Monte Carlo simulation with error bars, and audits of their privacy claims.

>>> import jaxdp
>>> claim = jaxdp.estimation.debiased_rr().guarantee(epsilon=0.5)
>>> claim.epsilon, claim.trust_model, claim.privacy_unit
(0.5, 'local', 'one label')
"""

import importlib
from typing import TYPE_CHECKING, Any

# Names are imported when they are first used, so that `import jaxdp` and the command line's help load neither JAX nor
# SciPy. Type checkers and editors read the imports below. Each name is also listed in `_WHERE` or in `_MODULES`.
if TYPE_CHECKING:
    from jaxdp import abtests as abtests
    from jaxdp import audit as audit
    from jaxdp import bandits as bandits
    from jaxdp import comparisons as comparisons
    from jaxdp import core as core
    from jaxdp import design as design
    from jaxdp import dueling as dueling
    from jaxdp import estimation as estimation
    from jaxdp import experts as experts
    from jaxdp import mechanisms as mechanisms
    from jaxdp import plotting as plotting
    from jaxdp import preferences as preferences
    from jaxdp import random as random
    from jaxdp import registry as registry
    from jaxdp import stats as stats
    from jaxdp import studies as studies
    from jaxdp import suite as suite
    from jaxdp import testing as testing
    from jaxdp import theory as theory
    from jaxdp.abtests import abtest
    from jaxdp.comparisons import Comparison, compare
    from jaxdp.core import (
        Environment,
        Estimator,
        Guarantee,
        Learner,
        Ledger,
        Problem,
        Sample,
        State,
        Visits,
        batched,
        delayed,
    )
    from jaxdp.means_of_people import person_means
    from jaxdp.persons import per_person
    from jaxdp.registry import register as register
    from jaxdp.simulation import (
        Run,
        Snapshot,
        cache_compilations,
        claims,
        estimation_run,
        lane_keys,
        log_spaced,
        open,
        replay,
        simulator,
        sweep,
    )

    __version__: str

__all__ = [
    "Comparison",
    "Environment",
    "Estimator",
    "Guarantee",
    "Learner",
    "Ledger",
    "Problem",
    "Run",
    "Sample",
    "Snapshot",
    "State",
    "Visits",
    "abtest",
    "abtests",
    "bandits",
    "batched",
    "cache_compilations",
    "claims",
    "compare",
    "comparisons",
    "core",
    "delayed",
    "design",
    "dueling",
    "estimation",
    "estimation_run",
    "experts",
    "lane_keys",
    "log_spaced",
    "mechanisms",
    "open",
    "per_person",
    "person_means",
    "preferences",
    "random",
    "replay",
    "simulator",
    "sweep",
    "theory",
]

_MODULES = (
    "abtests",
    "audit",
    "bandits",
    "comparisons",
    "core",
    "design",
    "dueling",
    "estimation",
    "experts",
    "mechanisms",
    "plotting",
    "preferences",
    "random",
    "registry",
    "stats",
    "studies",
    "suite",
    "testing",
    "theory",
)
_WHERE = {
    "jaxdp.abtests": ("abtest",),
    "jaxdp.comparisons": ("Comparison", "compare"),
    "jaxdp.core": (
        "Environment",
        "Estimator",
        "Guarantee",
        "Learner",
        "Ledger",
        "Problem",
        "Sample",
        "State",
        "Visits",
        "batched",
        "delayed",
    ),
    "jaxdp.means_of_people": ("person_means",),
    "jaxdp.persons": ("per_person",),
    "jaxdp.registry": ("register",),
    "jaxdp.simulation": (
        "Snapshot",
        "Run",
        "cache_compilations",
        "claims",
        "estimation_run",
        "lane_keys",
        "log_spaced",
        "open",
        "replay",
        "simulator",
        "sweep",
    ),
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"jaxdp.{name}")
    if name in _MODULE_OF:
        value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    elif name == "__version__":
        value = _version()
    else:
        raise AttributeError(f"module 'jaxdp' has no attribute {name!r}")
    globals()[name] = value  # later look-ups do not call this function
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_MODULE_OF, "__version__"})


def _version() -> str:
    """Returns the installed version, which only pyproject.toml states."""
    from importlib import metadata

    try:
        return metadata.version("jaxdp")
    except metadata.PackageNotFoundError:  # a source tree that is not installed
        return "unknown"
