"""Lines in bounded memory, values of other tools, and the temporary shards."""

import io
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deadheat.archive.readers.stream import lines_of
from deadheat.archive.readers.summary import smallest_size
from deadheat.archive.readers.values import reward_of, text_of

from .logs import write_lines


class Dribble(io.BytesIO):
    """A stream that gives its bytes in pieces of a few, as a decompressor may."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self._size = size

    def read1(self, size: int | None = -1) -> bytes:
        return self.read(self._size)


@given(data=st.text(alphabet="ab\n\r é", max_size=60), size=st.integers(1, 7), limit=st.integers(1, 12))
def test_lines_are_the_same_however_the_bytes_arrive(data, size, limit):
    raw = data.encode()
    pieces = raw.split(b"\n")
    wanted = [piece.decode() if len(piece) <= limit else None for piece in (pieces if pieces[-1] else pieces[:-1])]
    found = list(lines_of(Dribble(raw, size), limit_bytes=limit))
    assert [line.text for line in found] == wanted
    assert [line.number for line in found] == list(range(1, len(found) + 1))
    assert sum(line.num_bytes for line in found) == len(raw) - raw.count(b"\n")
    assert all(line.ended for line in found[:-1])


@given(st.floats())
def test_a_reward_has_a_value_or_a_reason_never_both(value):
    for form in (value, str(value), [value]):
        reward = reward_of(form)
        assert (reward.value is None) == (reward.unscored is not None)


@given(st.text())
def test_text_of_anything_can_be_stored(text):
    stored = text_of(text)
    assert stored is not None
    assert stored.encode("utf-8").decode() == stored


@given(size=st.integers(2, 64), counts=st.lists(st.integers(0, 64), min_size=1, max_size=30))
def test_the_size_found_from_means_explains_them_all(size, counts):
    means = [round(min(count, size) / size, 6) for count in counts]  # as a log rounds them
    found = smallest_size(means)
    assert found is not None
    assert found <= size
    assert max(abs(mean - round(mean * found) / found) for mean in means) < 2e-6


def test_shards_go_when_the_process_ends(tmp_path):
    path = write_lines(tmp_path / "t.jsonl", [{"group": 1, "reward": n} for n in range(3)])
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    code = (
        "import sys, pathlib, deadheat\n"
        "options = deadheat.ReadOptions(scratch=pathlib.Path(sys.argv[2]))\n"
        "rows = deadheat.read(sys.argv[1], options=options).rows\n"  # the archive itself is gone
        "print(rows.collect().height, len(list(pathlib.Path(sys.argv[2]).iterdir())))\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code, path, scratch], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, ["3", "1"]), done.stderr
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("value", "wanted"), [([0.5, None], None), ([], None), ("1e3", 1000.0), ("", None), ({}, None)]
)
def test_odd_rewards(value, wanted):
    assert reward_of(value).value == wanted
