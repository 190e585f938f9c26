"""What differential privacy costs, in regret or estimation error, by Monte Carlo with error bars.

>>> import jaxdp
>>> claim = jaxdp.estimation.debiased_rr().guarantee(epsilon=0.5)
>>> claim.epsilon, claim.trust_model, claim.privacy_unit
(0.5, 'local', 'one label')
"""

from jaxdp import estimation, mechanisms, preferences, random
from jaxdp.learner import Environment, Estimator, Guarantee, Learner, Problem, Sample, State
from jaxdp.simulation import Run, estimation_run, sweep

__all__ = [
    "Environment",
    "Estimator",
    "Guarantee",
    "Learner",
    "Problem",
    "Run",
    "Sample",
    "State",
    "estimation",
    "estimation_run",
    "mechanisms",
    "preferences",
    "random",
    "sweep",
]
