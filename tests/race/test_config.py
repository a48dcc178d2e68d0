"""A race file says what it means, or is refused by the key that is wrong and the nearest one that is right."""

from pathlib import Path

import pytest

from deadheat.errors import ConfigError
from deadheat.race import RaceConfig, bundled_races, load_race, parse_race, read_race_text
from deadheat.tasks import load_task
from deadheat.types import Draw


def refused(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_race(text, source="my-race.toml")
    return str(caught.value)


def test_an_arm_differs_only_in_the_keys_it_overrides(small: RaceConfig) -> None:
    assert list(small.arms) == ["checker", "plant"]
    assert small.seeds == (1, 2)
    checker, plant = small.arms.values()
    assert (checker.scorer.kind, plant.scorer.kind) == ("checker", "plant")
    assert plant.model_copy(update={"scorer": checker.scorer}) == checker
    assert checker.eval.draw is Draw.GUMBEL_MAX


def test_an_override_deep_in_a_table_leaves_the_rest_of_the_table(small_text: str) -> None:
    race = parse_race(small_text + "policy.adapter.rank = 2\nupdate.loss = 'token_mean'\n", source="x")
    checker, plant = race.arms.values()
    assert (checker.policy.adapter.rank, plant.policy.adapter.rank) == (4, 2)
    assert plant.policy.adapter.alpha == 8 and plant.update.learning_rate == 5e-3
    assert (checker.update.loss.value, plant.update.loss.value) == ("sequence_sum", "token_mean")


def test_seeds_are_a_number_or_a_list(small_text: str) -> None:
    listed = parse_race(small_text.replace("seeds = 2", "seeds = [7, 3]"), source="x")
    assert listed.seeds == (7, 3)
    assert parse_race(small_text.replace("seeds = 2\n", ""), source="x").seeds == (1, 2, 3)


def test_a_race_without_a_name_takes_its_files(small_text: str) -> None:
    assert parse_race(small_text.replace('name = "small"\n', "", 1), source="races/mine.toml").name == "mine"


def test_a_resolved_race_is_read_back_as_it_was(small: RaceConfig) -> None:
    race = small.with_threads(2)
    assert RaceConfig.from_resolved(race.resolved()) == race
    assert [arm.threads for arm in race.arms.values()] == [1, 1], "threads given in the file stand"


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("[update]", "[updates]", "my-race.toml: unknown key 'updates'; did you mean 'update'?"),
        ("seeds = 2", "seed = 2", "unknown key 'seed'; did you mean 'seeds'?"),
        (
            "learning_rate",
            "learning_rte",
            "arm 'checker': unknown key 'update.learning_rte'; did you mean 'learning_rate'?",
        ),
        ("rank = 4", "rnk = 4", "unknown key 'policy.adapter.rnk'; did you mean 'rank'?"),
        ("steps = 4", "steps = 4\nzzz = 1", "unknown key 'stop.zzz'; valid: active_updates, patience, steps, tolera"),
        ("limit = 20", "limt = 20", "unknown key 'limt'; did you mean 'limit'?"),
        ('name = "addition"', 'name = "adition"', "no task is called 'adition'; did you mean 'addition'?"),
        ('name = "addition"', "", "[task] is"),
        ("questions_per_step = 3", 'questions_per_step = "three"', "rollouts.questions_per_step is 'three'; wanted: "),
        ("group_size = 4", "group_size = 1", "rollouts.group_size is 1; wanted: input should be greater than or equal"),
        ("learning_rate = 5e-3", "learning_rate = -1.0", "update.learning_rate is -1.0; wanted: input should be grea"),
        ('kind = "plant"', 'kind = "plnt"', "arm 'plant': scorer.kind is 'plnt'; wanted one of checker, plant"),
        (
            'draw = "gumbel_max"',
            'draw = "greedy"',
            "samples is 2 with draw = 'greedy'; wanted 1, or draw = 'gumbel_max'",
        ),
        ('name = "plant"', 'name = "checker"', "the arms are named ['checker', 'checker']; wanted a different name"),
        ('[[arm]]\nname = "plant"\n', "[[arm]]\n", "the arms are named ['checker', None]; wanted a different name"),
        ('name = "plant"', 'name = "pl/ant"', "an arm is called 'pl/ant'; wanted letters, digits"),
        ('name = "plant"', 'name = ".."', "an arm is called '..'; wanted letters, digits"),
        ('name = "small"', 'name = "../up"', "name is '../up'; wanted letters, digits"),
        ("seeds = 2", "seeds = 0", "seeds are []; wanted at least one, all different, none negative"),
        ("seeds = 2", "seeds = [1, 1]", "seeds are [1, 1]; wanted at least one, all different, none negative"),
        ("seeds = 2", "seeds = [-1]", "seeds are [-1]; wanted at least one, all different, none negative"),
        ("seeds = 2", 'seeds = "two"', "seeds is 'two'; wanted: "),
        ("[update]", "[update", "my-race.toml is not valid TOML: "),
    ],
)
def test_a_wrong_file_is_refused_by_key_with_what_was_wanted(small_text: str, old: str, new: str, wanted: str) -> None:
    assert old in small_text
    assert wanted in refused(small_text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ("look = 2", "unknown key 'verdict.look'; did you mean 'looks'?"),
        ("resamples = 4000", "unknown key 'verdict.resamples'; valid: alpha, contrasts, looks, power, within"),
        ("looks = 0", "verdict.looks is 0; wanted: input should be greater than or equal to 1"),
        ("within = 2.0", "verdict.within is 2.0; wanted: input should be less than 1"),
        ("alpha = 5", "verdict.alpha is 5; wanted: input should be less than 1"),
        (
            'contrasts = [["checker", "plnt"]]',
            "verdict.contrasts names the arm 'plnt', which is not there; did you mean",
        ),
        ("contrasts = []", "verdict.contrasts is empty; wanted pairs of arms, or the key left out for all pairs"),
        ('contrasts = [["checker", "checker"]]', "wanted two different arms each, once"),
        ('contrasts = [["checker", "plant"], ["plant", "checker"]]', "wanted two different arms each, once"),
    ],
)
def test_a_verdict_section_is_refused_by_key_and_by_the_arm_that_is_not_there(
    small_text: str, lines: str, wanted: str
) -> None:
    assert wanted in refused(f"{small_text}\n[verdict]\n{lines}\n")


