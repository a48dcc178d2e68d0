"""Audits of shards: which ones are sums over groups, how a shard is counted anywhere, and how the sums become the record.

    record(archive) = read(Σ_shards count(shard)), to the last digit

This holds where every group lies in one shard. Files are the shards, and a file may end inside a group: groups with rows
in several shards are left out of each and counted together as one more. What needs more than one group at a time is asked
of the whole archive where this process runs: the audits that are not in `SHARDED` (they follow problems, steps, prompts or
texts across groups), and the part of `clones` that looks for keys under two prompts. Where a course begins and ends is
asked of the whole archive once and told to every shard, so that sums of both ends are of the same steps everywhere.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from deadheat.archive import Archive, Shard
from deadheat.audit.channel import channel_ends
from deadheat.audit.clones import compared_by, count_clones, read_clones, shared_keys
from deadheat.audit.counts import Counts, merge
from deadheat.audit.course import end_of_course
from deadheat.audit.dilution import DilutionCounts, count_dilution, read_dilution
from deadheat.audit.gate import read_gate
from deadheat.audit.kinds import GateCounts, count_gate
from deadheat.audit.lengths import LengthCounts, count_lengths, read_lengths
from deadheat.audit.opening import count_first, count_opening, read_opening
from deadheat.audit.questions import AUDITS, AuditReport, Observer, ask, audit, lacks_of
from deadheat.audit.records import AuditOptions, AuditRecord
from deadheat.audit.siblings import count_siblings, read_siblings
from deadheat.audit.table import columns_of, main_score
from deadheat.audit.words import count_words, grade_column, read_words
from deadheat.cluster import Cluster, Resources, require_paths

SHARDS_PER_CPU = 4  # so that a slow shard does not leave the others' cores idle for long
_ONE_CORE = Resources(environment={"POLARS_MAX_THREADS": "1"})  # Polars takes every core of a node unless told
_REMEDY = (
    "put the archive on storage that every node sees under one path, or copy a log of another tool there with "
    "deadheat convert PATH --to FOLDER"
)

Sums = tuple[Counts | None, ...]  # None: the archive has nothing to count there, in any shard
Ends = Mapping[str, pl.Expr]  # by the audit's name: which end of its course a row stands at
Found = Mapping[str, Sums]  # by the audit's name


@dataclass(frozen=True, kw_only=True)
class Shardable:
    """How one audit counts whole groups, and reads the sum of such counts."""

    count: Callable[[pl.LazyFrame, AuditOptions, pl.Expr | None], Sums]  # the last: see `ends`
    read: Callable[[Sums, pl.LazyFrame, AuditOptions], AuditRecord]  # the second: the whole archive
    ends: Callable[[pl.LazyFrame], pl.Expr] | None = None  # asked of the whole archive; None: nothing is


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is counted of one shard."""

    shard: Shard
    apart: pl.Series  # ids of groups that do not lie in one shard
    takes: bool  # those groups alone, or all others
    names: tuple[str, ...]  # audits
    options: AuditOptions
    ends: Ends = field(default_factory=dict)


def _gate_sums(rows: pl.LazyFrame, options: AuditOptions, end: pl.Expr | None) -> Sums:
    counts = count_gate(rows, options, end)
    return counts.kinds, counts.draws, counts.problems


def _length_sums(rows: pl.LazyFrame, options: AuditOptions, end: pl.Expr | None) -> Sums:
    counts = count_lengths(rows, end)
    return counts.histogram, counts.clusters, counts.channel, counts.ends


def _dilution_sums(rows: pl.LazyFrame, options: AuditOptions, end: pl.Expr | None) -> Sums:
    counts = count_dilution(rows)
    return counts.batches, counts.problems


def _known(sums: Counts | None) -> Counts:
    assert sums is not None, "every shard has every column of the archive"
    return sums


def _read_gate(sums: Sums, rows: pl.LazyFrame, options: AuditOptions) -> AuditRecord:
    return read_gate(GateCounts(kinds=_known(sums[0]), draws=_known(sums[1]), problems=sums[2]), options)


def _read_lengths(sums: Sums, rows: pl.LazyFrame, options: AuditOptions) -> AuditRecord:
    histogram, clusters, channel, ends = sums
    found = LengthCounts(histogram=_known(histogram), clusters=clusters, channel=channel, ends=ends)
    return read_lengths(found, options)


def _read_dilution(sums: Sums, rows: pl.LazyFrame, options: AuditOptions) -> AuditRecord:
    found = DilutionCounts(batches=_known(sums[0]), problems=sums[1])
    return read_dilution(found, main_score(columns_of(rows)), options)


def _read_clones(sums: Sums, rows: pl.LazyFrame, options: AuditOptions) -> AuditRecord:
    names = columns_of(rows)
    shared, num_keys = shared_keys(rows, names)
    return read_clones(_known(sums[0]), compared_by(names), options, shared_keys=shared, num_keys=num_keys)


