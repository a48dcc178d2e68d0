"""Cold odds: the teacher-forced probability of the exact reference, against the one-by-one path and audit 16."""

import math

import pytest
import torch

from deadheat.audit import AuditOptions, cold
from deadheat.evals import cold_rows
from deadheat.policy import AdapterConfig, PolicyConfig, load_policy
from deadheat.tasks import load_task, parse_task


@pytest.fixture(scope="module")
def task():
    return load_task(parse_task({"name": "addition"}))


@pytest.fixture(scope="module")
def policy(task):
    warm = [problem.prompt + task.gold_text(problem) for problem in task.training]
    return load_policy(PolicyConfig(model="tiny:addition", adapter=AdapterConfig(kind="full")), key=1, warm_texts=warm)


def test_the_odds_are_the_product_of_the_tokens_own_probabilities(policy, task):
    problems = task.training[:3]
    rows = cold_rows(policy, task, problems)
    for problem, row in zip(problems, rows.iter_rows(named=True), strict=True):
        prompt, gold = policy.encode(problem.prompt, chat=False), policy.encode(task.gold_text(problem), chat=False)
        with torch.no_grad():
            logits = policy.module(torch.tensor([[*prompt, *gold]])).logits[0, len(prompt) - 1 : -1]
        expected = torch.log_softmax(logits, dim=-1)[torch.arange(len(gold)), torch.tensor(gold)].sum().item()
        assert row["reference_logprob"] == pytest.approx(expected, abs=1e-4)
        assert row["reference_tokens"] == len(gold)


def test_audit_16_reads_the_rows(policy, task):
    rows = cold_rows(policy, task, task.training[:20])
    found = cold(rows.lazy(), AuditOptions())
    assert found.n == 20
    assert found.median == pytest.approx(math.exp(rows["reference_logprob"].median()), rel=1e-9)


def test_the_command_reads_each_size_and_its_rows_are_a_log_to_audit(tmp_path):
    import json

    from typer.testing import CliRunner

    from deadheat.cli.app import app

    out = tmp_path / "cold.parquet"
    asked = ["cold", "tiny:addition", "addition", "--n", "8", "--sweep", "limit=30,300", "--threads", "1", "--json"]
    found = CliRunner().invoke(app, [*asked, "--out", str(out)])
    assert found.exit_code == 0, found.output
    printed = json.loads(found.stdout)
    assert list(printed) == ["limit 30", "limit 300"]
    assert printed["limit 30"]["n"] == 8
    audited = json.loads(CliRunner().invoke(app, ["audit", str(out), "--only", "cold", "--json"]).stdout)
    assert audited["cold"]["n"] == 16
