"""A strategy, a credit method, a scorer and a reader, each one file here, trained, audited and verified."""

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from deadheat.archive import read, read_table, write_table
from deadheat.audit import Gate, audit
from deadheat.credit import CREDITS, CreditOptions, ScoredGroup
from deadheat.errors import ConfigError
from deadheat.policy import Branches, LanguageModel
from deadheat.race import RaceResult, parse_race, run_race, verify_race
from deadheat.rollouts import STRATEGIES
from deadheat.scorers import SCORERS
from deadheat.train import ROLLOUTS, RunIdentity, step_file, train_run
from deadheat.types import Origin

from . import toy_credit, toy_scorer, toy_strategy
from .toy_reader import entropy

RACE = """
name = "toys"
seeds = 1
threads = 1
[policy]
model = "tiny:addition"
adapter = { kind = "lora", rank = 4, alpha = 8 }
[task]
name = "addition"
limit = 20
held_out = 100
[rollouts]
questions_per_step = 3
group_size = 4
drawing = { name = "toy_fork", at = 0.5 }
[scorer]
kind = "toy_ranks"
[credit]
estimator = "toy_pairs"
[update]
learning_rate = 5e-3
weighting = "before_sum"
[eval]
pool = 8
every = 2
[stop]
steps = 3
[[arm]]
name = "sum"
[[arm]]
name = "unit"
update.prompt_gradient = "unit"
"""


@pytest.fixture(scope="module", autouse=True)
def registered():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    tables = (STRATEGIES, CREDITS, SCORERS)
    as_shipped = [dict(table) for table in tables]
    for toy in (toy_strategy, toy_credit, toy_scorer):
        toy.register()
    yield
    for table, shipped in zip(tables, as_shipped, strict=True):
        table.clear()
        table.update(shipped)
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def race(tmp_path_factory: pytest.TempPathFactory, registered: None) -> RaceResult:
    folder = tmp_path_factory.mktemp("toys") / "toys"
    result = run_race(parse_race(RACE, source="toys.toml"), RACE, folder, observe=lambda progress: None)
    assert result.failures == ()
    return result


def rows_of(race: RaceResult, arm: str, step: int) -> pl.DataFrame:
    return read_table(step_file(race.folder / arm / "seed-1", ROLLOUTS, step))


def found(folder: Path) -> list[str]:
    return [finding.what for finding in verify_race(folder, observe=lambda part: None).findings]


def test_branches_share_the_prefix_they_were_given_and_its_log_probabilities_to_the_bit(race: RaceResult) -> None:
    rows = rows_of(race, "sum", 1).filter(pl.col("purpose") == "train")
    assert rows.height == 12
    for (_,), group in rows.group_by("problem_id", maintain_order=True):
        origins = [json.loads(text) for text in group["origin"]]
        assert [(o["pair"], o["branch"]) for o in origins] == [(0, 0), (0, 1), (1, 0), (1, 1)]
        length = origins[0]["prefix_length"]
        assert group["num_forced"].to_list() == [length] * 4
        for column in ("token_ids", "logprobs", "plain_logprobs"):
            assert len({tuple(row[:length]) for row in group[column].to_list()}) == 1, column
    assert any(json.loads(text)["fork"] is not None for text in rows["origin"])


def test_the_prefix_and_the_rest_of_a_branch_have_advantages_of_their_own(race: RaceResult) -> None:
    rows = rows_of(race, "sum", 1).filter(pl.col("purpose") == "train")
    for (_,), group in rows.group_by("problem_id", maintain_order=True):
        rewards = group["reward"].to_numpy()
        for index, row in enumerate(group.iter_rows(named=True)):
            pair = rewards[index - index % 2 : index - index % 2 + 2].mean()
            prefix, rest = row["num_forced"], row["length"] - row["num_forced"]
            wanted = [pair - rewards.mean()] * prefix + [rewards[index] - pair] * rest
            held = row["token_advantages"] or [row["advantage"]] * row["length"]
            assert held == pytest.approx(wanted)
            assert row["advantage"] == pytest.approx(np.mean(wanted))


