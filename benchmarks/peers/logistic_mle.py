"""Logistic maximum likelihood, one seed after the other: scikit-learn's two fastest solvers, and SciPy's L-BFGS."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

TOLERANCE = 1e-5


def scikit_learn(features, labels, solver):
    """Returns [num_seeds, dim] estimates by LogisticRegression without penalty or intercept."""
    model = LogisticRegression(C=np.inf, fit_intercept=False, solver=solver, tol=TOLERANCE, max_iter=1000)
    return np.stack([model.fit(x, y).coef_[0] for x, y in zip(features, labels, strict=True)])


def scipy_lbfgs(features, labels):
    """Returns [num_seeds, dim] estimates by scipy.optimize.minimize with the analytic gradient."""

    def loss(theta, x, y):
        margin = x @ theta
        return np.mean(np.logaddexp(0, margin) - y * margin), x.T @ (expit(margin) - y) / len(y)

    start = np.zeros(features.shape[2])
    options = {"gtol": TOLERANCE}
    return np.stack(
        [
            minimize(loss, start, (x, y), jac=True, method="L-BFGS-B", options=options).x
            for x, y in zip(features, labels, strict=True)
        ]
    )
