"""Steps without block scales that others measured on a B200."""

NAN, INFINITY = 0x7FFFFFFF, 0x7F800000

MEASURED = [
    (
        "e4m3",
        bytes.fromhex("7a026f195d621d322a005b1067680274150d72120f0953602a2f52076e194a20"),
        bytes.fromhex("327e29794f15502634053b39441f217b176e48050c044c64660f69142047352b"),
        0xEC63D12A,
        0xEC63D12A,
    ),
    (
        "e4m3",
        bytes.fromhex("092c4f7e4519686b0c055c553b6765463d5010741c13166e421705443004123b"),
        bytes.fromhex("141b4f380a071309011068591f0f093c4f475b35506a463d44185c3727036b61"),
        0xB1A13D98,
        0x452AF963,
    ),
    (
        "e5m2",
        bytes.fromhex("4c2d2c7b003e2c43697236494a15140f362a2f4911501f6e0c726f4c40634175"),
        bytes.fromhex("620658082525715147097a4123492c020867660b4f1a6768302675636066686f"),
        0x08D846E9,
        0x4D92B09A,
    ),
    (
        "e5m2",
        bytes.fromhex("4b69167a065d3d38064f7322561957726f525670321e5334186923126542293a"),
        bytes.fromhex("361e2f604b5451331361650b6903225637531a4c0621482f0f414c08772f6803"),
        0x2D1B7DE0,
        0x4C9C1102,
    ),
    (
        "e2m3",
        bytes.fromhex("333f3a1e200f1f100c3927041624283c1c3a0202093924182b14032804092c15"),
        bytes.fromhex("310b043924310d000d24370a271a233527121332301e083b0d0e1c0526242124"),
        0x07E5DB6A,
        0xC29DD800,
    ),
    (
        "e2m3",
        bytes.fromhex("342a33122925142a2d15283c1538101f310d071103351f23372e321c2b123d2d"),
        bytes.fromhex("320c3b34060b31230d041d25103a35332b032d0e181a28112a11052703201d28"),
        0x44A4FB41,
        0x449D14C1,
    ),
    (
        "e3m2",
        bytes.fromhex("343c1804303219322b0e031c1006092e303c25383025110b07261935251e2437"),
        bytes.fromhex("1f11031f02013c330b3d1424073e1c1019210f18123d142005073c052e342613"),
        0x52C9EC63,
        0x52C9EC63,
    ),
    (
        "e3m2",
        bytes.fromhex("22323c08132330273b113a1a392e1e2e103c07301f2d3c1d2230073b0e360f0c"),
        bytes.fromhex("000737270f011d373b192d11293a3f0c17243e2528062e08003200262d3a0117"),
        0x95FF4972,
        0xC33B7700,
    ),
    (
        "e2m1",
        bytes.fromhex("01070602080c050d0f020801030c040f09000d080107060a0405060903070807"),
        bytes.fromhex("000808040b020f05080403050f02050c010a0705020d00030a04050806000008"),
        0x890662B9,
        0xC1FE0000,
    ),
    (
        "e2m1",
        bytes.fromhex("00020806050c010f040502020f0d04060e0b0d0a010f0e0d00090c0d02060e05"),
        bytes.fromhex("0a0f020804040a080a070b0e080108070a09040a080c000400020808000d0c06"),
        0xDC3B62A3,
        0xDC3B62A3,
    ),
]
"""Type of A and B, A, B, C and D of steps of 32 products on a B200, as sf-tensor/tcgen05 reports them.

D is from tcgen05_model/validation.py of that repository, commit 6f19f22 (MIT licence). A, B and C are drawn there by
Python's `random` from the seeds 104 (E4M3), 300, 301, 302 and 303 (the others, in this order). Here are the same draws.
"""

EDGES = [
    ("e4m3", 0x00, 0x00, 0x80000000, 0),
    ("e4m3", 0x01, 0x38, 0, 0x3B000000),
    ("e4m3", 0x7F, 0x38, 0, NAN),
    ("e5m2", 0x00, 0x00, 0x80000000, 0),
    ("e5m2", 0x01, 0x3C, 0, 0x37800000),
    ("e5m2", 0x7F, 0x3C, 0, NAN),
    ("e5m2", 0x7C, 0x3C, 0, INFINITY),
    ("e5m2", 0x7C, 0x00, 0, NAN),
]
"""The same, with the first elements of A and B; the others are zero."""
