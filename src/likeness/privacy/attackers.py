r"""What an attacker gains from a release: closed forms of the Gaussian, from a total ρ alone.

Composed releases are one Gaussian of :math:`\mu = \sqrt{2 \rho}` (:mod:`likeness.privacy.calibration`). Any conclusion
from them that has probability a without somebody's record has at most :math:`\Phi(\Phi^{-1}(a) + \mu)` with it: that is
the trade-off curve of tests (Dong, Roth and Su 2022). Partition selection fails with probability at most its δ, which
is added. The lattice moves the last digits only (:mod:`likeness.privacy.lattice_error`).

*Who is in.* With even chances, the best guess is right with probability :math:`\Phi(\mu / 2)`. The logarithm of the
likelihood ratio of a member is normal with mean :math:`\mu^2 / 2` and standard deviation μ. While it is at most ε, a
belief of one half rises to at most :math:`e^\varepsilon / (1 + e^\varepsilon)`. It is more with probability
:math:`\Phi(\mu / 2 - \varepsilon / \mu)`. That is larger than δ, which weighs such results by how far they go beyond.

*Singling out, linkage, inference.* Each is a conclusion about one person whose probability without the person's record
is public: how many strangers a description fits, how many candidates there are, how well the trait is guessed from the
group. Such attacks without the record are what the Article 29 Working Party (2014) compares with.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

from likeness.privacy.calibration import mu_of_rho

_NORMAL = NormalDist()


@dataclass(frozen=True)
class Attackers:
    """Bounds on what anybody gains from a release.

    Attributes:
        rho: of all releases together.
        epsilon: of the guarantee.
        delta_keys: that partition selection fails.
    """

    rho: float
    epsilon: float
    delta_keys: float = 0.0

    @property
    def mu(self) -> float:
        """Of the one Gaussian that all releases are."""
        return mu_of_rho(self.rho)

    @property
    def membership(self) -> float:
        """How often the best guess is right who is in, if one half of the candidates is."""
        return min(1.0, _NORMAL.cdf(self.mu / 2) + self.delta_keys / 2)

    @property
    def belief(self) -> float:
        """What a belief of one half rises to where the bound ε holds."""
        return 1 / (1 + math.exp(-self.epsilon))

    @property
    def beyond(self) -> float:
        """The probability that the release of a member raises it further."""
        return min(1.0, _NORMAL.cdf(self.mu / 2 - self.epsilon / self.mu) + self.delta_keys) if self.rho else 0.0

    def success(self, chance: float) -> float:
        """The largest probability with somebody's record of what has probability ``chance`` without it."""
        return min(1.0, _NORMAL.cdf(_NORMAL.inv_cdf(chance) + self.mu) + self.delta_keys)
