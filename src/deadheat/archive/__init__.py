"""Rollouts on disk: Parquet rows, run folders, manifests."""

from deadheat.archive.files import (
    append_line,
    read_json,
    sha256_file,
    system_errors,
    write_folder_atomic,
    write_json,
    write_text,
)
from deadheat.archive.folder import Claim, check_manifest, claim_folder, seal
from deadheat.archive.plain import differences, plain
from deadheat.archive.rollouts import (
    ROLLOUT_SCHEMA,
    Credited,
    RolloutSource,
    groups_of,
    problem_of,
    read_table,
    read_tables,
    rollout_frame,
    write_table,
)

__all__ = [
    "ROLLOUT_SCHEMA",
    "Claim",
    "Credited",
    "RolloutSource",
    "append_line",
    "check_manifest",
    "claim_folder",
    "differences",
    "groups_of",
    "plain",
    "problem_of",
    "read_json",
    "read_table",
    "read_tables",
    "rollout_frame",
    "seal",
    "sha256_file",
    "system_errors",
    "write_folder_atomic",
    "write_json",
    "write_table",
    "write_text",
]
