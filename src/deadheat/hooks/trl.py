"""Watch a TRL trainer: `watch(trainer)` before `trainer.train()`; made for `GRPOTrainer` and `RLOOTrainer` of TRL 1.16.

A callback is told metrics and no rewards, a reward function sees its own scores of its own process, and the completions
that TRL writes lack weights and stop reasons. So the trainer's `_calculate_rewards` is wrapped: it runs once per generation,
however many updates that serves, and returns the scores of every function over all processes. It is private to TRL: a
trainer whose method has other parameters is refused when it is watched, not in the middle of a run.

    reward             Σ weight·score, functions without a score left out; none at all: unscored     sum_then_normalize
                       Σ weight·(score − group mean)/(group sd + 1e-4)                               normalize_then_sum
    step               of training: the first update that the generation serves, counted from 1
    capped             the last token is neither an end of sequence nor padding

Prompts, texts and token ids are gathered from all processes; the main one counts and writes. Advantages come later and
are not recorded. The metrics join TRL's own in `on_log`: the callback stands first, so that every logger after it has them.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from accelerate.utils import gather_object
from numpy.typing import NDArray
from transformers import TrainerCallback

from deadheat.archive.readers.values import answer_text, chat_text
from deadheat.errors import ConfigError
from deadheat.hooks.batch import GroupBatch
from deadheat.hooks.monitor import GroupMonitor, MonitorConfig
from deadheat.sampling.keys import Purpose

_METHOD = "_calculate_rewards"
_PARAMETERS = ("inputs", "prompts", "completions", "completion_ids_list")
_EPS = 1e-4  # added by TRL to the deviation of a group


class GroupCallback(TrainerCallback):  # type: ignore[misc] # transformers is untyped here
    """Adds a monitor's metrics to what a trainer logs; lets go of the archive when training ends."""

    def __init__(self, monitor: GroupMonitor | None) -> None:
        self.monitor = monitor  # None: this process is not the main one

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """The window's figures beside those of the updates; an evaluation and the summary at the end stay as they are."""
        if self.monitor is None or logs is None or "loss" not in logs:
            return
        found = self.monitor.metrics()
        logs.update(found)
        if state.log_history:
            state.log_history[-1].update(found)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Nothing is left to write; another process may go on with the folder."""
        if self.monitor is not None:
            self.monitor.close()


def watch(
    trainer: Any,
    config: MonitorConfig | None = None,
    *,
    grade: str | None = None,
    say: Callable[[str], None] = print,
) -> GroupCallback:
    """Watch a trainer's groups from here on.

    `grade` names the reward function whose 1 means right and 0 wrong; without it a reward of 1 is right and of 0 wrong.
    """
    _check(trainer, grade)
    monitor = GroupMonitor(config, say=say) if trainer.accelerator.is_main_process else None
    callback = GroupCallback(monitor)
    computed = getattr(trainer, _METHOD)

    @wraps(computed)
    def calculate_rewards(inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> Any:
        scores_BF = computed(inputs, prompts, completions, completion_ids_list)
        drawn = [
            (chat_text(prompt) or "", answer_text(text), list(ids))
            for prompt, text, ids in zip(prompts, completions, completion_ids_list, strict=True)
        ]
        everywhere = gather_object(drawn)
        if callback.monitor is not None:
            callback.monitor.record(_batch(trainer, scores_BF, everywhere, grade))
        return scores_BF

    setattr(trainer, _METHOD, calculate_rewards)
    trainer.callback_handler.callbacks.insert(0, callback)
    return callback


def _check(trainer: Any, grade: str | None) -> None:
    name = type(trainer).__name__
    computed = getattr(trainer, _METHOD, None)
    if any(isinstance(callback, GroupCallback) for callback in trainer.callback_handler.callbacks):
        raise ConfigError(f"this {name} is watched already; wanted one call of watch for a trainer")
    seen = None if computed is None else tuple(inspect.signature(computed).parameters)
    if seen != _PARAMETERS:
        how = f"has no {_METHOD}" if seen is None else f"has {_METHOD}({', '.join(seen)})"
        raise ConfigError(
            f"{name} {how}; wanted ({', '.join(_PARAMETERS)}), as in TRL 1.16. With this version, set "
            "log_completions=True and run `deadheat audit` on the completions, or call a GroupMonitor yourself."
        )
    if grade is not None and grade not in trainer.reward_func_names:
        raise ConfigError(f"grade is {grade!r}; wanted one of {', '.join(trainer.reward_func_names)}")


def _batch(
    trainer: Any, scores_BF: Any, drawn: list[tuple[str, str | None, list[int]]], grade: str | None
) -> GroupBatch:
    trains = bool(trainer.model.training)
    size = trainer.num_generations if trains else getattr(trainer, "num_generations_eval", trainer.num_generations)
    scores = np.asarray(scores_BF.tolist(), dtype=np.float64).reshape(len(drawn), -1)
    parts = dict(zip(trainer.reward_func_names, scores.T.tolist(), strict=True))
    prompts, texts, ids = zip(*drawn, strict=True)
    return GroupBatch(
        step=trainer.state.global_step + (1 if trains else 0),
        purpose=Purpose.TRAIN if trains else Purpose.EVAL,
        rewards=_rewards(trainer, scores_BF, scores, size),
        group_size=size,
        correct=None if grade is None else [{1.0: True, 0.0: False}.get(score) for score in parts[grade]],
        capped=_capped(trainer, ids),
        completions=texts,
        token_ids=ids,
        prompts=prompts,
        parts=parts,
    )


def _rewards(trainer: Any, scores_BF: Any, scores: NDArray[np.float64], size: int) -> list[float | None]:
    """What TRL learns from; a rollout that no function scored has no reward. Sums are TRL's own, in single precision."""
    weights = trainer.reward_weights.to(scores_BF.device)
    if getattr(trainer, "multi_objective_aggregation", "sum_then_normalize") == "normalize_then_sum":
        summed = normalised_sum(scores, np.asarray(weights.tolist()), size).tolist()
    else:
        summed = (scores_BF * weights.unsqueeze(0)).nansum(dim=1).tolist()
    nothing = [bool(row.all()) for row in np.isnan(scores)]
    return [None if unscored else reward for reward, unscored in zip(summed, nothing, strict=True)]


