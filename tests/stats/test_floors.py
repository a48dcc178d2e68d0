"""Floors that no difference can reach."""

from deadheat.stats.floors import detection_floor, paired_floor, win_share_floor


def test_a_floor_above_the_largest_difference_there_can_be_is_not_reachable() -> None:
    # z² = 7.849 discordant items carry a paired floor: d·n = 7 do not, 8 do.
    assert not paired_floor(100, 0.07).reachable and paired_floor(100, 0.08).reachable
    # 2.80158²/2 = 3.92 items at p = ½.
    assert not detection_floor(3, 0.5).reachable and detection_floor(4, 0.5).reachable
    assert not win_share_floor(3, 1).floor.reachable and win_share_floor(80, 86).floor.reachable
