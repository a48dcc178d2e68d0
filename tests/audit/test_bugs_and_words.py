"""Clones, words against grades, contested references, caps: groups whose truth is built in."""

import polars as pl
import pytest

from deadheat.audit import AuditOptions, Missing, caps, clones, contested, words


def _texts(groups, *texts: list[str], rewards: list[list[float]] | None = None, **shared: object) -> pl.LazyFrame:
    rows = groups(*(rewards or [[0.0] * len(t) for t in texts]), **shared)
    return rows.with_columns(pl.Series("completion", [text for members in texts for text in members]))


# Clones


def test_copies_are_counted_inside_groups_only(groups):
    # aab: one copy; abc: none; aaaa: three copies, a whole group; the a of one group is no copy of another's.
    found = clones(_texts(groups, ["a", "a", "b"], ["a", "b", "c"], ["a"] * 4), AuditOptions())
    assert (found.rollouts.estimate, found.rollouts.n) == (pytest.approx(4 / 10), 10)
    assert found.groups.estimate == pytest.approx(2 / 3)
    assert found.whole_groups.estimate == pytest.approx(1 / 3)
    assert found.compared == "completion"


def test_token_ids_tell_texts_apart_that_look_the_same(groups):
    rows = _texts(groups, ["ab", "ab"]).with_columns(token_ids=pl.Series([[1, 2], [3]]))
    found = clones(rows, AuditOptions())
    assert (found.compared, found.rollouts.estimate) == ("token_ids", 0.0)


def test_a_seed_under_two_prompts_is_a_bug_and_one_shared_by_arms_is_not(groups):
    rows = _texts(groups, ["a", "b"], ["c", "d"]).with_columns(key=pl.Series([1, 2, 2, 3]))
    found = clones(rows, AuditOptions())
    assert (found.num_shared_keys, found.num_keys) == (1, 3)
    assert "a bug" in found.sentence
    same_problem = rows.with_columns(problem_id=pl.lit("p"))  # two arms draw one problem with the same keys
    assert clones(same_problem, AuditOptions()).num_shared_keys == 0


def test_terminal_leaves_and_rescued_winners_copy_on_purpose(groups):
    rows = _texts(groups, ["a", "a", "b"]).with_columns(category=pl.Series(["terminal", None, None]))
    found = clones(rows, AuditOptions())
    assert (found.rollouts.estimate, found.num_exempt) == (0.0, 1)


# Words against grades


def test_distinct_words_of_one_grade_are_a_share_of_groups(groups):
    rows = _texts(
        groups,
        ["a", "b", "c"],  # distinct, one grade
        ["a", "b", "b"],  # two texts, one grade
        ["a", "b", "c"],  # distinct, two grades
        ["a", "a", "a"],  # one text: no group of distinct texts
        rewards=[[0.0] * 3, [1.0] * 3, [1.0, 0.0, 0.0], [0.0] * 3],
    )
    found = words(rows, AuditOptions())
    assert (found.same_grade.estimate, found.same_grade.n) == (pytest.approx(2 / 3), 3)
    assert (found.all_distinct.estimate, found.all_distinct.n) == (0.5, 2)
    assert (found.of_all_groups.estimate, found.of_all_groups.n) == (0.5, 4)


def test_the_unparsed_share_stands_beside_the_words(groups):
    rows = _texts(groups, ["a", "b"], ["c", "d"]).with_columns(parsed=pl.Series([True, False, True, True]))
    assert words(rows, AuditOptions()).unparsed.estimate == 0.25


# Contested references


def _answers(groups, *answers: list[str | None], rewards: list[list[float]], **shared: object) -> pl.LazyFrame:
    return groups(*rewards, **shared).with_columns(pl.Series("answer", [a for members in answers for a in members]))


def test_half_a_group_agreeing_on_a_wrong_answer_contests_the_reference(groups):
    rows = _answers(
        groups,
        ["5", "5", "6", None],  # two of four agree on 5, both wrong: contested
        ["5", "6", "7", "8"],  # no half agrees
        ["5", "5", "5", "9"],  # three agree, and are right
        ["5", "5", "9", "9"],  # one of the 5s is graded right: the grader, not the reference; the 9s contest it
        rewards=[[0.0] * 4, [0.0] * 4, [1.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]],
    )
    found = contested(rows, AuditOptions())
    assert (found.rate.estimate, found.rate.n) == (0.5, 4)
    assert [(case.group_id, case.answer, case.num_agree) for case in found.cases] == [("g0", "5", 2), ("g3", "9", 2)]


def test_contested_groups_are_told_by_who_wrote_the_reference(groups):
    rows = _answers(groups, ["5", "5", "6"], ["5", "6", "7"], rewards=[[0.0] * 3] * 2, source=["voted", "human"])
    by_source = contested(rows, AuditOptions(reference_source="source")).by_source
    assert {cell.where["source"]: cell.share.estimate for cell in by_source} == {"voted": 1.0, "human": 0.0}
    in_json = rows.drop("source").with_columns(columns=pl.lit('{"source": "voted"}'))
    (cell,) = contested(in_json, AuditOptions(reference_source="source")).by_source
    assert (cell.where["source"], cell.share.estimate) == ("voted", 0.5)


