"""`deadheat numerics`: the page, the JSON and the exit status."""

import json

from typer.testing import CliRunner

from deadheat.cli.app import app
from deadheat.policy.linear import RowLinear

ASK = ["numerics", "tiny:addition", "--prompts", "4", "--tokens", "4", "--threads", "1"]


def test_the_page_says_that_it_holds_and_what_it_costs():
    done = CliRunner().invoke(app, ASK)
    assert done.exit_code == 0, done.output
    assert "Company changes no draw" in done.output
    assert "batches of 7" in done.output and "4/4" in done.output
    assert "in the ordinary mode" in done.output


def test_a_broken_promise_is_exit_status_1_and_stands_in_the_json(monkeypatch):
    honest = RowLinear.product
    monkeypatch.setattr(RowLinear, "product", lambda self, rows: honest(self, rows) * (1 + 1e-4 * len(rows)))
    done = CliRunner().invoke(app, [*ASK, "--json"])
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert found["holds"] is False
    assert found["companies"][0]["num_equal"] < 4
