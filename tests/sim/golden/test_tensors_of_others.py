"""Tensors of other libraries as arguments, storage formats, and depths that are no multiple of 16."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim import golden

SIXTEENS = ("nvfp4", "mixfp4", "nvint4")
"""Formats with blocks of 16 and a tensor scale."""


class Tensor:
    """What the golden model asks of a PyTorch tensor, with torch's refusals."""

    def __init__(self, values, dtype="torch.float32", device="cpu", requires_grad=False):
        self._values, self.dtype, self.device, self.requires_grad = values, dtype, device, requires_grad

    def detach(self):
        return Tensor(self._values, self.dtype, self.device)

    def cpu(self):
        return Tensor(self._values, self.dtype, "cpu", self.requires_grad)

    def float(self):
        return Tensor(self._values.astype(np.float32), "torch.float32", self.device, self.requires_grad)

    def numpy(self):
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self.device != "cpu":
            raise TypeError(f"can't convert {self.device} device type tensor to numpy.")
        if self.dtype in ("torch.bfloat16", "torch.float8_e4m3fn"):
            raise TypeError(f"Got unsupported ScalarType {self.dtype}")
        return self._values

    def __array__(self, dtype=None, copy=None):
        return self.numpy()


X = np.random.default_rng(0).standard_normal((3, 32)).astype(np.float32)
HALF = X.astype(ml_dtypes.bfloat16)


def same(left: golden.QuantizedTensor, right: golden.QuantizedTensor) -> None:
    np.testing.assert_array_equal(left.codes, right.codes)
    np.testing.assert_array_equal(left.scales, right.scales)
    assert left.tensor_scale == right.tensor_scale
    assert left.format == right.format


@pytest.mark.parametrize(
    ("tensor", "values"),
    [
        (Tensor(X), X),
        (Tensor(X, device="cuda:0", requires_grad=True), X),
        (Tensor(X.astype(np.float16), "torch.float16"), X.astype(np.float16)),
        (Tensor(HALF, "torch.bfloat16", "cuda:0", requires_grad=True), HALF.astype(np.float32)),
        (HALF, HALF.astype(np.float32)),
        (X.tolist(), X.astype(np.float64)),
        (memoryview(X), X),
    ],
)
def test_quantize_takes_tensors_of_others(tensor, values):
    same(golden.quantize(tensor, "mixfp4"), golden.quantize(values, "mixfp4"))


def test_a_step_takes_tensors_of_others():
    q, c = golden.quantize(X, "mixfp4"), np.ones((3, 3), np.float32)
    codes, scales = Tensor(q.codes, "torch.uint8"), Tensor(q.scales, "torch.uint8", "cuda:0")
    expected = golden.step(q.codes, q.scales, q.codes, q.scales, c)
    np.testing.assert_array_equal(golden.step(codes, scales, codes, scales, Tensor(c, requires_grad=True)), expected)


def test_torch_itself():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        tensor = torch.from_numpy(X).to(dtype).requires_grad_()
        same(golden.quantize(tensor, "mixfp4"), golden.quantize(tensor.detach().float().numpy(), "mixfp4"))


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(SIXTEENS), st.integers(0, 2**32 - 1))
def test_stored_and_back(fmt, seed):
    rng = np.random.default_rng(seed)
    q = golden.quantize(rng.standard_t(2, (3, 48)) * 2.0 ** rng.integers(-20, 20), fmt)
    assert q.packed.shape == (3, 24)
    same(golden.QuantizedTensor.from_packed(q.packed, q.scales, q.tensor_scale, fmt), q)


def test_a_checkpoint_as_other_libraries_write_it():
    """E2M1 in nibbles, E4M3 scales, one FP32 number: decoded by ml_dtypes, value by value."""
    rng = np.random.default_rng(5)
    packed = rng.integers(0, 256, (4, 16), dtype=np.uint8)
    scales = rng.uniform(0.1, 400, (4, 2)).astype(ml_dtypes.float8_e4m3fn)
    q = golden.QuantizedTensor.from_packed(packed, scales, 0.25, "nvfp4")
    nibbles = np.stack([packed & 15, packed >> 4], axis=-1).reshape(4, 32)
    values = nibbles.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    expected = values * np.repeat(scales.astype(np.float32), 16, axis=1) * np.float32(0.25)
    np.testing.assert_array_equal(golden.dequantize(q), expected)
    same(golden.QuantizedTensor.from_packed(Tensor(packed, "torch.uint8"), scales.view(np.uint8), [0.25], "nvfp4"), q)


def test_which_blocks_are_e1m2():
    q = golden.quantize(np.random.default_rng(1).standard_normal((16, 64)), "mixfp4")
    assert q.e1m2.shape == (16, 4)
    assert 0.1 < q.e1m2.mean() < 0.9
    assert not golden.quantize(X, "nvfp4").e1m2.any()


