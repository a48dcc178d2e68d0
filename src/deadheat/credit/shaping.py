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
