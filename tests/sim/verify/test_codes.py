"""What goals tell apart of the codes of elements."""

import numpy as np

from hwgen.formats import BLOCK_FORMATS
from sim.verify.codes import codes_of, members


def test_short_codes_are_told_apart_one_by_one():
    for name, labels in (("nvfp4", 16), ("mxfp8-e5m2", 256), ("ternary", 4)):
        found = codes_of(BLOCK_FORMATS[name])
        assert found.kinds == found.nans == tuple(map(str, range(labels)))
        np.testing.assert_array_equal(found.kind, np.arange(labels))
        np.testing.assert_array_equal(found.nan, np.arange(labels))
        assert found.fractions == ()
        assert len(found.fraction) == labels


def test_codes_with_the_bits_of_their_sub_groups():
    found = codes_of(BLOCK_FORMATS["hif4"])
    assert (len(found.kinds), found.kinds[0], found.kinds[17]) == (64, "0 with bits 00", "1 with bits 01")
    np.testing.assert_array_equal(found.kind, np.arange(64))


def test_of_long_codes_the_fields():
    """By numpy's FP16: numbers of one kind have one sign and lie in one binade; NaN has its highest fraction bit."""
    found = codes_of(BLOCK_FORMATS["fp16"])
    codes = np.arange(1 << 16).astype(np.uint16)
    values = codes.view(np.float16).astype(np.float64)
    assert (len(found.kinds), len(found.fractions), len(found.nans)) == (64, 1024, 20)
    assert (found.kinds[1], found.kinds[63]) == ("0x0400 to 0x07ff", "0xfc00 to 0xffff")
    np.testing.assert_array_equal(found.kind * 1024 + found.fraction, codes)
    for kind in range(64):
        own = values[found.kind == kind]
        if kind % 32 == 31:
            assert not np.isfinite(own).any()
        elif kind % 32:
            assert len({*np.frexp(own)[1].tolist()}) == len({*np.signbit(own).tolist()}) == 1
        else:
            assert np.abs(own).max() < 2.0**-14
    for code in (0x7C01, 0x7C02, 0x7C03, 0x7E00, 0xFC01, 0xFFFF):
        sign, bit = "+-"[code >> 15], (code & 0x3FF).bit_length() - 1
        assert found.nans[found.nan[code]] == f"{sign}NaN with bit {bit}"


def test_members():
    for name in ("mxfp8-e5m2", "fp16", "hif4", "mixfp4"):
        form = BLOCK_FORMATS[name]
        codes = [*range(1 << form.code_width)] * (1 << len(form.shifts))
        for field in ("nans", "infinities"):
            known = [{*getattr(element, field)} for element in form.elements]
            wanted = np.array([[code in each for code in codes] for each in known])
            np.testing.assert_array_equal(members(form, field), wanted)
