"""Watch the groups of a training loop that is not ours: a line every 40 steps, numbers for a logger, an archive to audit.

    python examples/watch_groups.py groups

The loop is the smallest there is: 48 problems, each with its own chance of a right answer, from 1 in 300 to even; groups
of 8, a reward of 1 or 0, and a step of the policy gradient on what a group disagrees about. Problems leave the gate on
both sides: the easy ones end all right, and the hardest never show a right answer to learn from.
"""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deadheat import Archive, GroupBatch, GroupMonitor, MonitorConfig, read
from deadheat.audit import AuditOptions, Gate, gate
from deadheat.sampling.keys import stream_key, uniforms

NUM_PROBLEMS, NUM_ASKED, GROUP, STEPS = 48, 16, 8, 200
RATE = 4.0


def chances(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each problem's chance of a right answer."""
    return np.asarray(1 / (1 + np.exp(-logits)))


def train(monitor: GroupMonitor) -> NDArray[np.float64]:
    """Every step: ask, reward, watch, update. Returns the chances at the end."""
    logits_P = np.linspace(-5.7, 0.0, NUM_PROBLEMS)
    for step in range(1, STEPS + 1):
        asked = np.argsort(uniforms(stream_key(1, "asked", step), NUM_PROBLEMS))[:NUM_ASKED]
        draws_PG = uniforms(stream_key(1, "draws", step), NUM_ASKED * GROUP).reshape(NUM_ASKED, GROUP)
        p_P = chances(logits_P)[asked]
        rewards_PG = (draws_PG < p_P[:, None]).astype(float)
        monitor.observe(
            GroupBatch(step=step, rewards=rewards_PG, prompts=[f"problem {problem}" for problem in asked])
        )  # give what this returns to your logger
        advantages_PG = rewards_PG - rewards_PG.mean(axis=1, keepdims=True)
        logits_P[asked] += RATE * (advantages_PG * (rewards_PG - p_P[:, None])).mean(axis=1)
    return chances(logits_P)


def audited(archive: Archive) -> Gate:
    """The same question asked of the archive afterwards, of all steps at once."""
    return gate(archive.rows, AuditOptions())


def main(folder: Path) -> None:
    """Train under the monitor, then read what it kept."""
    with GroupMonitor(MonitorConfig(window=40, every=40, archive=folder)) as monitor:
        end_P = train(monitor)
    learned, left = (end_P > 0.9).sum(), (end_P < 0.05).sum()
    print(f"at the end {learned} of {NUM_PROBLEMS} problems are right 9 times in 10, {left} never left the floor")
    print(audited(read(folder)).sentence)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
