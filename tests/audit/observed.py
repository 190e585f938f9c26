"""The parts of played transcripts that an adversary sees."""

import jax
import numpy as np

from jaxdp.audit.play import Transcript
from jaxdp.audit.seen import Parts, rounds_seen
from jaxdp.core import Guarantee


def observed_parts(transcript: Transcript, claim: Guarantee, changed: int | None = None) -> Parts:
    """Selects, for each part of a transcript, the rounds that an adversary sees.

    The arrays become [rounds seen, ...]; a part is None if no round is seen. `changed` is the round of the user who
    differs; only the local and the joint model need it.
    """
    whole = Parts(transcript.actions, transcript.reports, transcript.before, transcript.after)
    return Parts(
        *(
            jax.tree.map(lambda x, rounds=rounds: x[np.asarray(rounds)], part) if rounds else None
            for part, rounds in zip(whole, rounds_seen(claim, changed, len(transcript.length)), strict=True)
        )
    )
