import re
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from deadheat.errors import RunFolderError
from deadheat.reports.figures import (
    Bar,
    BarPanel,
    Curve,
    GateCurve,
    Line,
    StepSizes,
    bars,
    denominators,
    gate_curves,
    learning_curves,
    line_figure,
    pooled_gate,
)
from deadheat.reports.floors import (
    SIGNIFICANCE_BAR,
    Difference,
    FloorPoint,
    difference_against_floor,
    scatter_against_floor,
)
from deadheat.reports.ink import NARROW_IN, WIDE_IN, save_figure, to_svg
from deadheat.stats.intervals import wilson

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> str:
    """Every word drawn, in drawing order."""
    return " ".join("".join(node.itertext()) for node in ET.fromstring(svg).iter(f"{SVG}text"))


def verdict_figure(differences: list[Difference], **changes: object) -> Figure:
    options = {"arms": ("checker", "plant"), "catchable_gap_pp": 4.0, "verdict": "not called"} | changes
    return difference_against_floor(differences, **options)  # type: ignore[arg-type]


def test_a_figure_is_well_formed_names_itself_and_labels_its_axes_with_units(curves: list[Curve]) -> None:
    svg = to_svg(learning_curves(curves), label="How the arms learned")
    root = ET.fromstring(svg)
    title = root.find(f"{SVG}title")
    assert root.get("role") == "img"
    assert title is not None and title.text == "How the arms learned"
    assert root.get("aria-labelledby") == title.get("id")
    words = texts(svg)
    for label in ("training step", "held-out accuracy (%)", "mean training reward", "checker", "plant"):
        assert label in words


def test_the_same_records_give_the_same_bytes_and_others_do_not(gates: list[GateCurve]) -> None:
    first, again = (to_svg(gate_curves(gates), label="gate") for _ in range(2))
    assert first == again
    assert to_svg(gate_curves(gates[:1]), label="gate") != first


def test_ids_are_unique_over_every_figure_of_a_page_and_every_reference_resolves(
    curves: list[Curve], gates: list[GateCurve]
) -> None:
    figures = [learning_curves(curves), learning_curves(curves, width_in=NARROW_IN), gate_curves(gates)]
    page = "".join(to_svg(figure, label="same label") for figure in figures)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    references = re.findall(r"(?:url\(#|href=\"#|labelledby=\")([^)\"]+)", page)
    assert references and set(references) <= set(ids)


def test_inline_colours_follow_the_page(curves: list[Curve]) -> None:
    svg = to_svg(learning_curves(curves), label="x")
    assert "currentColor" in svg
    assert re.sub(r"var\([^)]*\)", "", svg).count("#0072b2") == 0
    assert "var(--arm-1, #0072b2)" in svg and "var(--arm-2, #d55e00)" in svg


def test_drawing_leaves_the_callers_matplotlib_settings_alone(curves: list[Curve]) -> None:
    with matplotlib.rc_context({"axes.grid": False, "font.size": 17.0, "svg.hashsalt": "mine"}):
        first = to_svg(learning_curves(curves), label="x")
        assert matplotlib.rcParams["font.size"] == 17.0
        assert matplotlib.rcParams["svg.hashsalt"] == "mine"
    assert to_svg(learning_curves(curves), label="x") == first


def test_an_arm_with_a_hostile_name_stays_one_text_and_no_mathematics(hostile: str) -> None:
    for name in (hostile, "lr=$2$ vs $3$", "<b>&\"'", "名前", "\x00\n\t"):
        line = Line(label=name, x=(0.0, 1.0), y=(0.0, 1.0))
        svg = to_svg(line_figure([line], x_label="step", y_label="share (%)"), label=name)
        ET.fromstring(svg)
        assert "<script" not in svg
    assert "lr=$2$ vs $3$" in texts(
        to_svg(line_figure([Line(label="lr=$2$ vs $3$", x=(0,), y=(1,))], x_label="", y_label=""), label="")
    )


def test_the_thick_line_is_the_mean_over_seeds_where_every_seed_was_read(curves: list[Curve]) -> None:
    held_out = learning_curves(curves).axes[0]
    thick = [line for line in held_out.get_lines() if line.get_linewidth() == 2.0]
    # checker: step 0 (4 + 2)/40 = 15%, step 2 (8 + 10)/40 = 45%; step 4 was read in one seed only
    assert np.allclose(thick[0].get_xydata(), [[0, 15], [2, 45]])
    # plant: (3 + 1)/40 = 10%, (3 + 5)/40 = 20%, (3 + 3)/40 = 15%
    assert np.allclose(thick[1].get_xydata(), [[0, 10], [2, 20], [4, 15]])


