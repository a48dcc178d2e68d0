"""Keys: golden vectors anyone can reproduce, recomputed here from SHA-256 and integers alone."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from deadheat.sampling import keys as k
from deadheat.sampling.draws import pick_by_weight

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "keys.json").read_text())
KEY = int(GOLDEN["key"], 16)


def test_uniforms_match_the_golden_vectors_one_by_one_and_in_bulk():
    assert [k.uniform53(KEY, t) for t in range(4)] == GOLDEN["uniform53"]
    assert (k.uniforms(KEY, 4) * 2**53).astype(int).tolist() == GOLDEN["uniform53"]
    assert k.token_uniforms53(KEY, 0, k.token_salts(3)).tolist() == GOLDEN["token_uniforms53_position_0"]
    weights = np.array(GOLDEN["inverse_cdf"]["weights"], dtype=np.uint64)
    assert [pick_by_weight(weights, u) for u in GOLDEN["uniform53"]] == GOLDEN["inverse_cdf"]["tokens"]


def test_the_mixer_matches_the_golden_vectors():
    assert {x: hex(k.mix64(int(x))) for x in GOLDEN["mix64"]} == GOLDEN["mix64"]
    words = np.array([int(x) for x in GOLDEN["mix64"]], dtype=np.uint64)
    assert [hex(int(x)) for x in k.mix64_array(words)] == list(GOLDEN["mix64"].values())


@pytest.mark.parametrize("vector", GOLDEN["derive"])
def test_derivation_matches_the_golden_vectors(vector):
    assert hex(k.derive(vector["domain"], *vector["fields"])) == vector["key"]


@pytest.mark.parametrize("vector", GOLDEN["rollout_key"])
def test_rollout_keys_match_their_golden_vectors_and_their_written_layout(vector):
    fields = {name: value for name, value in vector.items() if name != "key"}
    key = k.rollout_key(**{**fields, "purpose": k.Purpose(fields["purpose"])})
    assert hex(key) == vector["key"]
    # u16 length and domain, then seed u64, purpose, task and digest as u32 length and bytes, step u64, sample u64
    texts = [b"deadheat/rollout/v1", *(fields[f].encode() for f in ("purpose", "task", "problem_digest"))]
    message = len(texts[0]).to_bytes(2, "big") + texts[0] + fields["seed"].to_bytes(8, "big")
    message += b"".join(len(text).to_bytes(4, "big") + text for text in texts[1:])
    message += fields["step"].to_bytes(8, "big") + fields["sample"].to_bytes(8, "big")
    assert key == int.from_bytes(hashlib.sha256(message).digest()[:8], "big")


def test_a_negative_or_too_large_field_is_refused():
    for field in (-1, 2**64):
        with pytest.raises(ValueError, match=r"wanted an integer in \[0, 2\^64\)"):
            k.derive("d", field)


def test_a_permutation_holds_every_index_once_and_depends_on_its_key():
    one, two, other = k.permutation(1, 50), k.permutation(1, 50), k.permutation(2, 50)
    assert sorted(one.tolist()) == list(range(50))
    assert one.tobytes() == two.tobytes() != other.tobytes()
