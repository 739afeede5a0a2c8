r"""What an attacker gains from a release: closed forms of the Gaussian, from a total ρ alone.

Composed releases are one Gaussian of :math:`\mu = \sqrt{2 \rho}` (:mod:`likeness.privacy.calibration`). Any conclusion
from them that has probability a without somebody's record has at most :math:`\Phi(\Phi^{-1}(a) + \mu)` with it: that is
the trade-off curve of tests (Dong, Roth and Su 2022). Partition selection fails with probability at most its δ, which
is added. The lattice moves the last digits only (:mod:`likeness.privacy.lattice_error`).

*Who is in.* With even chances, the best guess is right with probability :math:`\Phi(\mu / 2)`. While the likelihood
ratio of a release is at most :math:`e^\varepsilon`, a belief of one half rises to at most
:math:`e^\varepsilon / (1 + e^\varepsilon)`. Let it be more on a set of releases that has probability p with the record
and q without it. Then :math:`p \ge e^\varepsilon q`, and :math:`p \le G(q) = \Phi(\Phi^{-1}(q) + \mu)`. G is concave
and 0 at 0, so q is at most the point where :math:`G(q) = e^\varepsilon q`, and p at most its value there. This holds
for adaptive queries too. It is more than δ, which weighs such releases by how far they go beyond.

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
        """The μ of the one Gaussian that all releases are."""
        return mu_of_rho(self.rho)

    @property
    def membership(self) -> float:
        """The probability that the best guess of who is in is right, if one half of the candidates is."""
        return min(1.0, _cdf(self.mu / 2) + self.delta_keys / 2)

    @property
    def belief(self) -> float:
        """The highest belief to which a belief of one half rises where the bound ε holds."""
        return 1 / (1 + math.exp(-self.epsilon))

    @property
    def excess_probability(self) -> float:
        """The largest probability that the release of a member raises it further."""
        if not 0 < self.mu < math.inf:
            return float(self.mu > 0)
        low, high = -40.0, self.mu  # of the standard normal quantile of q; the ratio of both sides falls
        for _ in range(100):
            middle = (low + high) / 2
            ratio = _cdf(middle + self.mu) / max(_cdf(middle), 1e-300)
            low, high = (middle, high) if ratio > math.exp(min(self.epsilon, 500.0)) else (low, middle)
        return min(1.0, _cdf(high + self.mu) + self.delta_keys)

    def success(self, chance: float) -> float:
        """The largest probability with somebody's record of what has probability ``chance`` without it."""
        return min(1.0, _cdf(_NORMAL.inv_cdf(chance) + self.mu) + self.delta_keys)


def _cdf(value: float) -> float:
    """Give the distribution function of the standard normal law, exact in its lower tail too."""
    return math.erfc(-value / math.sqrt(2)) / 2
