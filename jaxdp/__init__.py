"""What differential privacy costs, in regret or estimation error, by Monte Carlo with error bars.

>>> import jaxdp
>>> claim = jaxdp.estimation.debiased_rr().guarantee(epsilon=0.5)
>>> claim.epsilon, claim.trust_model, claim.privacy_unit
(0.5, 'local', 'one label')
"""

from jaxdp import bandits, dueling, estimation, experts, mechanisms, preferences, random, theory
from jaxdp.learner import Environment, Estimator, Guarantee, Learner, Problem, Sample, State
from jaxdp.simulation import Run, estimation_run, log_spaced, open, replay, simulator, sweep

__all__ = [
    "Environment",
    "Estimator",
    "Guarantee",
    "Learner",
    "Problem",
    "Run",
    "Sample",
    "State",
    "bandits",
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
