"""Addressable randomness: every draw is a pure function of a key, a position and, where needed, a token.

Derivation (version 1). `key` = first 8 bytes, big-endian, of SHA-256(message), where message is
`u16(len(domain)) ‖ domain ‖ field ‖ field ‖ …` and a field is `u32(len) ‖ UTF-8 bytes` for text and `u64` for an
integer (negative integers are refused). All integers are big-endian.

A rollout key hashes, in this order: master seed, purpose, task, problem digest, step (0 for evaluation), sample index.
It never hashes the arm, the worker, the batch, the host or the model: arms of a race share their draws.

Counter streams from a key (all arithmetic modulo 2^64):

    mix64(x):  x ^= x>>30; x *= 0xBF58476D1CE4E5B9; x ^= x>>27; x *= 0x94D049BB133111EB; x ^= x>>31
    k_t        = key XOR mix64(0x9E3779B97F4A7C15·(t+1))
    u53(key,t) = mix64(k_t) >> 11                          uniform(key, t) = u53 / 2^53
    u53(key,t,token) = mix64(k_t XOR mix64(0xD1B54A32D192ED03·(token+1))) >> 11
    gumbel     = −ln(−ln(u53/2^53 + 2^−54))

Integer-exact on every platform; golden vectors in tests/golden/keys.json. mix64 is the finaliser of SplitMix64
(Steele, Lea and Flood 2014, variant 13 of Stafford).
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from deadheat.types import Purpose as Purpose

DOMAIN_ROLLOUT = "deadheat/rollout/v1"
DOMAIN_STREAM = "deadheat/stream/v1"
U53 = 2**53

_MASK = 2**64 - 1
POSITION = 0x9E3779B97F4A7C15
TOKEN = 0xD1B54A32D192ED03
MIX_A = 0xBF58476D1CE4E5B9
MIX_B = 0x94D049BB133111EB


def derive(domain: str, *fields: str | int) -> int:
    """64-bit key of a domain label and its fields (see the module's docstring).

    Example:
        >>> hex(derive("deadheat/stream/v1", 7, "bootstrap"))
        '0xc105259d0935a1e4'
    """
    label = domain.encode()
    message = len(label).to_bytes(2, "big") + label + b"".join(map(_field, fields))
    return int.from_bytes(hashlib.sha256(message).digest()[:8], "big")


def _field(value: str | int) -> bytes:
    if isinstance(value, str):
        data = value.encode()
        return len(data).to_bytes(4, "big") + data
    if not 0 <= value <= _MASK:
        raise ValueError(f"key field is {value}; wanted an integer in [0, 2^64)")
    return value.to_bytes(8, "big")


def rollout_key(*, seed: int, purpose: Purpose, task: str, problem_digest: str, step: int, sample: int) -> int:
    """The address of one rollout's randomness. Extra draws continue `sample`; evaluation uses step 0."""
    return derive(DOMAIN_ROLLOUT, seed, purpose.value, task, problem_digest, step, sample)


def stream_key(seed: int, label: str, *fields: str | int) -> int:
    """Key of a named stream that is not a rollout: shuffles, permutations, bootstraps, initialisation."""
    return derive(DOMAIN_STREAM, seed, label, *fields)


def mix64(x: int) -> int:
    """The 64-bit mixer.

    Example:
        >>> mix64(0), hex(mix64(1))
        (0, '0x5692161d100b05e5')
    """
    x &= _MASK
    x = ((x ^ (x >> 30)) * MIX_A) & _MASK
    x = ((x ^ (x >> 27)) * MIX_B) & _MASK
    return x ^ (x >> 31)


def position_key(key: int, position: int) -> int:
    """k_t: the key of one position, from which its uniform or its tokens' uniforms follow."""
    return key ^ mix64(POSITION * (position + 1))


def uniform53(key: int, position: int) -> int:
    """The position's uniform as an integer in [0, 2^53).

    Example:
        >>> [uniform53(0x4FF47A90746F7B8D, t) for t in range(2)]
        [4397423536330391, 366555233683200]
    """
    return mix64(position_key(key, position)) >> 11


def uniform(key: int, position: int) -> float:
    """The position's uniform in [0, 1)."""
    return uniform53(key, position) / U53


def mix64_array(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`mix64` of every element; a new array."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(MIX_A)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(MIX_B)
    return x ^ (x >> np.uint64(31))


def uniforms(key: int, count: int) -> NDArray[np.float64]:
    """[count] uniforms in [0, 1) at positions 0, 1, …: equal to `uniform` at each."""
    positions = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(POSITION)
    mixed = mix64_array(np.uint64(key) ^ mix64_array(positions))
    return (mixed >> np.uint64(11)).astype(np.float64) / U53


def token_salts(num_tokens: int) -> NDArray[np.uint64]:
    """[V] mix64(0xD1B5…·(token+1)): the part of a token's uniform that depends on the token alone."""
    return mix64_array(np.arange(1, num_tokens + 1, dtype=np.uint64) * np.uint64(TOKEN))


def token_uniforms53(key: int, position: int, salts_V: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """[V] the uniforms of every token at one position, as integers in [0, 2^53)."""
    return mix64_array(np.uint64(position_key(key, position)) ^ salts_V) >> np.uint64(11)


def gumbel(u53: NDArray[np.uint64]) -> NDArray[np.float64]:
    """−ln(−ln(u + 2^−54)): standard Gumbel noise of 53-bit uniforms."""
    return -np.log(-np.log(u53.astype(np.float64) / U53 + 2.0**-54))


def permutation(key: int, count: int) -> NDArray[np.int64]:
    """A keyed permutation of 0 … count−1: the stable argsort of `count` 53-bit uniforms."""
    return np.argsort(uniforms(key, count), kind="stable")


def generator(key: int) -> np.random.Generator:
    """A NumPy generator of its own (Philox, keyed) for bulk draws such as bootstrap weights. Never the global one."""
    return np.random.Generator(np.random.Philox(key=key))
