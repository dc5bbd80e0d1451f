"""Steps that others measured on a B200."""

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

SIXTEENS = """
[formats.mxfp4-b16]
elements = ["E2M1"]
scale = "E8M0"
block = 16
"""
"""A format that the hardware has and no catalogue: E2M1 in blocks of 16 with a power of two each."""

IN_BLOCKS = [
    (
        "nvfp4",
        bytes.fromhex(
            "05060e060a000205070a0905090a0a0c070202010b0c010d010f02050d030c01"
            "0d0d06090b0b01090f0f05040c05040d0d000e0c00010d0806060400020c0709"
        ),
        bytes.fromhex(
            "0c0c06050f0b00010d0d030102020c0a050e0b0d0f0500070c0d0400080b020d"
            "04080d000b0f090e07040d0508050f080c0609030b020e04070c07040e0b0e09"
        ),
        bytes.fromhex("0c047447"),
        bytes.fromhex("17502461"),
        0xB23210EB,
        0x4429730B,
    ),
    (
        "nvfp4",
        bytes.fromhex(
            "02070f000b0d020b040d030f04010a0201010c0f00030c080a0d0706040f0005"
            "0e0d050a030a0a05030e040f0a0d030900030c020600040f0d0f060b090e010a"
        ),
        bytes.fromhex(
            "0c0a020c010d0601050c0f070d020b00030a05050d0103030f040a0608090f04"
            "050701040904010302050b0d0b0f0e0800040a02090d0d0f0e0506050e0b0c02"
        ),
        bytes.fromhex("660e730d"),
        bytes.fromhex("16480316"),
        0x89769172,
        0xC30545D3,
    ),
    (
        "nvfp4",
        bytes([1] * 64),
        bytes([1] * 64),
        bytes.fromhex("7f383838"),
        bytes.fromhex("38383838"),
        0,
        NAN,
    ),
    (
        "nvfp4",
        bytes.fromhex(
            "0e0e0b0600080f090a0b03090f070e00020601050a080604070c060b010c060d"
            "0b0b08060c080c050004010f01060f05020406050a070b0700010a0d0b0f0e07"
        ),
        bytes.fromhex(
            "060c0b0208090b04030d0209090c0108070206030d02090a05090f050a080600"
            "080d0d020c0c05020803040f0f01010a0b0a050b0f030b0e0a0507010107080a"
        ),
        bytes.fromhex("097c6d44"),
        bytes.fromhex("07782679"),
        0x094E5986,
        0x49FCAFB7,
    ),
    (
        "nvfp4",
        bytes(64),
        bytes(64),
        bytes.fromhex("38383838"),
        bytes.fromhex("38383838"),
        0x80000000,
        0,
    ),
    (
        "mxfp4",
        bytes.fromhex(
            "0a0d040a0500070c0f02000c0706010c0d05090e040a0609090b090203000103"
            "040a0b070f0b00060d0e06000d070602000f0501020901000c090a0606000e06"
        ),
        bytes.fromhex(
            "050a030d000907080d000b0f02040b050a020a000a0506080602010900050b02"
            "040407080b0f0f0d0f0706020b0605040c02030908010a05010f0c0e0006010b"
        ),
        bytes.fromhex("7c7a"),
        bytes.fromhex("8a76"),
        0,
        0x46BA8000,
    ),
    (
        "mxfp4",
        bytes.fromhex(
            "0b0b0c02050007050c010d060a0d0d0202030302080b0e0b060a0f03020f0805"
            "080b0a0d04010d040403000a0300000e0d00020506060d09010b0307060e0208"
        ),
        bytes.fromhex(
            "0d09030d080d0300060d080c0a01060206090b060a0e09030b01080a0f0f010e"
            "0e0e020f0b0c02080b060c0402040f080f060d0a0d0c0f0a080d04050b0a030c"
        ),
        bytes.fromhex("7f83"),
        bytes.fromhex("7477"),
        0,
        0x40580000,
    ),
    (
        "mxfp4-b16",
        bytes.fromhex(
            "010f06060207090a0304090a070a0d040d07040804060d060a0b010d09040e0b"
            "03050d0401070000080e0d0402060d090f020a0a0d09030b0104040104040f0f"
        ),
        bytes.fromhex(
            "0d01050f030d0a080b0500050a050d080e05070d0b0e0b0e0307050809010b0f"
            "09010d0c0f0b080904000a09070f080d04060106070700050304040e0101090b"
        ),
        bytes.fromhex("7c7a8178"),
        bytes.fromhex("8b7a8584"),
        0,
        0xC6A88896,
    ),
    (
        "mxfp4",
        bytes(64),
        bytes(64),
        bytes.fromhex("7f7f"),
        bytes.fromhex("7f7f"),
        0x80000000,
        0,
    ),
]
"""Format, A, B, their scales, C and D of steps of 64 products in blocks, likewise.

D is from the same file, commit 8fce64d. A, B, C and the scales of the first two are drawn there from the seed 700, A,
B and the scales of the three random ones with E8M0 from the seeds 920 to 922. The others are special cases.
"""
