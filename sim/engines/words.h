// Values of any width, and the cells of Yosys' library on them, for what translate.py writes.
//
// A value of up to 64 bits is one word, and what fits in one word is told apart early: that leaves the compiler less
// to unroll.

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
    static constexpr size_t bits = Bits, words = (Bits + 63) / 64;
    uint64_t data[words];

    INLINE explicit operator bool() const {
        uint64_t any = 0;
        for (uint64_t word : data) any |= word;
        return any != 0;
    }
};

using bit = value<1>;

template <size_t Low, size_t Width, size_t From>
INLINE value<Width> slice(const value<From> &from) {
    static_assert(Low + Width <= From, "bits that are not there");
    value<Width> result;
    constexpr size_t base = Low / 64, shift = Low % 64;
    if constexpr (Width <= 64) {
        result.data[0] = from.data[base] >> shift;
        if constexpr (shift + Width > 64) result.data[0] |= from.data[base + 1] << (64 - shift);
    } else {
        for (size_t i = 0; i < result.words; i++) {
            result.data[i] = from.data[base + i] >> shift;
            if (shift && base + i + 1 < from.words) result.data[i] |= from.data[base + i + 1] << (64 - shift);
        }
    }
    result.data[result.words - 1] &= ones(Width);
    return result;
}

template <size_t Low, size_t To, size_t Width>
INLINE void place(value<To> &to, const value<Width> &part) {
    constexpr size_t base = Low / 64, shift = Low % 64;
    for (size_t i = 0; i < part.words; i++) {
        to.data[base + i] |= part.data[i] << shift;
        if (shift && base + i + 1 < to.words) to.data[base + i + 1] |= part.data[i] >> (64 - shift);
    }
}

template <size_t To>
INLINE void place_all(value<To> &) {}

template <size_t To, size_t Width, typename... Rest>
INLINE void place_all(value<To> &to, const value<Width> &part, const Rest &...rest) {
    place<(size_t(0) + ... + Rest::bits)>(to, part);
    place_all(to, rest...);
}

// Side by side, the highest first.
template <typename... Parts>
INLINE auto join(const Parts &...parts) {
    value<(Parts::bits + ...)> result{};
    place_all(result, parts...);
    return result;
}

// Widens, by zeros or by the sign, or narrows.
template <size_t To, size_t From>
INLINE value<To> resize(const value<From> &from, bool is_signed) {
    value<To> result;
    if constexpr (To <= 64 && From <= 64) {
        const int unused = 64 - From;
        result.data[0] = is_signed ? uint64_t(int64_t(from.data[0] << unused) >> unused) : from.data[0];
        result.data[0] &= ones(To);
        return result;
    }
    const bool negative = is_signed && from.data[from.words - 1] >> ((From - 1) % 64) & 1;
    const uint64_t fill = negative ? ~uint64_t(0) : 0;
    for (size_t i = 0; i < result.words; i++) result.data[i] = i < from.words ? from.data[i] : fill;
    if (From < To && From % 64) result.data[from.words - 1] |= fill << (From % 64);
    result.data[result.words - 1] &= ones(To);
    return result;
}

template <size_t Count>
INLINE value<Count> repeat(const bit &one) {
    return resize<Count>(one, true);
}

template <size_t Bits>
INLINE value<Bits> choose(const bit &select, const value<Bits> &one, const value<Bits> &zero) {
    return select ? one : zero;
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

}  // namespace words
