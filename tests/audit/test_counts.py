"""Counts add up: the order of rows and shards is irrelevant, halves merge to the whole, a shard twice is refused."""

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deadheat.audit import AuditOptions, as_json, merge
from deadheat.audit.accounting import count_accounting, read_accounting
from deadheat.audit.caps import count_caps, read_caps
from deadheat.audit.channel import channel_ends
from deadheat.audit.clones import compared_by, count_clones, read_clones
from deadheat.audit.contested import contested_groups, count_contested, read_contested
from deadheat.audit.counts import Counts, counted, fingerprint
from deadheat.audit.course import end_of_course
from deadheat.audit.dilution import DilutionCounts, count_dilution, read_dilution
from deadheat.audit.gate import read_gate
from deadheat.audit.kinds import GateCounts, count_gate
from deadheat.audit.lengths import LengthCounts, count_lengths, read_lengths
from deadheat.audit.opening import count_first, count_opening, read_opening
from deadheat.audit.questions import AUDITS
from deadheat.audit.siblings import count_siblings, read_siblings
from deadheat.audit.stuck import count_stuck, read_stuck
from deadheat.audit.words import count_words, read_words
from deadheat.errors import ArchiveError

OPTIONS = AuditOptions(skill="p1", first_draws=2, noise_floor=0.1, cap=3, group_sizes=(2,))
CAPPED = pl.col("stop") == "cap"
FRESH = pl.col("sample") >= 2
Parts = tuple[Counts | None, ...]


@dataclass(frozen=True)
class Shardable:
    """How one audit counts a shard and reads merged counts."""

    count: Callable[[pl.LazyFrame, pl.Expr | None], Parts]  # the second: which end of its course a row stands at
    read: Callable[[Parts], object]
    ends: Callable[[pl.LazyFrame], pl.Expr] | None = None  # asked of the whole


def _gate_counts(rows: pl.LazyFrame, end: pl.Expr | None) -> Parts:
    found = count_gate(rows, OPTIONS, end)
    return found.kinds, found.draws, found.problems


def _length_counts(rows: pl.LazyFrame, end: pl.Expr | None) -> Parts:
    found = count_lengths(rows, end)
    return found.histogram, found.clusters, found.channel, found.ends


def _dilution_counts(rows: pl.LazyFrame, end: pl.Expr | None) -> Parts:
    found = count_dilution(rows)
    return found.batches, found.problems


NAMES = ["token_ids", "completion", "correct"]
SHARDABLE = {
    "gate": Shardable(
        _gate_counts, lambda c: read_gate(GateCounts(kinds=c[0], draws=c[1], problems=c[2]), OPTIONS), end_of_course
    ),
    "dilution": Shardable(
        _dilution_counts, lambda c: read_dilution(DilutionCounts(batches=c[0], problems=c[1]), "reward", OPTIONS)
    ),
    "clones": Shardable(
        lambda r, e: (count_clones(r),),
        lambda c: read_clones(c[0], compared_by(NAMES), OPTIONS, shared_keys=None, num_keys=None),
    ),
    "words": Shardable(lambda r, e: (count_words(r),), lambda c: read_words(c[0], "correct", OPTIONS)),
    "caps": Shardable(
        lambda r, e: (count_caps(r, CAPPED, OPTIONS),), lambda c: read_caps(c[0], True, None, "reward", OPTIONS)
    ),
    "contested": Shardable(
        lambda r, e: (count_contested(contested_groups(r, OPTIONS)),), lambda c: read_contested(c[0], [], OPTIONS)
    ),
    "lengths": Shardable(
        _length_counts,
        lambda c: read_lengths(LengthCounts(histogram=c[0], clusters=c[1], channel=c[2], ends=c[3]), OPTIONS),
        channel_ends,
    ),
    "opening": Shardable(
        lambda r, e: (count_opening(r, OPTIONS), count_first(r)), lambda c: read_opening(c[0], c[1], True, OPTIONS)
    ),
    "stuck": Shardable(lambda r, e: (count_stuck(r, FRESH),), lambda c: read_stuck(c[0], OPTIONS)),
    "siblings": Shardable(lambda r, e: (count_siblings(r, OPTIONS),), lambda c: read_siblings(c[0], NAMES, OPTIONS)),
    "accounting": Shardable(lambda r, e: (count_accounting(r),), lambda c: read_accounting(c[0], (), OPTIONS)),
}
SLOW = settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("name", SHARDABLE)
@SLOW
@given(seed=st.integers(0, 999))
def test_merging_two_shards_in_either_order_equals_the_whole(archive, name, seed):
    audit, whole = SHARDABLE[name], archive(seed)
    # Shards by step, as trainers write them: `caps` and `accounting` speak of steps, whose groups lie in one shard.
    halves = [whole.filter((pl.col("step") % 2 == side) == True).lazy() for side in (0, 1)]  # noqa: E712
    end = None if audit.ends is None else audit.ends(whole.lazy())
    parts = [audit.count(half, end) for half in halves]
    expected = as_json(audit.read(audit.count(whole.lazy(), None)))
    for order in (parts, parts[::-1]):
        merged = tuple(_merged(counts) for counts in zip(*order, strict=True))
        assert as_json(audit.read(merged)) == expected


def _merged(counts: tuple[Counts | None, ...]) -> Counts | None:
    known = [part for part in counts if part is not None]
    return merge(known) if known else None


@pytest.mark.parametrize("name", [name for name in AUDITS if name not in ("cold", "frozen", "contamination")])
@SLOW
@given(seed=st.integers(0, 999))
def test_the_order_of_rows_changes_no_answer(archive, shuffled, name, seed):
    rows = archive(seed)
    ask = AUDITS[name].ask
    answers = [as_json(ask(frame.lazy(), OPTIONS)) for frame in (rows, shuffled(rows, seed))]
    assert _rounded(answers[0]) == _rounded(answers[1])


def _rounded(value: object) -> object:
    """Sums of floats depend on their order in the last digits; counts do not."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return round(value, 9) if isinstance(value, float) else value


def test_counting_a_shard_twice_is_refused(archive, shuffled):
    rows = archive(3)
    marks = [fingerprint(frame.lazy()) for frame in (rows, shuffled(rows, 1), rows.filter(pl.col("step") > 1))]
    assert marks[0] == marks[1] != marks[2]
    counts = [counted(pl.DataFrame({"n": [1]}), [], shards=frozenset({mark})) for mark in marks]
    with pytest.raises(ArchiveError, match="counted twice"):
        merge(counts[:2])
    assert merge([counts[0], counts[2]]).total("n") == 2


def test_a_shard_read_twice_shows_in_the_gate(archive):
    rows = archive(5).lazy()
    again = AUDITS["gate"].ask(pl.concat([rows, rows]), OPTIONS)
    assert again.num_repeated == 24 * 4  # every rollout of every group once more


def test_counts_roll_up_to_fewer_keys():
    counts = counted(pl.DataFrame({"a": ["x", "x", "y"], "b": [1, 2, 1], "n": [3, 4, 5]}), ["a", "b"])
    assert counts.rolled_up(["a"]).rows() == [("x", 7), ("y", 5)]
    assert counts.rolled_up(["nothing there"]).rows() == [(12,)]
