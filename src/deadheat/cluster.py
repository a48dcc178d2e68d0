"""Ray, for whoever asks for it: a cluster to hand calls to, what came back, and what its workers said meanwhile.

An address in RAY_ADDRESS, or a cluster that runs on this machine, is connected to; without either, one of this machine's
cores is started and ended. Ray is an optional extra and is not imported before a cluster is opened. Nothing is tried
twice: what a worker's death means is for the caller to say.
"""

import importlib
import pickle
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from deadheat.errors import ClusterError, ConfigError

T = TypeVar("T")

_LOOK_S = 1.0  # how long a wait lasts before an interrupt is noticed
_STOP_S = 30.0  # how long a stopped call may take to leave


class Executor(StrEnum):
    """Where the parts of a job run."""

    LOCAL = "local"  # on this machine
    RAY = "ray"  # on a Ray cluster, which may be this machine


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What one call occupies of a node."""

    num_cpus: int = 1
    num_gpus: int = 0
    environment: Mapping[str, str] | None = None  # variables of its process; None: those of the cluster


class Cluster:
    """A Ray cluster. `open_cluster` makes one."""

    def __init__(self, ray: ModuleType) -> None:
        self._ray = ray

    @property
    def num_cpus(self) -> int:
        """Cores of all nodes."""
        return int(self._ray.cluster_resources().get("CPU", 0))

    @property
    def has_gpus(self) -> bool:
        """Whether any node has one."""
        return bool(self._ray.cluster_resources().get("GPU", 0))

    def start(self, function: Callable[..., Any], *arguments: object, resources: Resources) -> Any:
        """Calls a module's function on some node; a ticket for what it returns. A call that fits no node is refused."""
        self._require(resources)
        remote = self._ray.remote(function).options(
            num_cpus=resources.num_cpus,
            num_gpus=resources.num_gpus,
            max_retries=0,
            runtime_env={"env_vars": dict(resources.environment)} if resources.environment else None,
        )
        return remote.remote(*arguments)

    def each(self, function: Callable[..., T], calls: Sequence[tuple[Any, ...]], resources: Resources) -> Iterator[T]:
        """What a function returns of each tuple of arguments, in the order in which the calls end."""
        waiting = [self.start(function, *arguments, resources=resources) for arguments in calls]
        try:
            while waiting:
                for ticket in self.ready(waiting, timeout_s=_LOOK_S):
                    waiting.remove(ticket)
                    yield self.result(ticket)
        finally:
            self.stop(waiting)

    def ready(self, tickets: Sequence[Any], *, timeout_s: float) -> list[Any]:
        """Tickets of calls that have ended; waits until one has, or for `timeout_s`."""
        return list(self._ray.wait(list(tickets), num_returns=1, timeout=timeout_s)[0])

    def result(self, ticket: Any) -> Any:
        """What a call returned; what it raised is raised here, and a lost worker is a `ClusterError`."""
        try:
            return self._ray.get(ticket)
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            raise (cause if isinstance(cause, Exception) else ClusterError(str(error))) from error
        except self._ray.exceptions.RayError as error:
            words = next(iter(str(error).strip().splitlines()), "it says no more")
            raise ClusterError(
                f"the Ray worker was lost ({type(error).__name__}: {words}); out of memory is the usual cause"
            ) from error

    def stop(self, tickets: Sequence[Any]) -> None:
        """Ends calls that are still running, and waits until they are gone."""
        for ticket in tickets:
            self._ray.cancel(ticket, force=True)
        if tickets:
            self._ray.wait(list(tickets), num_returns=len(tickets), timeout=_STOP_S)

    def mailbox(self) -> "Mailbox":
        """Where calls put what they have to say before they end."""
        queue = importlib.import_module("ray.util.queue")
        return Mailbox(queue.Queue(actor_options={"num_cpus": 0}))

    def _require(self, resources: Resources) -> None:
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        if any(node.get("CPU", 0) >= resources.num_cpus and node.get("GPU", 0) >= resources.num_gpus for node in nodes):
            return
        have = "; ".join(f"{node.get('CPU', 0):.0f} cores and {node.get('GPU', 0):.0f} GPUs" for node in nodes)
        raise ClusterError(
            f"no node of the Ray cluster has {resources.num_cpus} cores and {resources.num_gpus} GPUs at once (they have "
            f"{have}). Ask for fewer threads a run, or add a larger node"
        )


class Mailbox:
    """Messages from running calls, in the order in which each sent them."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue

    def put(self, message: object) -> None:
        """Sends one message; for the calls."""
        self._queue.put(
            pickle.dumps(message)
        )  # as bytes: the queue's own process need not import what a message is made of

    def take(self) -> list[Any]:
        """What has come since the last time; for whoever waits."""
        return [pickle.loads(message) for message in self._queue.get_nowait_batch(self._queue.qsize())]


@contextmanager
def open_cluster() -> Iterator[Cluster]:
    """The cluster there is, or one of this machine's cores for as long as the block runs."""
    ray = _ray()
    if ray.is_initialized():
        yield Cluster(ray)
        return
    try:
        ray.init(log_to_driver=False, logging_level="ERROR", include_dashboard=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ClusterError(
            f"Ray could not be reached or started ({error}). Set RAY_ADDRESS to a running cluster, or to local to "
            "start one here; where the cluster asks for a token, give it as Ray's own documentation says"
        ) from error
    try:
        yield Cluster(ray)
    finally:
        ray.shutdown()


def require_paths(paths: Sequence[Path], remedy: str) -> None:
    """A `ClusterError` that names the first path this node cannot see."""
    for path in paths:
        if not path.exists():
            raise ClusterError(f"the worker on {socket.gethostname()} cannot see {path}; {remedy}")


def _ray() -> ModuleType:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ConfigError(
            f"Ray cannot be imported ({error}); --executor ray needs it: pip install 'deadheat[ray]'"
        ) from error
