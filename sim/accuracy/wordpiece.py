"""WordPiece: text to the numbers of its pieces, as BERT's uncased models want it.

Source: Devlin et al., "BERT" (arXiv 1810.04805), after Wu et al. (arXiv 1609.08144, section 4.1). Text is lower-cased
and loses its accents. It is divided at white space, and every mark of punctuation and every Chinese character is a word
of its own. A word is then divided from its front, each time into the longest piece that the vocabulary has. Pieces that
do not begin a word are written with "##" in front.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from sim.golden import ArgumentError

_LONGEST = 100  # letters of a word; longer ones are unknown
_ASCII_MARKS = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_CHINESE = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
"""Blocks of Unicode with Chinese characters, first and last."""


class WordPiece:
    """A vocabulary, and how it divides text.

    Parameters
    ----------
    pieces : sequence of str
        The vocabulary; the number of a piece is its place. Has ``[CLS]``, ``[SEP]`` and ``[UNK]``.
    most : int
        Numbers of a text at most, the two at its ends included. What is longer is cut off.

    Raises
    ------
    ArgumentError
        The vocabulary lacks one of the three, or `most` leaves no room.
    """

    def __init__(self, pieces: Sequence[str], most: int = 512) -> None:
        self._numbers = {piece: number for number, piece in enumerate(pieces)}
        for special in ("[CLS]", "[SEP]", "[UNK]"):
            if special not in self._numbers:
                raise ArgumentError(f"the vocabulary has no piece {special}")
        if most < 3:
            raise ArgumentError(f"a text needs 3 numbers or more; got most = {most}")
        self._most = most

    def numbers(self, text: str) -> list[int]:
        """Return the numbers of a text, with ``[CLS]`` in front and ``[SEP]`` behind."""
        found = [number for word in words(text) for number in self._divided(word)]
        return [self._numbers["[CLS]"], *found[: self._most - 2], self._numbers["[SEP]"]]

    def _divided(self, word: str) -> list[int]:
        found: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self._numbers), None)
            if end is None or len(word) > _LONGEST:
                return [self._numbers["[UNK]"]]
            found.append(self._numbers[prefix + word[start:end]])
            start = end
        return found


def words(text: str) -> Iterator[str]:
    """Yield the words of a text, lower-cased and without accents; each mark of punctuation is one."""
    word = ""
    for letter in unicodedata.normalize("NFD", text.lower()):
        category = unicodedata.category(letter)
        if letter.isspace():
            if word:
                yield word
            word = ""
        elif category == "Mn" or category.startswith("C"):  # an accent, or a character that is not shown
            continue
        elif letter in _ASCII_MARKS or category.startswith("P") or _is_chinese(letter):
            if word:
                yield word
            yield letter
            word = ""
        else:
            word += letter
    if word:
        yield word


def _is_chinese(letter: str) -> bool:
    return any(first <= ord(letter) <= last for first, last in _CHINESE)