def test_a_second_verifier_finds_the_answers_the_first_one_missed(groups):
    rows = _answers(groups, ["1/2", "1/2"], ["3", "3"], rewards=[[0.0] * 2] * 2, reference="0.5")
    found = contested(rows, AuditOptions(recheck=lambda reference, answer: answer == "1/2"))
    assert (found.verifier_misses.estimate, found.verifier_misses.n) == (0.5, 2)
    assert {case.answer: case.second_verifier for case in found.cases} == {"1/2": "right", "3": "wrong"}


# Caps


def test_capped_failures_and_steps_are_counted_in_live_groups(groups):
    # Step 1: live, its one failure capped. Step 2: live, one failure of two capped. Step 3: tied, no signal.
    rows = groups([1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0], step=[1, 2, 3]).with_columns(
        stop=pl.Series(["stop", "cap", "stop", "cap", "stop", "cap", "cap"])
    )
    found = caps(rows, AuditOptions())
    assert found.rollouts.estimate == pytest.approx(4 / 7)
    assert (found.failures.estimate, found.failures.n) == (pytest.approx(2 / 3), 3)
    assert (found.steps.estimate, found.steps.n) == (0.5, 2)
    assert found.told_by == "stop reasons"


def test_without_stop_reasons_a_stated_cap_tells_and_the_record_says_so(groups):
    rows = groups([1.0, 0.0]).with_columns(length=pl.Series([3, 8]))
    assert caps(rows, AuditOptions(cap=8)).told_by == "the stated cap of 8"
    assert caps(rows, AuditOptions(cap=8)).failures.estimate == 1.0


def test_without_either_the_audit_says_what_it_lacks(groups):
    found = caps(groups([1.0, 0.0]), AuditOptions())
    assert isinstance(found, Missing)
    assert "`stop` or `--cap`" in found.sentence
    longer = groups([1.0, 0.0]).with_columns(length=pl.Series([3, 80]))
    assert "up to 80 tokens long" in caps(longer, AuditOptions(cap=8)).sentence


def test_divergent_pairs_count_where_they_share_a_prefix_and_warm_up_apart(groups):
    rows = groups([1.0, 0.0, 1.0, 0.0, 1.0, 1.0], [0.0, 1.0], step=[5, 1]).with_columns(
        stop=pl.Series(["stop", "cap", "stop", "cap", "stop", "stop", "cap", "stop"]),
        pair=pl.Series(["0", "0", "1", "1", "2", "2", "0", "0"]),
        prefix_length=pl.Series([4, 4, 0, 0, 4, 4, 3, 3]),
    )
    found = caps(rows, AuditOptions(warm_up=3))
    assert (found.pairs.estimate, found.pairs.n) == (1.0, 1)  # pair 0 of step 5; pair 1 shares nothing; pair 2 agrees
    assert (found.warm_up_pairs.n, found.num_unshared_pairs) == (1, 1)


def test_an_earlier_cap_sorts_the_finally_right_by_what_stood_there(groups):
    texts = [
        "work work work work \\boxed{7}",  # no marker in the first half: unboxed
        "\\boxed{5} no, wait, \\boxed{7}",  # another answer in the first half: wrong
        "\\boxed{7} and that is all there is",  # already right
        "short \\boxed{7}",  # not longer than the earlier cap
        "\\boxed{5}, as is easily seen by all",  # longer, and wrong in the end
    ]
    rows = groups([1.0, 1.0, 1.0, 1.0, 0.0]).with_columns(
        completion=pl.Series(texts), length=pl.Series([10, 10, 10, 5, 10]), stop=pl.lit("stop")
    )
    found = caps(rows, AuditOptions(cap=5)).earlier
    assert (found.longer.estimate, found.finally_right.estimate) == (0.8, 0.75)
    assert (found.num_unboxed, found.num_wrong_or_unclosed, found.num_already_right) == (1, 1, 1)
    assert found.lost.estimate == pytest.approx(2 / 3)
    assert "characters" in found.cut
    assert [(case.kind, case.answer_at_cap, case.answer_at_end) for case in found.cases] == [
        ("unboxed", None, "7"),
        ("wrong", "5", "7"),
        ("right", "7", "7"),
    ]
    assert [(case.marker_at_cap, case.marker_at_end) for case in found.cases] == [(-1, 20), (0, 20), (0, 0)]


def test_with_a_decoder_the_earlier_cap_is_cut_by_tokens(groups):
    rows = groups([1.0]).with_columns(
        completion=pl.lit("x" * 90 + "\\boxed{7}"),
        length=pl.lit(4),
        token_ids=pl.Series([[1, 2, 3, 4]]),
        stop=pl.lit("stop"),
    )
    seen = []
    options = AuditOptions(cap=2, decode=lambda ids: seen.append(list(ids)) or "\\boxed{7}")
    found = caps(rows, options).earlier
    assert (seen, found.num_already_right, found.cut) == ([[1, 2]], 1, "decoded token ids")
