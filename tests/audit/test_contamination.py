"""Finding one set of texts in another: exact against the brute-force twin, and figures printed both ways."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deadheat.audit import AuditOptions, contamination
from deadheat.audit.overlap import grams, jaccard, overlaps, overlaps_slowly

WORDS = st.lists(st.sampled_from("abc"), min_size=1, max_size=16).map(" ".join)


@settings(max_examples=150)
@given(trained=st.lists(WORDS, max_size=8), held_out=st.lists(WORDS, max_size=8))
def test_the_fast_search_finds_what_comparing_every_pair_finds(trained, held_out):
    assert overlaps(trained, held_out) == overlaps_slowly(trained, held_out)


@settings(max_examples=60)
@given(base=st.lists(st.integers(0, 40), min_size=20, max_size=60), place=st.integers(0, 59), word=st.integers(0, 40))
def test_near_twins_of_long_texts_are_found_as_the_slow_twin_does(base, place, word):
    changed = [*base]
    changed[place % len(base)] = word
    texts = [" ".join(map(str, base)), " ".join(map(str, changed)), " ".join(map(str, base[::-1]))]
    assert overlaps(texts[:1], texts) == overlaps_slowly(texts[:1], texts)


def test_case_and_spacing_do_not_hide_a_twin():
    (found,) = overlaps(["What is\n two  plus two?"], ["WHAT IS two plus two?"])
    assert (found.same_content, found.jaccard) == (True, 1.0)


def test_one_word_changed_of_a_hundred_is_a_twin_and_of_twenty_is_not():
    # 100 words: 93 grams, 8 of which hold the word: 85 shared of 101, .84. 20 words: 13 grams, 5 shared of 21.
    long, short = [str(i) for i in range(100)], [str(i) for i in range(20)]
    for words, expected in ((long, 85 / 101), (short, 5 / 21)):
        changed = [*words[:10], "other", *words[11:]]
        value = jaccard(grams(" ".join(words)), grams(" ".join(changed)))
        assert float(value) == pytest.approx(expected)
    assert len(overlaps([" ".join(long)], [" ".join([*long[:10], "x", *long[11:]])])) == 1
    assert not overlaps([" ".join(short)], [" ".join([*short[:10], "x", *short[11:]])])


def _log(held_out_prompts: list[str], right: list[bool]) -> pl.LazyFrame:
    trained = [
        {"purpose": "train", "prompt": f"Q: add {i} and {i}. A:", "problem_id": f"t{i}", "correct": True}
        for i in range(3)
    ]
    held = [
        {"purpose": "eval", "prompt": prompt, "problem_id": f"h{i}", "correct": grade}
        for i, (prompt, grade) in enumerate(zip(held_out_prompts, right, strict=True))
    ]
    return pl.LazyFrame([row | {"arm": "a", "step": 5} for row in trained + held])


def test_held_out_figures_are_printed_both_ways():
    found = contamination(_log(["Q: add 1 and 1. A:", "Q: add 8 and 9. A:"], [True, False]), AuditOptions())
    assert (found.contaminated.estimate, found.num_same_content) == (0.5, 1)
    assert (found.cases[0].held_out_id, found.cases[0].trained_id) == ("h0", "t1")
    assert (found.figures[0].all_problems.estimate, found.figures[0].clean.estimate) == (0.5, 0.0)


def test_a_template_that_all_prompts_share_makes_none_of_them_twins():
    template = "You are given a sum of two small numbers and must write nothing else than its value in digits: "
    rows = _log([template + "8 and 9"], [True]).with_columns(
        prompt=pl.when(pl.col("purpose") == "train").then(template + pl.col("problem_id")).otherwise(pl.col("prompt"))
    )
    assert contamination(rows, AuditOptions()).contaminated.estimate == 0.0
