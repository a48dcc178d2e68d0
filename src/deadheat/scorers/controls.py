"""Controls: scorers whose truth is known, so that a verdict about them can be checked.

`plant` permutes a group's rewards by a keyed permutation. Every group keeps its multiset of rewards, so its gate is the
honest arm's on the same rollouts, but which attempt earned which reward carries zero information: nothing can be learned
from it on purpose.
"""

import numpy as np
from numpy.typing import NDArray

from deadheat.sampling.keys import permutation, stream_key


def plant(rewards_G: NDArray[np.float64], *, seed: int, step: int, problem_digest: str) -> NDArray[np.float64]:
    """The group's scored rewards in a keyed order, fresh each step and the same in every arm; unscored members stay so.

    Example:
        >>> sorted(plant(np.array([0.0, 0.0, 1.0]), seed=1, step=1, problem_digest="ab").tolist())
        [0.0, 0.0, 1.0]
    """
    key = stream_key(seed, "plant", step, problem_digest)
    planted_G = rewards_G.copy()
    scored = np.flatnonzero(~np.isnan(rewards_G))
    planted_G[scored] = rewards_G[scored[permutation(key, scored.size)]]
    return planted_G
