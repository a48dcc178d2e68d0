"""The tone of a page: what its answer says, apart from how a page or a screen shows it."""

from enum import StrEnum


class Tone(StrEnum):
    """What a verdict says, as a colour and a mark beside the words."""

    CALLED = "called"  # a winner was called
    NOT_CALLED = "not-called"  # the gap is smaller than the rule could call
    NOTHING_LEARNED = "nothing-learned"  # no arm moved from its own step 0: nothing to rank
    INCOMPLETE = "incomplete"  # arms failed or are missing: no verdict yet
    PLAIN = "plain"  # a page that reports and does not judge
