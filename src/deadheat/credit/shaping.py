"""Reward shaping that only training sees. Evaluation is never shaped."""


def passes_marker_gate(text: str, *, marker: str, min_chars: int) -> bool:
    """Whether the last `marker` stands at or after character `min_chars`: text.rfind(marker) ≥ L.

    A text without the marker fails (rfind is −1). The training reward is then 1[right and passes]; it asks for some
    reasoning before the boxed answer.

    Example:
        >>> passes_marker_gate("so 2+2 = \\\\boxed{4}", marker="\\\\boxed", min_chars=9)
        True
        >>> passes_marker_gate("\\\\boxed{4}", marker="\\\\boxed", min_chars=9)
        False
    """
    return text.rfind(marker) >= min_chars


def overlong_penalty(length: int, *, cap: int, buffer: int, factor: float) -> float:
    """What a completion of `length` tokens loses: 0 up to cap − buffer, then linear to `factor` at the cap.

    The soft overlong punishment of Yu et al. 2025 (DAPO), where factor is 1. A completion that was cut by the cap loses
    the whole factor.

    Example:
        >>> [overlong_penalty(length, cap=100, buffer=20, factor=0.5) for length in (80, 90, 100)]
        [0.0, 0.25, 0.5]
    """
    return factor * min(1.0, max(0, length - (cap - buffer)) / buffer)


def length_penalty(length: int, *, cap: int, cost: float) -> float:
    """What a completion of `length` tokens loses in proportion to its length: cost·length/cap.

    Example:
        >>> length_penalty(25, cap=100, cost=0.2)
        0.05
    """
    return cost * length / cap