def test_held_out_intervals_are_drawn_where_the_records_put_them(curves: list[Curve]) -> None:
    held_out = learning_curves(curves[:1]).axes[0]
    (drawn,) = held_out.collections
    ends = sorted((float(y[0]), float(y[1])) for y in (segment[:, 1] for segment in drawn.get_segments()))
    assert np.allclose(ends, [(100 * wilson(k, 20).low, 100 * wilson(k, 20).high) for k in (4, 8, 12)])


def test_training_reward_leaves_unscored_steps_out_of_the_mean(curves: list[Curve]) -> None:
    training = learning_curves(curves).axes[1]
    thick = next(line for line in training.get_lines() if line.get_linewidth() == 2.0)
    # steps 1–3: (.1 + .2)/2, (.3 + .4)/2, and .6 alone: seed 0 had no scored rollout at step 3
    assert np.allclose(thick.get_xydata(), [[1, 0.15], [2, 0.35], [3, 0.6]])


def test_a_run_of_one_step_is_still_seen() -> None:
    one = Curve(arm="a", seed=0, steps=(1,), train_reward=(0.5,), eval_steps=(0,), eval_shares=(wilson(1, 4),))
    training = learning_curves([one]).axes[1]
    assert [(line.get_marker(), line.get_xydata().tolist()) for line in training.get_lines()] == [("o", [[1, 0.5]])] * 2


def test_gate_shares_stack_to_a_hundred_and_the_band_is_the_wilson_interval(gates: list[GateCurve]) -> None:
    panel = gate_curves(gates).axes[0]
    # two seeds of four groups: live 2, 4, 8 of 8
    (live,) = panel.get_lines()
    assert np.allclose(live.get_ydata(), [25, 50, 100])
    layers, band = panel.collections[:4], panel.collections[4]
    assert max(layer.get_paths()[0].vertices[:, 1].max() for layer in layers) == pytest.approx(100)
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() == pytest.approx(100 * wilson(2, 8).low)
    assert heights.max() == pytest.approx(100)
    assert np.isclose(heights, 100 * wilson(8, 8).low).any()


def test_pooling_gate_counts_over_seeds_that_stopped_apart_keeps_every_group() -> None:
    long = GateCurve(
        arm="a", seed=0, steps=(1, 2, 3), live=(1, 1, 1), all_right=(3, 3, 3), all_wrong=(0, 0, 0), tied_other=(0, 0, 0)
    )
    short = GateCurve(arm="a", seed=1, steps=(1,), live=(4,), all_right=(0,), all_wrong=(0,), tied_other=(0,))
    pooled = pooled_gate([long, short], 1)
    assert pooled.steps == (1, 2, 3)
    assert pooled.live == (5, 1, 1)
    assert pooled.all_right == (3, 3, 3)


def test_both_step_sizes_of_every_arm_lie_inside_the_panel(step_sizes: list[StepSizes]) -> None:
    figure = denominators(step_sizes)
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert low == 0 and high >= 3.0
    solid, dashed = figure.axes[1].get_lines()
    assert np.allclose(solid.get_ydata(), [1.5, 0.75, 3.0])
    assert np.allclose(dashed.get_ydata(), [3.0, np.nan, 3.0], equal_nan=True)


def test_a_verdict_figure_draws_the_interval_the_band_and_the_word(differences: list[Difference]) -> None:
    figure = verdict_figure(differences)
    (axes,) = figure.axes
    band = axes.patches[0].get_extents().transformed(axes.transData.inverted())
    assert (band.x0, band.x1) == pytest.approx((-4.0, 4.0))
    spans = [tuple(line.get_xdata()) for line in axes.get_lines() if len(line.get_xdata()) == 2]
    for difference in differences:
        assert (difference.low_pp, difference.high_pp) in spans
    words = texts(to_svg(figure, label="verdict"))
    for word in (
        "not called",
        "under 4.0 pp: below 80% power",
        "pooled, n = 400",
        "−1.0",
        "checker − plant (pp), 95% interval",
    ):
        assert word in words


