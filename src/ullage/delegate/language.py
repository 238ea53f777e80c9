"""In which language is this written: Portuguese, English, Spanish, or is that not clear?

Common small words and letters decide, counted in the first part of a text; code and addresses are left out. It knows
three languages and says None rather than guess, so that a session's language can stand.
"""

import re
from collections.abc import Mapping

__all__ = ["detect_language"]

_LOOKED_AT = 2_000
"""Characters from the beginning."""
_LEAST = 2
"""Points that a language needs."""
_LEAD = 1.3
"""How many times the next one's points it needs, since Portuguese and Spanish share many words."""

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]+")

_PORTUGUESE = """
não você vocês uma umas uns um é são está estão com para por pelo pela pelos pelas como mais mas também já
muito muita isso isto esse essa este esta ele ela eles elas eu nós meu minha seu sua do da dos das no na nos
nas ao aos à às em que se os as ou foi ser ter tem têm sobre quando onde qual quais porque então até sem entre
depois agora escreva explique crie faça resuma traduza olá obrigado obrigada quero preciso pode
"""
_SPANISH = """
no usted ustedes una unas unos un es son está están con para por como más pero también ya muy mucho mucha eso
esto ese esa este esta él ella ellos ellas yo nosotros mi su del de la las los el lo al en que se y o fue ser
tener tiene tienen sobre cuando donde cuál cuáles porque entonces hasta sin entre después ahora escribe
explica crea haz resume traduce hola gracias quiero necesito puede puedes
"""
_ENGLISH = """
the a an is are was were be been this that these those with for from by how more but also already very much it
its he she they i we you my your his her their of in on at to and or not what when where which why then until
without between after now write explain create make summarize translate hello thanks please want need can
could would
"""
_WORDS: Mapping[str, frozenset[str]] = {
    "pt": frozenset(_PORTUGUESE.split()),
    "es": frozenset(_SPANISH.split()),
    "en": frozenset(_ENGLISH.split()),
}
_LETTERS: Mapping[str, str] = {"pt": "ãõçêô", "es": "ñ¿¡", "en": ""}
_EACH_LETTER = 1.5
_KNOWN = frozenset(word for words in _WORDS.values() for word in words)


def detect_language(text: str) -> str | None:
    """`pt`, `es`, `en`, or None."""
    sample = _CODE.sub(" ", text[:_LOOKED_AT]).lower()
    words = [word for word in _WORD.findall(sample) if word in _KNOWN]
    points = {language: _points(language, words, sample) for language in _WORDS}
    best, next_best = sorted(points, key=points.__getitem__, reverse=True)[:2]
    clear = points[best] >= _LEAST and points[best] >= _LEAD * points[next_best]
    return best if clear else None


def _points(language: str, words: list[str], sample: str) -> float:
    """A word that two languages share says half as much."""
    shared = (sum(word in others for others in _WORDS.values()) for word in words if word in _WORDS[language])
    letters = sum(sample.count(letter) for letter in _LETTERS[language])
    return sum(1 / count for count in shared) + min(letters, 6) * _EACH_LETTER
