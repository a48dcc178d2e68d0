"""A recipe's resolved settings are the published ones, every key may be overridden, and what does nothing is refused."""

import pytest
from pydantic import ValidationError

from deadheat.race import RaceConfig, parse_race
from deadheat.train import RunConfig
from deadheat.train.recipes import recipes

BASE = {"policy": {"model": "tiny:addition"}, "task": {"name": "addition"}}

# estimator, loss, ratio, bounds below and above 1, weight of the KL term: as printed in the sources of recipes.toml.
PUBLISHED = {
    "grpo": ("standardised", "sequence_mean", "token", 0.2, 0.2, 0.04),
    "dr_grpo": ("centred", "fixed_length", "token", 0.2, 0.2, 0.0),
    "dapo": ("standardised", "token_mean", "token", 0.2, 0.28, 0.0),
    "gspo": ("standardised", "sequence_mean", "sequence", 3e-4, 4e-4, 0.0),
    "rloo": ("leave_one_out", "sequence_sum", "none", 0.2, 0.28, 0.0),  # no ratio: the bounds are unused defaults
    "reinforce_pp": ("batch_relative", "token_mean", "token", 0.2, 0.2, 0.0),
}


def resolved(**sections: object) -> RunConfig:
    return RunConfig.model_validate({**BASE, **sections})


def test_every_recipe_is_published_and_has_a_source() -> None:
    assert set(recipes()) == set(PUBLISHED)
    assert all("arXiv" in recipe.source for recipe in recipes().values())


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_the_resolved_settings_are_the_published_ones(name: str) -> None:
    run = resolved(recipe=name)
    update = run.update
    found = (
        run.credit.estimator,
        update.loss.value,
        update.importance.value,
        update.clip_low,
        update.clip_high,
        update.kl_coef,
    )
    assert found == PUBLISHED[name]
    assert RunConfig.model_validate(run.model_dump(mode="json")) == run, "a resolved run resolves to itself"


def test_gspo_has_bounds_of_its_own_and_dapo_replaces_tied_prompts_at_once() -> None:
    assert (resolved(recipe="gspo").update.clip_low, resolved(recipe="gspo").update.clip_high) == (3e-4, 4e-4)
    drawing = resolved(recipe="dapo").rollouts.drawing
    assert drawing.model_dump() == {"name": "dynamic", "max_rounds": 1, "max_refills": 10}


def test_a_key_of_the_race_file_is_over_that_of_the_recipe_and_the_others_stay() -> None:
    run = resolved(recipe="gspo", update={"clip_high": 1e-3, "learning_rate": 1e-5})
    assert (run.update.clip_low, run.update.clip_high, run.update.learning_rate) == (3e-4, 1e-3, 1e-5)
    assert run.update.importance.value == "sequence"


def test_arms_may_differ_in_their_recipe_alone() -> None:
    text = (
        '[policy]\nmodel = "tiny:addition"\n[task]\nname = "addition"\n'
        '[[arm]]\nname = "a"\nrecipe = "gspo"\n[[arm]]\nname = "b"\nrecipe = "rloo"\n'
    )
    race = parse_race(text, source="recipes.toml")
    assert [arm.update.importance.value for arm in race.arms.values()] == ["sequence", "none"]
    assert RaceConfig.from_resolved(race.resolved()) == race


@pytest.mark.parametrize(
    ("name", "section", "key", "value"),
    [("rloo", "update", "clip_low", 0.1), ("dr_grpo", "credit", "eps", 1e-2), ("gspo", "update", "dual_clip", 3.0)],
)
def test_what_a_recipe_cannot_use_is_refused(name: str, section: str, key: str, value: float) -> None:
    with pytest.raises(ValidationError, match=f"{section}.{key} is {value} and does nothing under recipe = '{name}'"):
        resolved(recipe=name, **{section: {key: value}})


def test_an_unknown_recipe_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValidationError, match="recipe is 'grop'; wanted one of grpo, dr_grpo, dapo"):
        resolved(recipe="grop")


def test_none_can_be_said_where_none_is_a_value_and_nowhere_else() -> None:
    run = resolved(update={"clip_norm": "none"}, sampling={"top_k": "none"})
    assert (run.update.clip_norm, run.sampling.top_k) == (None, None)
    with pytest.raises(ValidationError, match=r"update\.learning_rate"):
        resolved(update={"learning_rate": "none"})
