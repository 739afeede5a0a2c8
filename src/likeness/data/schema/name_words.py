"""What the names of columns say, in English and German: concepts, links between words, and what a name leaves open."""

import re
from functools import cache

_FOLDED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
_LINKS = ("", "s", "es", "n", "en", "e")  # between the parts of a German word
_PHRASES = {
    "body mass index": "bmi", "koerper masse index": "bmi", "year of birth": "birthyear", "birth year": "birthyear",
    "check in": "arrival", "check out": "departure", "length of stay": "los",
}  # fmt: skip


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


BMI = _listed("bmi quetelet kmi")
HEIGHT = _listed("height groesse koerpergroesse stature ht hgt hoehe")
WEIGHT = _listed("weight gewicht koerpergewicht mass wt wgt")
QUANTITY = _listed("quantity qty menge anzahl stueck stueckzahl units pieces count number")
PRICE = _listed("price preis rate cost kosten tarif")
TOTAL = _listed("total sum summe gesamt insgesamt overall betrag amount umsatz revenue turnover")
BORN = _listed("born birthyear yob birth geburt geboren jahrgang")
AGE = _listed("age alter lebensalter")
YEAR = _listed("year jahr")
STAY = _listed("stay los duration dauer liegedauer verweildauer aufenthalt aufenthaltsdauer days nights tage naechte")
CODE = _listed("code num id nr no number kode schluessel kennziffer nummer ziffer kennung key abbr kuerzel")
TEXT = _listed("text name label title description desc bezeichnung titel beschreibung")
CLASS = _listed("class group band bracket category cat range gruppe klasse kategorie stufe grp")
TIME = _listed("date day time year month week datum tag zeit zeitpunkt jahr monat woche dt ts timestamp")
FILLERS = TIME | _listed(
    "at on of the in am der die das des von vom im body koerper cm kg m unit einzel value wert per pro je "
    "eur euro usd dollar chf line posten years jahre old"
)
EARLIER: tuple[tuple[frozenset[str], frozenset[str]], ...] = tuple(
    (_listed(first), _listed(later))
    for first, later in (
        ("admitted admission admit aufnahme aufgenommen einweisung", "discharged discharge entlassung entlassen"),
        ("start begin beginn started anfang", "end ended ende stop finish schluss"),
        ("birth born geburt geboren", "death died tod gestorben sterbe"),
        ("opened open eroeffnung eroeffnet", "closed close schliessung geschlossen"),
        ("arrival arrived ankunft anreise", "departure departed abfahrt abreise"),
        ("entry entered eintritt eingang", "exit exited austritt ausgang"),
        ("ordered order bestellt bestellung", "delivered delivery shipped shipping geliefert lieferung versand"),
        ("hired hire eingestellt einstellung", "left leaving termination ausgeschieden kuendigung"),
        ("issued issue ausgestellt", "expired expiry due faellig ablauf"),
        ("first erste erster erstes", "last letzte letzter letztes"),
        ("min minimum lowest low lower kleinste", "max maximum highest high upper groesste"),
        ("in ein", "out aus"),
        ("from von", "to until bis"),
    )
)
"""Words of an earlier or smaller value, and words of a later or larger one."""
EXTREMES = EARLIER[10]
LEVELS: tuple[frozenset[str], ...] = tuple(
    map(
        _listed,
        (
            "zip zipcode plz postcode postal postleitzahl",
            "town city ort stadt gemeinde municipality village kommune",
            "county kreis landkreis district bezirk",
            "state province bundesland land kanton",
            "country nation staat",
            "continent kontinent erdteil",
        ),
    )
)
"""Words of places, from small ones to large ones that hold them."""
_VOCABULARY = frozenset().union(
    *(BMI, HEIGHT, WEIGHT, QUANTITY, PRICE, TOTAL, BORN, AGE, YEAR, STAY, CODE, TEXT, CLASS, TIME),
    *(word for pair in EARLIER[:10] for word in pair),
    *LEVELS,
    {"index", "koerper", "masse", "einzel", "teil"},
)


@cache
def words(name: str) -> tuple[str, ...]:
    """A name in small words. ``Date_admitted`` and ``dateAdmitted`` are equal, ``Aufnahmedatum`` has two words."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).casefold().translate(_FOLDED)
    parts = [word for word in re.split(r"[\W_]+|(?<=[^\W\d])(?=\d)", apart) if word]
    text = " ".join(piece for word in parts for piece in _compound(word) or (word,))
    for phrase, word in _PHRASES.items():
        text = re.sub(rf"\b{phrase}\b", word, text)
    return tuple(text.split()) or (name,)


def _compound(word: str) -> tuple[str, ...]:
    """The known words that make up a word; empty: it has others too."""
    for length in range(len(word), 2, -1):
        if word[:length] not in _VOCABULARY:
            continue
        if length == len(word):
            return (word,)
        for link in _LINKS:
            tail = _compound(word[length + len(link) :]) if word[length:].startswith(link) else ()
            if tail:
                return (word[:length], *tail)
    return ()


def rest(name: str, concept: frozenset[str]) -> tuple[str, ...] | None:
    """What a name says beside a concept, without fillers; None if it does not name the concept."""
    parts = words(name)
    return tuple(word for word in parts if word not in concept | FILLERS) if concept & set(parts) else None
