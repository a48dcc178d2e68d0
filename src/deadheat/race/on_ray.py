"""The runs of a race as tasks of a Ray cluster: the same jobs, the same records, the same bytes as in this process.

Every node writes into the one run folder, so the folder must lie on storage that all nodes see under one path; each task
looks for this race's mark in it before it trains. A run asks for as many cores as it has threads, and for a GPU where its
device is `cuda`, or `auto` on a cluster that has GPUs. Nothing is tried twice: a run that was lost goes on with --resume.

Versions must be those of this process. Processors are not compared: float sums, and so bytes, may differ between kinds.
"""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deadheat.archive import differences
from deadheat.archive.folder import LOCK
from deadheat.cluster import Cluster, Mailbox, Resources, open_cluster, require_paths
from deadheat.errors import ClusterError, DeadheatError
from deadheat.policy import PolicyConfig
from deadheat.race.config import RaceConfig
from deadheat.race.environment import environment
from deadheat.race.executors import Failure, jobs_of, run_job
from deadheat.train import Observer, RunIdentity

_LOOK_S = 0.2  # how often progress is asked for
_COMPARED = ("deadheat", "python", "packages")
_REMEDY = "put the run folder (--out) on storage that every node of the cluster sees under one path"


@dataclass(frozen=True, kw_only=True)
class Site:
    """What every task of a race is told of where it belongs."""

    folder: Path  # run folder, absolute
    home: Path  # working directory of this process: relative paths of the race file start there
    mark: str  # what this race wrote into the folder's lock
    versions: dict[str, Any]  # of this process


def run_on_ray(race: RaceConfig, folder: Path, observe: Observer) -> list[Failure]:
    """Every job as a task; what fails in one leaves the others alone. Only an uncoupled race stops all."""
    with open_cluster() as cluster, _marked(folder) as mark:
        site = Site(folder=folder.absolute(), home=Path.cwd(), mark=mark, versions=_versions())
        return _run_all(cluster, race, site, observe)


def _run_all(cluster: Cluster, race: RaceConfig, site: Site, observe: Observer) -> list[Failure]:
    box, failures = cluster.mailbox(), list[Failure]()
    waiting: dict[Any, RunIdentity] = {}
    try:
        for job in jobs_of(race):
            arm = race.arms[job.arm]
            resources = resources_of(arm.policy, arm.threads or 1, has_gpus=cluster.has_gpus)
            waiting[cluster.start(run_here, race, job, site, box, resources=resources)] = job
        while waiting:
            ready = cluster.ready(list(waiting), timeout_s=_LOOK_S)
            for progress in box.take():
                observe(progress)
            for ticket in ready:
                failure = _outcome(cluster, ticket, waiting.pop(ticket))
                if failure is not None:
                    failures.append(failure)
                    if failure.uncoupled:
                        return failures
        return failures
    finally:
        cluster.stop(list(waiting))


def _outcome(cluster: Cluster, ticket: Any, job: RunIdentity) -> Failure | None:
    try:
        failure: Failure | None = cluster.result(ticket)
    except (DeadheatError, ImportError, OSError) as error:  # before or outside the run, which tells of its own errors
        return Failure(identity=job, message=str(error))
    return failure


def run_here(race: RaceConfig, job: RunIdentity, site: Site, box: Mailbox) -> Failure | None:
    """One run, on the node where this is called."""
    require_site(site)
    with chdir(site.home) if site.home.is_dir() else nullcontext():
        return run_job(race, job, site.folder, box.put)


def require_site(site: Site) -> None:
    """A `ClusterError` where this node sees another folder than the race's, or runs other versions."""
    host = socket.gethostname()
    require_paths([site.folder], _REMEDY)
    lock = site.folder / LOCK
    if not lock.exists() or lock.read_text(encoding="utf-8") != site.mark:
        raise ClusterError(f"the worker on {host} sees another folder at {site.folder}; {_REMEDY}")
    other = [f"{name} {there} in place of {here}" for name, here, there in differences(site.versions, _versions())]
    if other:
        raise ClusterError(f"the worker on {host} has {', '.join(other)}; install the same versions on every node")


def resources_of(policy: PolicyConfig, threads: int, *, has_gpus: bool) -> Resources:
    """What one run occupies of a node.

    Example:
        >>> resources_of(PolicyConfig(device="auto"), 4, has_gpus=True)
        Resources(num_cpus=4, num_gpus=1, environment=None)
        >>> resources_of(PolicyConfig(), 4, has_gpus=True).num_gpus
        0
    """
    on_gpu = policy.device == "cuda" or (policy.device == "auto" and has_gpus)
    return Resources(num_cpus=threads, num_gpus=int(on_gpu))


def _versions() -> dict[str, Any]:
    return {name: value for name, value in environment().items() if name in _COMPARED}


@contextmanager
def _marked(folder: Path) -> Iterator[str]:
    """This race's mark in the lock that this process holds, by which a node knows the folder."""
    lock, mark = folder / LOCK, f"{socket.gethostname()} {os.getpid()} {time.time_ns()}"
    lock.write_text(mark, encoding="utf-8")
    try:
        yield mark
    finally:
        lock.write_text("", encoding="utf-8")
