"""A reader from outside: the entropy of the distribution that each token was predicted with, in nats."""

from torch import Tensor

from deadheat.policy.readers import Slab, by_slab


@by_slab
def entropy(slab: Slab) -> Tensor:
    """[E]"""
    logprobs_CV = slab.logits_CV.float().log_softmax(-1)
    return -(logprobs_CV.exp() * logprobs_CV).sum(-1)[slab.columns_E]
