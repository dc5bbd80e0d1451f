"""A GEMM through a core, with gaps and stalls, compared with the golden model bit for bit.

What the test knows of the ports stands in the manifest; the golden model quantises and computes.
"""

import json
import os
import random
from pathlib import Path

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge, with_timeout

from hwgen.config import TensorCoreConfig
from sim import golden
from sim.steps import gather, schedule

MANIFEST = json.loads(Path(os.environ["HWGEN_MANIFEST"]).read_text())
FIELDS = {field["name"]: field for port in MANIFEST["ports"] for field in port.get("fields", ())}
CONFIG = TensorCoreConfig(**MANIFEST["configuration"])


def places(field):
    """Every index of a field, with its lowest bit in the payload."""
    for index in np.ndindex(*(dimension["size"] for dimension in field["dimensions"])):
        strides = (dimension["stride"] for dimension in field["dimensions"])
        yield index, field["offset"] + sum(i * stride for i, stride in zip(index, strides, strict=True))


def pack(values):
    """Payload of a step, or of a C, from arrays by name."""
    payload = 0
    for name, value in values.items():
        field = FIELDS[name]
        array = np.reshape(value, [dimension["size"] for dimension in field["dimensions"]])
        for index, low in places(field):
            payload |= int(array[index]) << low
    return payload


def unpack(payload):
    """FP32 words of a result."""
    field = FIELDS["d"]
    words = np.zeros([dimension["size"] for dimension in field["dimensions"]], np.uint32)
    for index, low in places(field):
        words[index] = payload >> low & 0xFFFFFFFF
    return words


async def send(dut, stream, payloads):
    """Offer the payloads of a stream, now and then after a pause; inputs change at falling edges."""
    payload_of, valid, ready = (getattr(dut, f"{stream}__{role}") for role in ("payload", "valid", "ready"))
    for payload in payloads:
        while random.random() < 0.2:
            await FallingEdge(dut.clk)
        payload_of.value = payload
        valid.value = 1
        while True:
            await RisingEdge(dut.clk)
            taken = int(ready.value)
            await FallingEdge(dut.clk)
            if taken:
                break
        valid.value = 0


async def receive(dut, count):
    """Take so many results, now and then late."""
    results = []
    while len(results) < count:
        dut.result__ready.value = int(random.random() < 0.6)
        await RisingEdge(dut.clk)
        if int(dut.result__valid.value) and int(dut.result__ready.value):
            results.append(unpack(int(dut.result__payload.value)))
        await FallingEdge(dut.clk)
    return np.array(results)


@cocotb.test()
async def gemm(dut):
    rng = np.random.default_rng(1)
    m, n, k = 2 * CONFIG.rows + 1, 2 * CONFIG.columns, 3 * CONFIG.depth
    a = golden.quantize(rng.standard_normal((m, k)), CONFIG.a.name)
    b = golden.quantize(rng.standard_normal((n, k)), CONFIG.b.name)
    steps = schedule(CONFIG, a, b)
    payloads = [
        pack(
            {
                "a.codes": steps.a_codes[i],
                "a.scales": steps.a_scales[i],
                "b.codes": steps.b_codes[i],
                "b.scales": steps.b_scales[i],
                "first": steps.first[i],
                "last": steps.last[i],
            }
        )
        for i in range(len(steps))
    ]
    addends = [pack({"c": c}) for c in steps.addends]

    Clock(dut.clk, 10, unit="ns").start()
    dut.rst.value = 1
    dut.step__valid.value = 0
    dut.addend__valid.value = 0
    dut.result__ready.value = 0
    await RisingEdge(dut.clk)
    await FallingEdge(dut.clk)
    dut.rst.value = 0

    senders = [cocotb.start_soon(send(dut, *what)) for what in (("step", payloads), ("addend", addends))]
    results = await with_timeout(receive(dut, int(steps.last.sum())), 1000 * len(steps), "ns")
    for sender in senders:
        await sender

    d = gather(CONFIG, results, m, n)
    fields = () if CONFIG.exact else ("fraction_bits", "rounding", "empty_blocks")
    options = {field: getattr(CONFIG, field) for field in fields}
    expected = golden.accumulate(a, b, None, CONFIG.groups, CONFIG.numerics, **options).view(np.uint32)
    different = np.argwhere(d != expected)
    assert not len(different), (
        f"D{different[0]} is {d[tuple(different[0])]:08x}, not {expected[tuple(different[0])]:08x}"
    )
    dut._log.info("%d x %d x %d: %d results are those of the golden model", m, n, k, d.size)
