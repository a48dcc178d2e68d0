"""TRL's side of a GRPO step: python -m peers.trl_side FOLDER

The trainer runs as its users run it; a callback holds it at the start of every step until it is its turn and takes the
time when the optimiser has stepped. The first turn, before training, puts the job's answers through the trainer's own
log-probabilities and loss.
"""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import trl
from datasets import Dataset
from transformers import TrainerCallback

from peers.job import CLIP_NORM, LEARNING_RATE, Job
from peers.link import Link
from peers.lora import full_advantages, full_rows, gradients, load_adapter, lora_config


class Turns(TrainerCallback):
    """One optimiser step a turn."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._start = 0.0
        self._rollout_s = 0.0

    def time_rollouts(self, trainer: trl.GRPOTrainer) -> None:
        """Take the time of what comes before the update: generation, rewards, advantages."""
        rollouts = trainer._generate_and_score_completions

        def timed(inputs: Any) -> Any:
            start = time.perf_counter()
            batch = rollouts(inputs)
            self._rollout_s = time.perf_counter() - start
            return batch

        trainer._generate_and_score_completions = timed

    def on_step_begin(self, args: Any, state: Any, control: Any, **context: Any) -> None:
        """Before the step generates."""
        self._link.wait()
        self._start = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **context: Any) -> None:
        """After the optimiser's step."""
        self._link.answer(seconds=time.perf_counter() - self._start, rollout_s=self._rollout_s)


def configuration(job: Job, folder: Path) -> trl.GRPOConfig:
    """Float32 without recomputation, one optimiser step for each batch of fresh rollouts, nothing logged or saved."""
    shape = job.shape
    return trl.GRPOConfig(
        output_dir=str(folder / "trl"),
        model_init_kwargs={"dtype": "float32"},
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=shape.micro_rows,
        gradient_accumulation_steps=shape.num_rows // shape.micro_rows,
        num_generations=shape.num_samples,
        max_completion_length=shape.answer_tokens,
        generation_kwargs={"min_new_tokens": shape.answer_tokens},
        max_steps=shape.num_turns + 2,  # one warms up; the last one is never started
        loss_type="grpo",
        beta=0.0,
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        optim="adamw_torch",
        weight_decay=0.0,
        max_grad_norm=CLIP_NORM,
        shuffle_dataset=False,
        dataloader_pin_memory=False,
        logging_strategy="no",
        save_strategy="no",
        eval_strategy="no",
        report_to="none",
        disable_tqdm=True,
        seed=1,
    )


def trainer_of(job: Job, folder: Path, turns: Turns) -> trl.GRPOTrainer:
    """A trainer whose groups are never tied."""

    def reward(completion_ids: list[list[int]], **columns: Any) -> list[float]:
        if {len(ids) for ids in completion_ids} != {job.shape.answer_tokens}:
            raise SystemExit("TRL ended a completion early: the sides did not do the same work")
        return [job.rewards_G[i % job.shape.num_samples] for i in range(len(completion_ids))]

    trainer = trl.GRPOTrainer(
        model=job.model,
        reward_funcs=reward,
        args=configuration(job, folder),
        train_dataset=Dataset.from_list([{"prompt": p} for p in job.prompts_P] * (job.shape.num_turns + 2)),
        peft_config=lora_config(),
        callbacks=[turns],
    )
    seen = trainer.processing_class(text=job.prompts_P)["input_ids"]
    if seen != job.prompt_ids_P:
        raise SystemExit("TRL's tokenizer reads other tokens out of the prompts than ours")
    load_adapter(trainer.model, job)
    turns.time_rollouts(trainer)
    return trainer


def write_update(trainer: trl.GRPOTrainer, job: Job, target: Path) -> None:
    """Log-probabilities and gradients on the job's answers, by the trainer's own functions."""
    rows, advantages, num = full_rows(job), full_advantages(job), job.shape.answer_tokens
    trainer.current_gradient_accumulation_steps = len(rows) // job.shape.micro_rows
    trainer.model.train()
    logprobs = []
    for ids, advantage in zip(rows.split(job.shape.micro_rows), advantages.split(job.shape.micro_rows), strict=True):
        with torch.no_grad():
            scored, *_ = trainer._get_per_token_logps_and_entropies(trainer.model, ids, torch.ones_like(ids), num)
        logprobs.append(scored)
        prompts, answers = ids[:, :-num], ids[:, -num:]
        trainer._compute_loss(
            trainer.model,
            {
                "prompt_ids": prompts,
                "prompt_mask": torch.ones_like(prompts),
                "completion_ids": answers,
                "completion_mask": torch.ones_like(answers),
                "advantages": advantage,
            },
        ).backward()
    np.savez(target, logprobs=torch.cat(logprobs).flatten().numpy(), **gradients(trainer.model))
    trainer.model.zero_grad()


def serve(folder: Path) -> None:
    """Check, then train a step a turn until the driver leaves."""
    link, job = Link(), Job.read(folder)
    trainer = trainer_of(job, folder, Turns(link))
    link.wait()
    write_update(trainer, job, folder / "theirs.npz")
    link.answer(versions=f"TRL {trl.__version__}, torch {torch.__version__}", threads=torch.get_num_threads())
    trainer.train()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