@pytest.mark.parametrize("fmt", SIXTEENS)
@pytest.mark.parametrize("k", [1, 15, 16, 17, 40])
def test_padding_changes_no_product(fmt, k):
    rng = np.random.default_rng(k)
    x = rng.standard_normal((5, k)).astype(np.float32)
    filled = golden.padded(x)
    assert filled.shape == (5, -(-k // 16) * 16)
    np.testing.assert_array_equal(filled[:, :k], x)
    assert not filled[:, k:].any()
    q = golden.quantize(filled, fmt)
    assert not q.codes[:, k:].any()
    product = golden.gemm(q, q, numerics="exact")
    values = golden.dequantize(q)[:, :k].astype(np.float64)
    np.testing.assert_allclose(product, values @ values.T, rtol=1e-6)
    # Twice the padding is the same tensor, with zero blocks behind it.
    longer = golden.quantize(np.pad(filled, ((0, 0), (0, 16))), fmt)
    np.testing.assert_array_equal(longer.scales[:, :-1], q.scales)
    np.testing.assert_array_equal(longer.codes[:, :-16], q.codes)


@pytest.mark.parametrize("fmt", golden.CATALOGUE)
@pytest.mark.parametrize("k", [17, 64])
def test_padding_changes_no_tensor_scale(fmt, k):
    x = np.random.default_rng(k).standard_normal((8, k))
    q = golden.quantize_padded(x, fmt)
    mean = fmt == "ternary"
    expected = golden.quantize(golden.padded(x, fmt), fmt, tensor_scale=np.float32(np.abs(x).mean()) if mean else None)
    same(q, expected)
    same(golden.quantize_padded(x, fmt, tensor_scale=2), golden.quantize(golden.padded(x, fmt), fmt, tensor_scale=2))


def test_a_padded_tensor_is_refused_for_what_it_is():
    for x, message in ((np.zeros((0, 3)), "x must be"), (np.ones(3), "x must be"), ([[np.nan]], "x.0, 0. is nan")):
        with pytest.raises(golden.ArgumentError, match=message):
            golden.quantize_padded(x, "ternary")


def test_padding_of_other_shapes():
    assert golden.padded(X) is X
    assert golden.padded(Tensor(HALF[:, :3], "torch.bfloat16")).shape == (3, 16)
    assert golden.padded(np.zeros((2, 3, 17))).shape == (2, 3, 32)


@pytest.mark.parametrize("width", [3, 4, 6])
@pytest.mark.parametrize("block", [8, 24, 32])
def test_blocks_and_codes_of_other_sizes(block, width):
    integers = [float(v) for v in range(1 << width - 1)]
    element = golden.ElementFormat("S", width, (*integers, *(-v for v in integers)), fold=1)
    form = golden.BlockFormat("own", (element,), golden.block_format("nvfp4").scale, 448.0 * integers[-1], block=block)
    filled = golden.padded(np.ones((2, block + 1)), form)
    assert filled.shape == (2, 2 * block)
    q = golden.quantize(filled, form)
    assert q.scales.shape == (2, 2)
    assert q.packed.shape == (2, 2 * block * width // 8)
    same(golden.QuantizedTensor.from_packed(q.packed, q.scales, q.tensor_scale, form), q)


def stored(**changes):
    fields = {"packed": np.zeros((2, 8), np.uint8), "scales": np.zeros((2, 1), np.uint8), "tensor_scale": 1.0}
    return golden.QuantizedTensor.from_packed(**{**fields, **changes}, fmt="mixfp4")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: golden.quantize([[1.0, 2.0], [3.0]], "nvfp4"), "x must be an array; list cannot become one"),
        (lambda: golden.quantize(Tensor(X, "torch.float8_e4m3fn"), "nvfp4"), "Tensor cannot become one: Got unsupp"),
        (lambda: golden.quantize("x", "nvfp4"), "x must be float16, bfloat16, float32, float64 or integers; got <U1"),
        (lambda: golden.quantize(X[:, :30], "nvfp4"), r"multiple of 16 \(see padded\); got \(3, 30\)"),
        (lambda: golden.padded(X, "fp4"), "format must be one of 'nvfp4'"),
        (lambda: golden.padded(np.float32(1)), "x must have at least one dimension"),
        (lambda: golden.padded([True]), "x must be float16, bfloat16, float32, float64 or integers; got bool"),
        (lambda: stored(packed=np.zeros((2, 8), np.int8)), "data must be uint8; got int8"),
        (lambda: stored(scales=np.zeros((2, 2), np.uint8)), r"scales must be \(2, 1\), one per 16 codes"),
        (lambda: stored(scales=np.zeros((2, 1), np.float32)), "scales must be uint8; got float32"),
        (lambda: stored(tensor_scale=0.1), "a number that float32 holds; got 0.1"),
        (lambda: stored(tensor_scale=1e300), "a number that float32 holds; got 1e"),
        (lambda: stored(tensor_scale=np.nan), "a number that float32 holds; got nan"),
        (lambda: stored(tensor_scale=np.ones(2)), r"must be one number; got float64 \(2,\)"),
        (lambda: stored(tensor_scale="1"), "must be one number; got <U1"),
        (lambda: stored(tensor_scale=-1), "tensor_scale must be positive and finite"),
    ],
)
def test_errors_name_the_culprit(call, message):
    with pytest.raises(golden.ArgumentError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