SHARDED: Mapping[str, Shardable] = {
    "gate": Shardable(count=_gate_sums, read=_read_gate, ends=end_of_course),
    "dilution": Shardable(count=_dilution_sums, read=_read_dilution),
    "clones": Shardable(count=lambda rows, options, end: (count_clones(rows),), read=_read_clones),
    "words": Shardable(
        count=lambda rows, options, end: (count_words(rows),),
        read=lambda sums, rows, options: read_words(_known(sums[0]), grade_column(columns_of(rows)), options),
    ),
    "lengths": Shardable(count=_length_sums, read=_read_lengths, ends=channel_ends),
    "siblings": Shardable(
        count=lambda rows, options, end: (count_siblings(rows, options),),
        read=lambda sums, rows, options: read_siblings(_known(sums[0]), columns_of(rows), options),
    ),
    "opening": Shardable(
        count=lambda rows, options, end: (count_opening(rows, options), count_first(rows)),
        read=lambda sums, rows, options: read_opening(
            _known(sums[0]), _known(sums[1]), "token_ids" in columns_of(rows), options
        ),
    ),
}


def count_shard(task: Task) -> Found:
    """The sums of one shard, wherever this runs."""
    require_paths(task.shard.paths, _REMEDY)
    rows = task.shard.rows
    if task.apart.len():
        is_apart = pl.col("group_id").is_in(task.apart.implode(), nulls_equal=True)
        rows = rows.filter(is_apart if task.takes else ~is_apart)
    return {name: SHARDED[name].count(rows, task.options, task.ends.get(name)) for name in task.names}


def tasks_of(archive: Archive, names: Sequence[str], options: AuditOptions, *, num_shards: int) -> list[Task]:
    """Every row of the archive in exactly one task, and every group as well."""
    shards = archive.shards(num_shards)
    if not shards:
        return []
    apart = split_groups([shard.rows for shard in shards])
    sent = replace(options, recheck=None)  # asks a process of this machine; no audit of SHARDED calls it
    ends = {name: find(archive.rows) for name in names if (find := SHARDED[name].ends) is not None}
    one = Task(shard=shards[0], apart=apart, takes=False, names=tuple(names), options=sent, ends=ends)
    tasks = [replace(one, shard=shard) for shard in shards]
    if apart.len():
        every = Shard(
            rows=pl.concat([shard.rows for shard in shards]), paths=tuple(path for s in shards for path in s.paths)
        )
        tasks.append(replace(one, shard=every, takes=True))
    return tasks


def split_groups(shards: Sequence[pl.LazyFrame]) -> pl.Series:
    """Ids of groups with rows in more than one shard, sorted.

    Example:
        >>> halves = [pl.LazyFrame({"group_id": ids}) for ids in (["a", "a", "b"], ["b", "c"])]
        >>> split_groups(halves).to_list()
        ['b']
    """
    marked = [rows.select("group_id", shard=pl.lit(place, pl.UInt32)) for place, rows in enumerate(shards)]
    if len(marked) < 2:
        return pl.Series("group_id", [], dtype=pl.String)
    spread = pl.concat(marked).group_by("group_id").agg(apart=pl.col("shard").min() != pl.col("shard").max())
    return spread.filter("apart").select("group_id").sort("group_id").collect(engine="streaming")["group_id"]


def summed(parts: Iterable[Found]) -> Found:
    """The sums of all shards, audit by audit."""
    found = list(parts)
    return {name: tuple(map(_merged, zip(*(part[name] for part in found), strict=True))) for name in found[0]}


def _merged(parts: Iterable[Counts | None]) -> Counts | None:
    known = [part for part in parts if part is not None]
    return merge(known) if known else None


class ShardedAsk:
    """Answers like `questions.ask`: sums counted by `count`, the others asked of the whole archive here."""

    def __init__(
        self, names: Iterable[str], count: Callable[[list[Task]], Iterator[Found]], *, num_shards: int
    ) -> None:
        self._names, self._count, self._num_shards = [n for n in names if n in SHARDED], count, num_shards
        self._held: tuple[Archive, Found] | None = None

    def __call__(self, name: str, archive: Archive, options: AuditOptions) -> AuditRecord:
        """One audit of an archive; its sums are counted with those of every other audit that is wanted."""
        if name not in self._names or archive.summaries is not None or lacks_of(name, archive, options):
            return ask(name, archive, options)
        if self._held is None or self._held[0] is not archive:
            names = [other for other in self._names if not lacks_of(other, archive, options)]
            tasks = tasks_of(archive, names, options, num_shards=self._num_shards)
            if not tasks:
                return ask(name, archive, options)
            self._held = (archive, summed(self._count(tasks)))
        return SHARDED[name].read(self._held[1][name], archive.rows, options)


def audit_on(
    cluster: Cluster, archive: Archive, *, options: AuditOptions, only: Sequence[str], observe: Observer
) -> AuditReport:
    """`audit` with the shards counted on a cluster; the report is equal."""

    def count(tasks: list[Task]) -> Iterator[Found]:
        found = cluster.each(count_shard, [(task,) for task in tasks], _ONE_CORE)
        for done, sums in enumerate(found, start=1):
            if tasks[0].options.by == options.by:  # of the whole; parts of it are told by their values
                observe(0, f"shard {done} of {len(tasks)}")
            yield sums

    sharded = ShardedAsk(only or AUDITS, count, num_shards=SHARDS_PER_CPU * cluster.num_cpus)
    return audit(archive, options=options, only=only, observe=observe, ask=sharded)