def test_names_of_margins_close_together_stand_above_one_another() -> None:
    near = [FloorPoint(label=name, margin_pp=5 + step / 10, floor_pp=36) for step, name in enumerate(("x", "y", "z"))]
    figure = scatter_against_floor([*near, FloorPoint(label="far", margin_pp=5, floor_pp=3)])
    figure.canvas.draw()
    boxes = {text.get_text(): text.get_window_extent() for text in figure.axes[0].texts}
    assert boxes["x"].y1 <= boxes["y"].y0 and boxes["y"].y1 <= boxes["z"].y0
    assert boxes["far"].y0 == pytest.approx(boxes["x"].y0, abs=2)


def test_without_a_known_gap_no_band_is_drawn(differences: list[Difference]) -> None:
    assert not verdict_figure(differences, catchable_gap_pp=None).axes[0].patches


def test_a_difference_outside_its_own_interval_is_refused() -> None:
    with pytest.raises(ValueError, match="wanted low <= difference <= high"):
        Difference(label="seed 0", diff_pp=3.0, low_pp=-1.0, high_pp=2.0, num_items=10)


def test_a_margin_on_its_floor_lies_on_the_line() -> None:
    # z(.975)/(z(.975) + z(.80)) = 1.95996/2.80158 = .69959
    assert pytest.approx(0.69959, abs=1e-5) == SIGNIFICANCE_BAR
    points = [FloorPoint(label="A", margin_pp=6.7, floor_pp=35.4), FloorPoint(label="B", margin_pp=-2.0, floor_pp=5.0)]
    (axes,) = scatter_against_floor(points).axes
    floor, bar, claims = axes.get_lines()
    assert np.allclose(floor.get_xdata(), floor.get_ydata())
    assert np.allclose(np.array(bar.get_ydata()) / floor.get_ydata()[1], [0, SIGNIFICANCE_BAR])
    assert np.allclose(claims.get_xydata(), [[35.4, 6.7], [5.0, -2.0]])
    assert axes.get_ylim()[0] < -2.0


def test_bars_start_at_zero_and_print_their_values() -> None:
    panel = BarPanel(
        title="generated (k tokens)", bars=(Bar(label="checker", value=15.4), Bar(label="plant", value=0.0))
    )
    figure = bars([panel])
    assert [(bar.get_x(), bar.get_width()) for bar in figure.axes[0].patches] == [(0, 15.4), (0, 0)]
    assert "15.4" in texts(to_svg(figure, label="cost"))
    to_svg(bars([BarPanel(title="nothing", bars=(Bar(label="a", value=0.0),))]), label="zero")


@pytest.mark.parametrize("width_in", [WIDE_IN, NARROW_IN])
def test_no_word_of_a_figure_leaves_the_figure(
    width_in: float,
    curves: list[Curve],
    gates: list[GateCurve],
    step_sizes: list[StepSizes],
    differences: list[Difference],
) -> None:
    figures = [
        learning_curves(curves, width_in=width_in),
        gate_curves(gates, width_in=width_in),
        denominators(step_sizes, width_in=width_in),
        verdict_figure(differences, arms=("a" * 60, "b" * 60), width_in=width_in),
    ]
    for figure in figures:
        to_svg(figure, label="laid out")
        box = figure.get_tightbbox()
        assert box.x0 > -0.03 and box.x1 < figure.get_figwidth() + 0.03


def test_rows_of_unequal_length_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="steps has 2 entries and train_reward 1"):
        Curve(arm="a", seed=0, steps=(1, 2), train_reward=(0.1,), eval_steps=(), eval_shares=())


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(ValueError, match="no learning curve to draw"):
        learning_curves([])


def test_a_figure_is_saved_by_suffix_and_other_suffixes_are_refused(tmp_path: Path, gates: list[GateCurve]) -> None:
    figure = gate_curves(gates)
    save_figure(figure, tmp_path / "gate.PNG")
    assert (tmp_path / "gate.PNG").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    for place in ("a.svg", "b.svg"):
        save_figure(figure, tmp_path / place)
    ET.parse(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    with pytest.raises(ValueError, match=r"'gate.jpg'; wanted a name ending in .svg, .png or .pdf"):
        save_figure(figure, tmp_path / "gate.jpg")
    with pytest.raises(RunFolderError, match="name a file in a folder that exists"):
        save_figure(figure, tmp_path / "missing" / "gate.svg")
