"""Objective perturbation of logistic regression: by maximum likelihood, and by one pass of SGD."""

from jaxdp.estimation._objective_perturbation._objective_perturbation import (
    objective_perturbation as objective_perturbation,
)
from jaxdp.estimation._objective_perturbation._sgd import (
    literal_objective_perturbation as literal_objective_perturbation,
)
from jaxdp.estimation._objective_perturbation._sgd import (
    sgd_objective_perturbation as sgd_objective_perturbation,
)
