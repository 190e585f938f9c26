"""Limited updates that restart when the losses have shifted."""

from jaxdp.experts._svt_restarts._svt_restarts import svt_restarts as svt_restarts