@pytest.mark.parametrize("line", ["within = 0.02", "looks = 2", 'contrasts = [["checker", "checker"]]'])
def test_a_setting_that_would_do_nothing_is_refused(small_text: str, line: str) -> None:
    alone = small_text[: small_text.index('[[arm]]\nname = "plant"')]
    name = line.partition(" ")[0]
    assert f"verdict.{name} is set and there is one arm; wanted two" in refused(f"{alone}\n[verdict]\n{line}\n")


def test_a_dead_heat_is_not_asked_of_one_seed(small_text: str) -> None:
    text = small_text.replace("seeds = 2", "seeds = 1") + "\n[verdict]\nwithin = 0.02\n"
    assert "verdict.within is set and there is one seed; a dead heat wants two or more" in refused(text)


def test_contrasts_are_all_pairs_those_against_the_first_arm_first_or_those_named(small_text: str) -> None:
    three = small_text + '\n[[arm]]\nname = "flat"\n'
    assert parse_race(three, source="x").contrasts == (("checker", "plant"), ("checker", "flat"), ("plant", "flat"))
    named = parse_race(f'{three}\n[verdict]\ncontrasts = [["flat", "plant"], ["checker", "flat"]]\n', source="x")
    assert named.contrasts == (("flat", "plant"), ("checker", "flat"))
    assert RaceConfig.from_resolved(named.resolved()) == named


def test_a_race_without_arms_is_refused(small_text: str) -> None:
    assert "there is no [[arm]]; wanted at least one, and two for a comparison" in refused(
        small_text[: small_text.index("[[arm]]")]
    )


@pytest.mark.parametrize("line", ["arm = 3", 'arm = "x"', "arm = [1, 2]", "policy = 3", "verdict = 1", "stop = []"])
def test_a_section_of_the_wrong_shape_is_refused_in_words(small_text: str, line: str) -> None:
    name = line.partition(" ")[0]
    head, _, _ = small_text.partition("[policy]")
    arms = "" if name == "arm" else '\n[[arm]]\nname = "a"\npolicy.model = "tiny:addition"\ntask.name = "addition"\n'
    said = refused(f"{head}{line}\n{arms}")
    assert said.startswith("my-race.toml") and name in said


def test_an_unknown_reasoning_gym_data_set_is_refused_with_the_nearest_name(small_text: str) -> None:
    text = small_text.replace('name = "addition"\nlimit = 20\nheld_out = 100', 'name = "reasoning-gym:leg_countng"')
    with pytest.raises(ConfigError, match=r"leg_countng.*leg_counting"):
        for arm in parse_race(text, source="x").arms.values():
            load_task(arm.task)


@pytest.mark.parametrize("name", bundled_races())
def test_every_bundled_race_parses_and_its_tasks_build(name: str) -> None:
    race = load_race(name)
    assert race.name == name and race.question.endswith("?")
    assert len(race.arms) >= 2 and len(race.seeds) >= 3
    for arm in race.arms.values():
        assert len(load_task(arm.task).held_out) >= arm.eval.pool


def test_the_bundled_races_of_the_tutorial_are_there() -> None:
    assert {"addition", "cipher", "tiny"} <= set(bundled_races())


def test_a_race_that_is_not_there_is_refused_with_the_bundled_names(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no race is called 'adition'; did you mean 'addition'\? Or give the path"):
        read_race_text("adition")
    with pytest.raises(ConfigError, match=r"cannot read .*gone\.toml: No such file or directory\. Wanted a race file"):
        read_race_text(str(tmp_path / "gone.toml"))


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_bytes(b"\xff\xfe\x00name")
    with pytest.raises(ConfigError, match=r"odd\.toml"):
        read_race_text(str(tmp_path / "odd.toml"))
