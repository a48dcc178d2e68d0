"""A language model: references, generation, log-probabilities over a prefix trie, adapters, a tiny policy."""

from deadheat.policy.adapters import AdapterConfig, load_adapter, save_adapter, trainable_parameters
from deadheat.policy.model import LanguageModel, PolicyConfig, load_policy
from deadheat.policy.readers import Reader, chosen_logprobs
from deadheat.policy.reading import PassPart, PassReading, num_unshared
from deadheat.policy.references import fetch_model
from deadheat.policy.trie import Branches

__all__ = [
    "AdapterConfig",
    "Branches",
    "LanguageModel",
    "PassPart",
    "PassReading",
    "PolicyConfig",
    "Reader",
    "chosen_logprobs",
    "fetch_model",
    "load_adapter",
    "load_policy",
    "num_unshared",
    "save_adapter",
    "trainable_parameters",
]
