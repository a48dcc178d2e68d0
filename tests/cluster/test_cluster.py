"""A Ray cluster hands calls to workers, tells what became of them, and says what it cannot do."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deadheat.cluster import Cluster, Resources, open_cluster, require_paths
from deadheat.errors import ArchiveError, ClusterError, ConfigError


@pytest.fixture
def cluster(ray_cluster: None) -> Iterator[Cluster]:
    with open_cluster() as opened:
        yield opened


def test_calls_come_back_with_their_results_in_any_order(cluster: Cluster) -> None:
    def square(number: int) -> int:
        return number * number

    found = cluster.each(square, [(n,) for n in range(5)], Resources())
    assert sorted(found) == [0, 1, 4, 9, 16]
    assert cluster.num_cpus == 2
    assert not cluster.has_gpus


def test_what_a_call_raises_is_raised_here_as_it_was(cluster: Cluster) -> None:
    def torn() -> None:
        raise ArchiveError("file 3 is torn")

    with pytest.raises(ArchiveError, match=r"^file 3 is torn$"):
        cluster.result(cluster.start(torn, resources=Resources()))


def test_a_worker_that_dies_is_a_cluster_error_and_is_not_tried_again(cluster: Cluster, tmp_path: Path) -> None:
    def die(marks: Path) -> None:
        (marks / str(os.getpid())).touch()
        os._exit(3)

    with pytest.raises(ClusterError, match=r"the Ray worker was lost \(WorkerCrashedError.*out of memory is the usual"):
        cluster.result(cluster.start(die, tmp_path, resources=Resources()))
    assert len(list(tmp_path.iterdir())) == 1


def test_a_call_that_fits_no_node_is_refused_at_once(cluster: Cluster) -> None:
    with pytest.raises(
        ClusterError, match=r"no node of the Ray cluster has 64 cores and 1 GPUs at once \(they have 2 cores"
    ):
        cluster.start(os.getpid, resources=Resources(num_cpus=64, num_gpus=1))


def test_a_call_sees_the_environment_it_was_given(cluster: Cluster) -> None:
    def threads() -> str | None:
        return os.environ.get("POLARS_MAX_THREADS")

    asked = Resources(environment={"POLARS_MAX_THREADS": "1"})
    assert cluster.result(cluster.start(threads, resources=asked)) == "1"


def test_stopped_calls_are_gone_and_messages_come_in_the_order_sent(cluster: Cluster) -> None:
    def talk_and_wait(box: object) -> None:
        import time

        for word in ("one", "two"):
            box.put(word)  # type: ignore[attr-defined]
        time.sleep(600)

    box = cluster.mailbox()
    ticket = cluster.start(talk_and_wait, box, resources=Resources())
    heard: list[str] = []
    while len(heard) < 2:
        assert cluster.ready([ticket], timeout_s=0.1) == []
        heard += box.take()
    assert heard == ["one", "two"]
    assert box.take() == []
    cluster.stop([ticket])
    with pytest.raises(ClusterError, match="lost"):
        cluster.result(ticket)


def test_the_first_file_that_a_node_cannot_see_is_named(tmp_path: Path) -> None:
    require_paths([tmp_path], "")
    with pytest.raises(ClusterError, match=r"the worker on .+ cannot see .+/nowhere; mount it"):
        require_paths([tmp_path, tmp_path / "nowhere"], "mount it")


def test_without_ray_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"--executor ray needs it: pip install 'deadheat\[ray\]'"), open_cluster():
        pass


def test_no_room_imports_ray_before_a_cluster_is_opened() -> None:
    code = "import sys, deadheat.cluster, deadheat.audit, deadheat.race, deadheat.cli; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
