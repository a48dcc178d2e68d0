"""A language model: references, generation, log-probabilities over a prefix trie, adapters, a tiny policy."""

from deadheat.policy.adapters import AdapterConfig, load_adapter, save_adapter, trainable_parameters
from deadheat.policy.engine import GenerateAccount
from deadheat.policy.model import LanguageModel, PolicyConfig, load_policy
from deadheat.policy.references import fetch_model
from deadheat.policy.trie import Branches, LogprobsAccount, ScoredPass, ScoredPiece

__all__ = [
    "AdapterConfig",
    "Branches",
    "GenerateAccount",
    "LanguageModel",
    "LogprobsAccount",
    "PolicyConfig",
    "ScoredPass",
    "ScoredPiece",
    "fetch_model",
    "load_adapter",
    "load_policy",
    "save_adapter",
    "trainable_parameters",
]
