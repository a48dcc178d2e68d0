"""Finding texts of one set in another: the same content, or 8-gram Jaccard ≥ 0.8. Exact, in nearly linear time.

    canonical   NFKC, case folded, white space collapsed: the pools' own notion of the same question
    8-grams     of the words of the canonical text; a text of fewer than 8 words is one gram, itself
    Jaccard     |A ∩ B| / |A ∪ B| of the sets of grams

Two sets with J ≥ t share a gram among the first |A| − ⌈t·|A|⌉ + 1 grams of A and the first |B| − ⌈t·|B|⌉ + 1 of B, when
both are put in one order (Chaudhuri, Ganti and Kaushik 2006; Bayardo, Ma and Srikant 2007). Rare grams come first, so
nearly every list of the index has one entry, and a pair that shares none of them is never looked at. No pair is missed.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from deadheat.tasks.pools import canonical_text, content_digest

GRAM_WORDS = 8
THRESHOLD = Fraction(4, 5)

Grams = frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """One pair of texts that are the same, or nearly."""

    held_out: int  # index among the held-out texts
    trained: int  # index among the trained ones
    jaccard: float  # of their 8-grams; 1 for equal content
    same_content: bool


def grams(text: str, words: int = GRAM_WORDS) -> Grams:
    """The set of word n-grams of the canonical text.

    Example:
        >>> sorted(grams("A b  c d", 3))
        ['a b c', 'b c d']
        >>> sorted(grams("A b", 3))
        ['a b']
    """
    found = canonical_text(text).split()
    if len(found) < words:
        return frozenset((" ".join(found),))
    return frozenset(" ".join(found[i : i + words]) for i in range(len(found) - words + 1))


def jaccard(left: Grams, right: Grams) -> Fraction:
    """|A ∩ B| / |A ∪ B|, exactly.

    Example:
        >>> jaccard(frozenset("abcd"), frozenset("abce"))
        Fraction(3, 5)
    """
    shared = len(left & right)
    return Fraction(shared, len(left) + len(right) - shared)


def overlaps(trained: Sequence[str], held_out: Sequence[str], *, threshold: Fraction = THRESHOLD) -> list[Overlap]:
    """Every pair at or above the threshold, by held-out then trained index."""
    trained_grams, held_grams = ([grams(text) for text in side] for side in (trained, held_out))
    counts = Counter(gram for side in (trained_grams, held_grams) for text in side for gram in text)
    index: defaultdict[str, list[int]] = defaultdict(list)
    for place, text in enumerate(trained_grams):
        for gram in _prefix(text, counts, threshold):
            index[gram].append(place)
    digests = [content_digest(text) for text in trained]
    same: defaultdict[str, list[int]] = defaultdict(list)
    for place, digest in enumerate(digests):
        same[digest].append(place)
    found = []
    for place, text in enumerate(held_grams):
        candidates = {other for gram in _prefix(text, counts, threshold) for other in index.get(gram, ())}
        digest = content_digest(held_out[place])
        for other in sorted(candidates | set(same.get(digest, ()))):
            value, equal = jaccard(text, trained_grams[other]), digests[other] == digest
            if equal or value >= threshold:
                found.append(Overlap(held_out=place, trained=other, jaccard=float(value), same_content=equal))
    return found


def overlaps_slowly(
    trained: Sequence[str], held_out: Sequence[str], *, threshold: Fraction = THRESHOLD
) -> list[Overlap]:
    """`overlaps` by comparing every pair: its slow twin, for tests."""
    sides = [[(grams(text), content_digest(text)) for text in side] for side in (held_out, trained)]
    return [
        Overlap(held_out=i, trained=j, jaccard=float(jaccard(a, b)), same_content=digest_a == digest_b)
        for i, (a, digest_a) in enumerate(sides[0])
        for j, (b, digest_b) in enumerate(sides[1])
        if digest_a == digest_b or jaccard(a, b) >= threshold
    ]


def _prefix(text: Grams, counts: Counter[str], threshold: Fraction) -> list[str]:
    """The rarest grams, as many as a pair at the threshold cannot all avoid."""
    keep = len(text) - math.ceil(threshold * len(text)) + 1
    return sorted(text, key=lambda gram: (counts[gram], gram))[:keep]
