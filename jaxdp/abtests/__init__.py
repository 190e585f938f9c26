"""Plans and evaluates tests of two arms on private bits: how many users does a lift take at this epsilon?

`abtest` answers for randomized-response reports (`trust="local"`) and for noisy counts of a curator
(`trust="central"`), for a test that looks once and for one that may stop at any look. `plan.test(...)` is the rule that
evaluates the collected reports or releases.

>>> import jaxdp
>>> plan = jaxdp.abtest(rate=0.02, lift=0.1, epsilon=1.0, trust="local")
>>> plan.needs.fixed
7387620
"""

from jaxdp.abtests._plan import Plan, abtest
from jaxdp.abtests._rules import AnytimeCentral, AnytimeLocal, FixedTest, Verdict
from jaxdp.abtests._simulation import Needs, Stopping

__all__ = ["AnytimeCentral", "AnytimeLocal", "FixedTest", "Needs", "Plan", "Stopping", "Verdict", "abtest"]
