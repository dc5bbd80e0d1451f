// Values of any width, and the cells of Yosys' library on them, for what translate.py writes. It calls a cell where an
// operand or the result is wider than a word, and writes out all others.

#include <cstddef>
#include <cstdint>

namespace words {

#define INLINE __attribute__((always_inline)) inline

constexpr uint64_t ones(size_t bits) {
    return bits % 64 ? ~uint64_t(0) >> (64 - bits % 64) : ~uint64_t(0);
}

// Bits above the width are zero, always.
template <size_t Bits>
struct value {
    static constexpr size_t words = (Bits + 63) / 64;
    uint64_t data[words];

    INLINE explicit operator bool() const {
        uint64_t any = 0;
        for (uint64_t word : data) any |= word;
        return any != 0;
    }
};

using bit = value<1>;

// Widens, by zeros or by the sign, or narrows.
template <size_t To, size_t From>
INLINE value<To> resize(const value<From> &from, bool is_signed) {
    value<To> result;
    const bool negative = is_signed && from.data[from.words - 1] >> ((From - 1) % 64) & 1;
    const uint64_t fill = negative ? ~uint64_t(0) : 0;
    for (size_t i = 0; i < result.words; i++) result.data[i] = i < from.words ? from.data[i] : fill;
    if (From < To && From % 64) result.data[from.words - 1] |= fill << (From % 64);
    result.data[result.words - 1] &= ones(To);
    return result;
}

// Bitwise and arithmetic cells take their operands at the width of the result.
#define BINARY(name, statement)                                                         \
    template <size_t Y, bool is_signed, size_t A, size_t B>                             \
    INLINE value<Y> name(const value<A> &left, const value<B> &right) {                 \
        const value<Y> a = resize<Y>(left, is_signed), b = resize<Y>(right, is_signed); \
        value<Y> y;                                                                     \
        [[maybe_unused]] uint64_t carry = 0;                                            \
        for (size_t i = 0; i < y.words; i++) statement;                                 \
        y.data[y.words - 1] &= ones(Y);                                                 \
        return y;                                                                       \
    }

BINARY(cell_and, y.data[i] = a.data[i] & b.data[i])
BINARY(cell_or, y.data[i] = a.data[i] | b.data[i])
BINARY(cell_xor, y.data[i] = a.data[i] ^ b.data[i])
BINARY(cell_xnor, y.data[i] = ~(a.data[i] ^ b.data[i]))
BINARY(cell_add, {
    const uint64_t half = a.data[i] + b.data[i];
    y.data[i] = half + carry;
    carry = (half < a.data[i]) | (y.data[i] < half);
})
BINARY(cell_sub, {
    const uint64_t half = a.data[i] - b.data[i];
    y.data[i] = half - carry;
    carry = (a.data[i] < b.data[i]) | (half < carry);
})

template <size_t Y, bool is_signed, size_t A, size_t B>
INLINE value<Y> cell_mul(const value<A> &left, const value<B> &right) {
    const value<Y> a = resize<Y>(left, is_signed), b = resize<Y>(right, is_signed);
    value<Y> y{};
    for (size_t i = 0; i < y.words; i++) {
        uint64_t carry = 0;
        for (size_t j = 0; i + j < y.words; j++) {
            const unsigned __int128 sum = (unsigned __int128)a.data[i] * b.data[j] + y.data[i + j] + carry;
            y.data[i + j] = uint64_t(sum);
            carry = uint64_t(sum >> 64);
        }
    }
    y.data[y.words - 1] &= ones(Y);
    return y;
}

template <size_t Y, bool is_signed, size_t A>
INLINE value<Y> cell_pos(const value<A> &a) {
    return resize<Y>(a, is_signed);
}

template <size_t Y, bool is_signed, size_t A>
INLINE value<Y> cell_not(const value<A> &a) {
    return cell_xnor<Y, false>(resize<Y>(a, is_signed), value<Y>{});
}

template <size_t Y, bool is_signed, size_t A>
INLINE value<Y> cell_neg(const value<A> &a) {
    return cell_sub<Y, false>(value<Y>{}, resize<Y>(a, is_signed));
}

template <size_t Y, bool is_signed, size_t A>
INLINE value<Y> cell_reduce_or(const value<A> &a) {
    return {{bool(a)}};
}

template <size_t Y, bool is_signed, size_t A>
INLINE value<Y> cell_reduce_bool(const value<A> &a) {
    return {{bool(a)}};
}

template <size_t Y, bool is_signed, size_t A>
INLINE value<Y> cell_logic_not(const value<A> &a) {
    return {{!bool(a)}};
}

template <size_t Y, bool is_signed, size_t A>
INLINE value<Y> cell_reduce_and(const value<A> &a) {
    return {{!bool(cell_not<A, false>(a))}};
}

// Comparisons take their operands at the width of the wider one.
template <bool is_signed, size_t A, size_t B>
INLINE int compare(const value<A> &left, const value<B> &right) {
    constexpr size_t width = A > B ? A : B;
    value<width> a = resize<width>(left, is_signed), b = resize<width>(right, is_signed);
    if (is_signed) {
        a.data[a.words - 1] ^= uint64_t(1) << ((width - 1) % 64);
        b.data[b.words - 1] ^= uint64_t(1) << ((width - 1) % 64);
    }
    for (size_t i = a.words; i-- > 0;)
        if (a.data[i] != b.data[i]) return a.data[i] < b.data[i] ? -1 : 1;
    return 0;
}

#define COMPARISON(name, operation)                              \
    template <size_t Y, bool is_signed, size_t A, size_t B>      \
    INLINE value<Y> name(const value<A> &a, const value<B> &b) { \
        return {{compare<is_signed>(a, b) operation 0}};         \
    }

COMPARISON(cell_eq, ==)
COMPARISON(cell_ne, !=)
COMPARISON(cell_lt, <)
COMPARISON(cell_le, <=)
COMPARISON(cell_gt, >)
COMPARISON(cell_ge, >=)

// Not zero where two values are not equal.
INLINE uint64_t difference(uint64_t a, uint64_t b) { return a ^ b; }

template <size_t Bits>
INLINE uint64_t difference(const value<Bits> &a, const value<Bits> &b) {
    uint64_t found = 0;
    for (size_t i = 0; i < a.words; i++) found |= a.data[i] ^ b.data[i];
    return found;
}

// Signals from and to bytes, the lowest first.

template <size_t Bits>
void load(value<Bits> &signal, const uint8_t *bytes) {
    for (uint64_t &word : signal.data) word = 0;
    for (size_t i = 0; i < (Bits + 7) / 8; i++) signal.data[i / 8] |= uint64_t(bytes[i]) << (i % 8 * 8);
}

template <size_t Bits>
void store(const value<Bits> &signal, uint8_t *bytes) {
    for (size_t i = 0; i < (Bits + 7) / 8; i++) bytes[i] = uint8_t(signal.data[i / 8] >> (i % 8 * 8));
}

template <size_t Bits>
constexpr size_t bytes_of(const value<Bits> &) {
    return (Bits + 7) / 8;
}

}  // namespace words
