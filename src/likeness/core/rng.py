"""Two kinds of randomness that are never mixed.

``public(seed)`` gives reproducible streams for frequencies, networks, batches and samples. They are public.
``secret_bytes(count)`` comes from the operating system and cannot be seeded: salts and keys.
Privacy noise is neither: it is drawn by :mod:`likeness.privacy.noise`, and only the door calls that.
"""

import hashlib
import secrets

import numpy as np


def public(seed: int, purpose: str) -> np.random.Generator:
    """A reproducible stream for one purpose.

    The hash of the purpose is part of the seed, so two users of one seed draw different numbers.

    Args:
        seed: public seed from ``params.yaml``.
        purpose: use of the numbers, for instance ``"pearl.frequencies"``.
    """
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return np.random.Generator(np.random.Philox(int.from_bytes(digest[:16], "little")))


def public_seed(seed: int, purpose: str) -> int:
    """A 63-bit seed for ``torch.manual_seed`` derived from ``seed`` for one purpose. Never for noise."""
    return int(public(seed, purpose).integers(0, 2**63 - 1))


def secret_bytes(count: int) -> bytes:
    """``count`` bytes from the operating system's generator."""
    return secrets.token_bytes(count)
