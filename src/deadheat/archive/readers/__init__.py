"""Readers of other tools' logs: whatever wrote it, one row per rollout in our columns (`reading.read`)."""
