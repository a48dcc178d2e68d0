"""Settings that contradict each other are refused with what to do."""

import re
import tomllib
from pathlib import Path

import pytest
from pydantic import ValidationError

from deadheat.train import RunConfig
from deadheat.train.batch import part_of
from deadheat.train.config import CreditConfig
from deadheat.types import Problem

BACKWARD = {"zero_signal": "backward"}


@pytest.mark.parametrize("mode", ["zero_grad_step", "skip_step"])
def test_skipping_tied_groups_is_refused_beside_a_kl_term(run_config, mode: str) -> None:
    with pytest.raises(
        ValidationError, match=rf"zero_signal is '{mode}' with update.kl_coef 0.04: a group whose rewards"
    ):
        run_config(update={"kl_coef": 0.04}, credit={"zero_signal": mode})
    assert run_config(update={"kl_coef": 0.04}, credit=BACKWARD).update.kl_coef == 0.04


def test_a_kl_term_without_a_reference_is_refused(run_config) -> None:
    with pytest.raises(ValidationError, match=r"adapter.kind = 'full': the weights that the KL term refers to"):
        run_config(update={"kl_coef": 0.04}, credit=BACKWARD, policy={"adapter": {"kind": "full"}})


def test_several_updates_of_a_batch_need_a_ratio(run_config) -> None:
    with pytest.raises(ValidationError, match=r"updates_per_batch is 2 with update.importance = 'none'"):
        run_config(update={"updates_per_batch": 2})
    assert run_config(update={"updates_per_batch": 2, "importance": "token"}).update.updates_per_batch == 2


def test_a_dual_clip_without_a_ratio_is_refused(run_config) -> None:
    with pytest.raises(ValidationError, match=r"dual_clip is 3.0 but there is no ratio"):
        run_config(update={"dual_clip": 3.0})


@pytest.mark.parametrize("cut", [{"top_k": 5}, {"top_p": 0.9}])
@pytest.mark.parametrize("update", [{"kl_coef": 0.1}, {"updates_per_batch": 2, "importance": "token"}])
def test_a_moving_cut_is_refused_where_two_states_of_the_model_are_compared(run_config, cut, update) -> None:
    with pytest.raises(ValidationError, match=r"wanted update.scored_under = 'plain'"):
        run_config(update={**update, "scored_under": "warped"}, credit=BACKWARD, sampling=cut)
    run_config(update={**update, "scored_under": "plain"}, credit=BACKWARD, sampling=cut)


def test_the_recipe_of_the_race_page_is_one(run_config) -> None:
    page = (Path(__file__).parents[2] / "docs" / "race-file.md").read_text(encoding="utf-8")
    (recipe,) = (block for block in re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL) if "dual_clip" in block)
    config = run_config(**tomllib.loads(recipe))
    assert (config.update.clip_low, config.update.clip_high, config.update.dual_clip) == (0.2, 0.28, 10.0)
    assert (config.update.loss, config.update.importance, config.credit.normalise_by) == ("token_mean", "token", "task")


def test_a_group_is_normalised_with_those_of_its_task_or_column() -> None:
    problem = Problem(
        task="math", problem_id="7", prompt="?", reference="1", columns={"subject": "Algebra", "level": 3}
    )
    parts = [part_of(problem, CreditConfig(normalise_by=by)) for by in (None, "task", "subject", "level")]
    assert parts == ["", "math", "Algebra", "3"]


def test_an_old_key_is_refused_with_its_new_name() -> None:
    run = {"policy": {"model": "tiny:addition"}, "task": {"name": "addition"}}
    with pytest.raises(ValidationError, match=r"rollouts\.keep is now rollouts\.drawing\.keep"):
        RunConfig.model_validate({**run, "rollouts": {"keep": "balanced"}})
