"""Asking every question at once: what is answered, what is missing, the page, the notebook and the command."""

import json
from dataclasses import replace

import polars as pl
import pytest
from typer.testing import CliRunner

from deadheat.archive import read, write_table
from deadheat.audit import AUDITS, AuditOptions, as_json, audit, gate
from deadheat.audit.examples import example_groups
from deadheat.audit.page import audit_page
from deadheat.cli.app import app
from deadheat.errors import ConfigError
from deadheat.reports import render_page

run = CliRunner()


@pytest.fixture
def log(tmp_path, archive):
    """A folder with one of our tables in it."""
    folder = tmp_path / "run"
    folder.mkdir()
    write_table(folder / "rollouts.parquet", archive(1, num_groups=40).with_columns(run=pl.lit("r")))
    return folder


def test_every_audit_answers_or_names_what_it_lacks(log):
    report = audit(read(log))
    assert set(report.found) == set(AUDITS)
    assert len(AUDITS) == 16
    assert {name: record.lacks for name, record in report.missing.items()} == {
        "frozen": ("--skill",),
        "stuck": ("--first-draws",),
        "drift": ("--noise-floor",),
        "cold": ("reference_logprob",),
    }
    for record in report.answered.values():
        assert record.sentence and "None" not in record.sentence
        json.dumps(as_json(record), allow_nan=False)


def test_a_log_without_grades_and_lengths_still_reads_its_gate(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("who,score\na,1\na,0\nb,1\nb,1\n", encoding="utf-8")
    found = run.invoke(app, ["audit", str(path), "--map", "group=who", "--map", "reward=score", "--json"])
    printed = json.loads(found.stdout)
    assert printed["gate"]["shut_rate"]["value"] == 0.5
    assert printed["lengths"]["sentence"] == "needs `length`"


def test_the_command_prints_one_page_with_the_gate_first_and_what_is_missing_last(log):
    found = run.invoke(app, ["audit", str(log)])
    assert found.exit_code == 0, found.output
    text = found.stdout
    assert text.index("groups of 8 problems agree") < text.index("dilution") < text.index("not asked")
    assert max(map(len, text.splitlines())) <= 80


def test_only_some_audits_and_parts_of_the_archive(log):
    printed = json.loads(run.invoke(app, ["audit", str(log), "--only", "gate,clones", "--by", "arm", "--json"]).stdout)
    assert set(printed) == {"read", "gate", "clones", "parts"}
    assert [part["where"] for part in printed["parts"]] == [{"arm": "a"}, {"arm": "b"}]
    assert sum(part["gate"]["shut_rate"]["n"] for part in printed["parts"]) == printed["gate"]["shut_rate"]["n"] == 40


def test_parts_are_the_audits_of_the_filtered_rows(log):
    rows = read(log).rows
    report = audit(read(log), options=AuditOptions(by=("arm", "step")), only=["gate"])
    for part in report.parts:
        own = rows.filter((pl.col("arm") == part.where["arm"]) & (pl.col("step") == int(part.where["step"])))
        assert as_json(part.found["gate"]) == as_json(gate(own, AuditOptions()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "gait"], "no audit is called 'gait'"),
        (["--by", "arn"], "there is no column 'arn'"),
        (["--map", "group"], "wanted OURS=THEIRS"),
        (["--expect", "four"], "wanted group sizes of at least 2"),
    ],
)
def test_a_wrong_option_is_one_message(log, arguments, message):
    found = run.invoke(app, ["audit", str(log), *arguments])
    assert isinstance(found.exception, ConfigError)
    assert message in str(found.exception)


def test_too_many_parts_are_refused(log):
    many = replace(read(log), rows=_many())
    with pytest.raises(ConfigError, match="wanted at most 200"):
        audit(many, options=AuditOptions(by=("step",)))


def _many() -> pl.LazyFrame:
    return pl.LazyFrame({"group_id": [str(i) for i in range(300)], "reward": [0.0] * 300, "step": range(300)})


def test_the_page_holds_figures_every_answer_and_groups_to_open(log):
    archive = read(log)
    options = AuditOptions()
    html = render_page(audit_page(audit(archive, options=options), example_groups(archive.rows, options)))
    assert html.count("<svg") >= 6  # composition, gate curve and lengths, each for both widths
    assert html.count('<details class="transcript">') == 3 * 6  # six live, six all right, six all wrong
    for name in ("Gate", "Dilution", "Clones", "Words", "Accounting", "Not asked", "Groups"):
        assert f">{name}</h2>" in html
    assert "reward 1" in html and "Open one to read its attempts" in html


def test_examples_are_the_same_groups_whatever_the_order_of_rows(archive, shuffled):
    rows = archive(2, num_groups=60)
    shown = [[t.title for t in example_groups(frame.lazy(), AuditOptions())] for frame in (rows, shuffled(rows, 4))]
    assert shown[0] == shown[1]


def test_a_record_draws_itself_in_a_notebook(groups):
    html = gate(groups([1.0, 0.0], [1.0, 1.0]), AuditOptions())._repr_html_()
    assert "50.0%" in html and "<table" in html


def test_help_and_the_room_load_no_torch():
    import subprocess
    import sys

    code = (
        "import sys, deadheat.audit, deadheat.audit.page; print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False False"
