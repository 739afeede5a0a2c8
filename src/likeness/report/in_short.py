"""The first paragraph of a statement: what an attacker gains, in three languages from the same numbers."""

import math
from collections.abc import Mapping
from typing import Any

from likeness.privacy.attackers import Attackers

STRANGERS, CANDIDATES, TRAIT = 1 / 10_000, 1 / 100, 1 / 2
"""What an attacker can do without a record: fit a description to a stranger, draw a candidate, guess a trait."""
_ROUNDING = 1e-6

_ENGLISH = """**In short.** {who} The best guess from everything that this ledger has released about these people so
far is right in at most {membership} of 100 cases on average. A coin is right in 50. It does not matter how much the
attacker computes and knows besides. One unlucky result can raise a belief from 50 to {belief} %, and further in at
most {beyond} of 100,000 cases. **Singling out:** a description that fits 1 of 10,000 strangers fits this person in at
most {strangers} of 10,000 cases. **Linkage:** a search among 100 candidates, right in 1 of 100 cases by chance, is
right in at most {candidates}. **Inference:** a trait that the records of others reveal in 50 of 100 cases is guessed
in at most {trait}. **Not covered:** what holds for a whole group, what the schema says, and releases that are not in
this ledger."""

_GERMAN = """**Kurz.** {who} Wer alles kennt, was dieses Register bisher über diese Personen veröffentlicht hat, rät
im Mittel in höchstens {membership} von 100 Fällen richtig. Eine Münze trifft in 50. Rechenleistung und anderes Wissen
ändern daran nichts. Ein unglückliches Ergebnis kann eine Vermutung von 50 auf {belief} % heben, in höchstens {beyond}
von 100.000 Fällen auf mehr. **Herausgreifen:** Eine Beschreibung, die auf 1 von 10.000 Fremden passt, passt auf diese
Person in höchstens {strangers} von 10.000 Fällen. **Verknüpfen:** Eine Suche unter 100 Kandidaten trifft zufällig in
1 von 100 Fällen, hier in höchstens {candidates}. **Schließen:** Ein Merkmal, das andere Datensätze in 50 von 100
Fällen verraten, wird in höchstens {trait} erraten. **Nicht abgedeckt:** was für eine ganze Gruppe gilt, was das
Schema sagt, und Veröffentlichungen, die nicht in diesem Register stehen."""

_FRENCH = """**En bref.** {who} Avec tout ce que ce registre a publié jusqu'ici sur ces personnes, on devine juste en
moyenne dans {membership} cas sur 100 au plus. Une pièce devine juste dans 50. La puissance de calcul et d'autres
connaissances n'y changent rien. Un résultat malheureux peut faire passer un soupçon de 50 à {belief} %, et plus haut
dans {beyond} cas sur 100 000 au plus. **Individualisation :** une description qui convient à 1 inconnu sur 10 000
convient à cette personne dans {strangers} cas sur 10 000 au plus. **Corrélation :** une recherche parmi 100
candidats, juste dans 1 cas sur 100 par hasard, l'est dans {candidates} au plus. **Inférence :** un trait que d'autres
enregistrements révèlent dans 50 cas sur 100 est deviné dans {trait} au plus. **Non couvert :** ce qui vaut pour tout
un groupe, ce que dit le schéma, et les publications absentes de ce registre."""

_LANGUAGES = (
    (
        _ENGLISH,
        "Somebody's record may be in the data or not, with even chances.",
        "Somebody's record may be one of two, with even chances.",
        ".",
        "nearly 100",
    ),
    (
        _GERMAN,
        "Ob die Daten jemanden enthalten, ist so ungewiss wie ein Münzwurf.",
        "Welchen von zwei Datensätzen jemand hat, ist so ungewiss wie ein Münzwurf.",
        ",",
        "fast 100",
    ),
    (
        _FRENCH,
        "Quelqu'un figure dans les données ou non, à chances égales.",
        "Quelqu'un a l'un de deux enregistrements, à chances égales.",
        ",",
        "presque 100",
    ),
)


def short_paragraphs(privacy: Mapping[str, Any]) -> list[str]:
    """The paragraph in English, German and French, about all that these people's ledger had released at the account.

    Args:
        privacy: the account, of a run with noise.
    """
    life = privacy["ledger"]["lifetime"]
    rho, epsilon = (math.inf if life[name] is None else float(life[name]) for name in ("spent_rho", "spent_epsilon"))
    attackers = Attackers(rho, epsilon, float(life.get("spent_delta_keys", 0)))
    shares = {"membership": attackers.membership, "belief": attackers.belief}
    shares |= {"candidates": attackers.success(CANDIDATES), "trait": attackers.success(TRAIT)}
    paragraphs = []
    for template, added, replaced, mark, nearly in _LANGUAGES:
        numbers = {name: nearly if share > 0.999 else f"{_round_up(100 * share):.1f}" for name, share in shares.items()}
        numbers["strangers"] = f"{_round_up(10_000 * attackers.success(STRANGERS)):.1f}"
        numbers["beyond"] = f"{math.ceil(100_000 * attackers.excess_probability - _ROUNDING)}"
        who = replaced if privacy["adjacency"] == "replace_one" else added
        texts = {name: number.replace(".", mark) for name, number in numbers.items()}
        paragraphs.append(template.replace("\n", " ").format(who=who, **texts))
    return paragraphs


def _round_up(value: float) -> float:
    """The next tenth above, because the words say at most."""
    return math.ceil(10 * value - _ROUNDING) / 10
