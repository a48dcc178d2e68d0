"""Questions asked of an archive: what the groups taught, what they cost, and what is a bug. Tables in, records out."""

from deadheat.audit.accounting import Accounting, accounting
from deadheat.audit.caps import Caps, caps
from deadheat.audit.clones import Clones, clones
from deadheat.audit.cold import ColdOdds, cold, cold_odds
from deadheat.audit.contamination import Contamination, compare, contamination
from deadheat.audit.contested import Contested, contested
from deadheat.audit.counts import Counts, merge
from deadheat.audit.dilution import Dilution, dilution
from deadheat.audit.drift import Drift, drift
from deadheat.audit.frozen import FrozenSkill, frozen
from deadheat.audit.gate import Gate, gate
from deadheat.audit.lengths import Lengths, lengths
from deadheat.audit.opening import Opening, opening
from deadheat.audit.questions import AUDITS, Audit, AuditReport, audit
from deadheat.audit.records import AuditOptions, AuditRecord, LossDivisor, Missing, as_json
from deadheat.audit.rescored import Rescored, rescored
from deadheat.audit.shards import SHARDED, audit_on
from deadheat.audit.siblings import Siblings, siblings
from deadheat.audit.stuck import Stuck, stuck
from deadheat.audit.words import Words, words

__all__ = [
    "AUDITS",
    "SHARDED",
    "Accounting",
    "Audit",
    "AuditOptions",
    "AuditRecord",
    "AuditReport",
    "Caps",
    "Clones",
    "ColdOdds",
    "Contamination",
    "Contested",
    "Counts",
    "Dilution",
    "Drift",
    "FrozenSkill",
    "Gate",
    "Lengths",
    "LossDivisor",
    "Missing",
    "Opening",
    "Rescored",
    "Siblings",
    "Stuck",
    "Words",
    "accounting",
    "as_json",
    "audit",
    "audit_on",
    "caps",
    "clones",
    "cold",
    "cold_odds",
    "compare",
    "contamination",
    "contested",
    "dilution",
    "drift",
    "frozen",
    "gate",
    "lengths",
    "merge",
    "opening",
    "rescored",
    "siblings",
    "stuck",
    "words",
]
