"""Likeness: differentially private synthetic data from noisy mean embeddings.

Private rows pass one door once (:mod:`likeness.release`), as noisy sums. Everything after the door is
post-processing: it may run for ever, on any machine, at no further cost in privacy.
"""

__version__ = "0.1.0"