def normalised_sum(scores_BF: NDArray[np.float64], weights_F: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Σ_f w_f·(r_f − m_f)/(s_f + 1e-4), m and s (divisor n − 1) of the scored members of each lot of `size` rollouts.

    Example:
        A group of two: m = ½, s = √½, so ±½/(.70711 + 1e-4) = ±.7070. A second function that disagrees cancels it.
        >>> normalised_sum(np.array([[1.0], [0.0]]), np.array([1.0]), 2).round(4).tolist()
        [0.707, -0.707]
        >>> normalised_sum(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 1.0]), 2).tolist()
        [0.0, 0.0]
    """
    grouped_PGF = scores_BF.reshape(-1, size, scores_BF.shape[1])
    scored_PGF = ~np.isnan(grouped_PGF)
    num_P1F = scored_PGF.sum(axis=1, keepdims=True)
    filled = np.where(scored_PGF, grouped_PGF, 0.0)
    centred = np.where(scored_PGF, grouped_PGF - filled.sum(axis=1, keepdims=True) / np.maximum(num_P1F, 1), 0.0)
    variance_P1F = (centred**2).sum(axis=1, keepdims=True) / np.maximum(num_P1F - 1, 1)
    scaled = centred / (np.sqrt(variance_P1F) + _EPS)
    return np.asarray((scaled.reshape(scores_BF.shape) * weights_F).sum(axis=1))


def _capped(trainer: Any, ids: tuple[list[int], ...]) -> list[bool | None] | None:
    """Whether each completion was cut, as TRL counts its clipped ratio; None where the tokenizer has no end of sequence."""
    tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
    ends = set(getattr(trainer, "eos_token_ids", None) or [tokenizer.eos_token_id]) | {tokenizer.pad_token_id}
    ends.discard(None)
    return [row[-1] not in ends if row else None for row in ids] if ends else None
