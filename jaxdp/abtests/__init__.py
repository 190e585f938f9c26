"""Plans and evaluates A/B tests on private bits: how many users are needed to detect a lift at this epsilon?

`abtest` plans a test of randomized-response reports (`trust="local"`) or of a curator's noisy counts
(`trust="central"`). It plans both a fixed test, which looks once at the data, and an anytime test, which may stop at
any look. `plan.test(...)` returns the rule that evaluates the collected reports or releases.

>>> import jaxdp
>>> plan = jaxdp.abtest(rate=0.02, lift=0.1, epsilon=1.0, trust="local")
>>> plan.needs.fixed
7387620
"""

from jaxdp.abtests._effects import Effect, Interval
from jaxdp.abtests._plan import Plan, abtest
from jaxdp.abtests._release import CentralRelease
from jaxdp.abtests._rules import AnytimeCentral, AnytimeLocal, FixedTest, Verdict
from jaxdp.abtests._simulation import Needs, Stopping

__all__ = [
    "AnytimeCentral",
    "AnytimeLocal",
    "CentralRelease",
    "Effect",
    "FixedTest",
    "Interval",
    "Needs",
    "Plan",
    "Stopping",
    "Verdict",
    "abtest",
]
