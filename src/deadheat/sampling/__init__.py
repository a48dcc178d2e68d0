"""Addressable randomness: keys, warping, draws. No model here."""
