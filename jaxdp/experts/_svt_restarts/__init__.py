"""Limited updates that restart after the distribution of losses has changed."""

from jaxdp.experts._svt_restarts._svt_restarts import svt_restarts as svt_restarts
