"""Limited updates that restart when a change in the distribution of losses is detected."""

from jaxdp.experts._svt_restarts._svt_restarts import svt_restarts as svt_restarts