def test_the_race_of_toys_verifies_and_a_changed_token_advantage_origin_or_rank_is_found(race: RaceResult) -> None:
    assert found(race.folder) == []
    path = step_file(race.folder / "sum" / "seed-1", ROLLOUTS, 2)
    rows = read_table(path)
    index = next(i for i, held in enumerate(rows["token_advantages"].to_list()) if held)
    changes = {
        "token_advantages": rows["token_advantages"].to_list(),
        "origin": rows["origin"].to_list(),
        "raw_reward": rows["raw_reward"].to_list(),
    }
    changes["token_advantages"][index][0] += 1.0
    changes["origin"][index] = None
    changes["raw_reward"][index] += 0.25
    try:
        for column, values in changes.items():
            tampered = rows.with_columns(pl.Series(column, values, dtype=rows.schema[column]))
            write_table(path, tampered)
            with_it = found_or_refused(race.folder)
            assert any(what.startswith(str(rows["problem_id"][index])) or "refused" in what for what in with_it), column
    finally:
        write_table(path, rows)


def found_or_refused(folder: Path) -> list[str]:
    try:
        return found(folder)
    except AssertionError:
        return ["refused by the credit method"]


def test_the_race_of_toys_is_audited(race: RaceResult) -> None:
    report = audit(read(race.folder), only=["gate", "accounting", "clones"])
    gate = report.answered["gate"]
    assert isinstance(gate, Gate)
    assert report.missing == {}


def test_both_prompt_gradients_draw_alike_at_step_one_and_learn_differently(race: RaceResult) -> None:
    first, other = (rows_of(race, arm, 1) for arm in ("sum", "unit"))
    assert first["token_ids"].equals(other["token_ids"])
    later, last = (rows_of(race, arm, 3) for arm in ("sum", "unit"))
    assert not later["plain_logprobs"].equals(last["plain_logprobs"])


def test_weighting_after_the_sum_is_refused_for_tokens_that_differ(tmp_path: Path) -> None:
    race = parse_race(RACE.replace('weighting = "before_sum"', 'weighting = "after_sum"'), source="toys.toml")
    identity = RunIdentity(race="toys", arm="sum", seed=1)
    with pytest.raises(ConfigError, match=r"wanted update\.weighting = 'before_sum'"):
        train_run(race.arms["sum"], identity, tmp_path, observe=lambda progress: None)


def test_the_toy_credit_is_the_sum_done_by_hand() -> None:
    # Rewards 1, 0 | 1, 1; group mean 3/4. Pair means 1/2 and 1: prefixes −1/4 and +1/4, rests ±1/2 and 0.
    origins = tuple(Origin(pair=i // 2, branch=i % 2, prefix_length=1) for i in range(4))
    group = ScoredGroup(
        rewards_G=np.array([1.0, 0.0, 1.0, 1.0]), lengths_G=(2,) * 4, correct_G=(None,) * 4, origins_G=origins
    )
    (credit,) = toy_credit.pair_credit([group], CreditOptions())
    assert [a.tolist() for a in credit.advantages_G] == [[-0.25, 0.5], [-0.25, -0.5], [0.25, 0.0], [0.25, 0.0]]
    assert [(pair.better, pair.worse, pair.first) for pair in credit.pairs] == [(0, 1, 1)]


def test_the_toy_reader_reads_the_entropy_of_a_plain_forward_pass(tiny_policy: LanguageModel) -> None:
    prompt = tiny_policy.encode("1 + 1 = 2\n3 +", chat=False)
    answers = tuple(tiny_policy.encode(text, chat=False) for text in (" 4 = 7\n", " 4 = 8\n"))
    with torch.no_grad():
        (read,) = tiny_policy.read([Branches(prompt_tokens=prompt, completion_tokens=answers)], entropy).values_PG
        for answer, entropy_T in zip(answers, read, strict=True):
            logits = tiny_policy.module(input_ids=torch.tensor([[*prompt, *answer]])).logits[0]
            p = logits.softmax(-1)[len(prompt) - 1 : -1]
            assert torch.allclose(entropy_T, -(p * p.log()).sum(-1), atol=1e-4)
            assert float(entropy_T.max()) < math.log(tiny_policy.module.config.vocab_size)
