// What the output of write_cxxrtl needs at run time, as far as synchronous designs with one clock go.
//
// Yosys brings a library of its own, whose values are loops over 32-bit chunks: unrolling them takes the
// compiler most of a minute for one element of the array. Here every value of up to 64 bits is one word, and
// what fits in one word is told apart early, which saves the compiler more.

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace cxxrtl_yosys {

#define INLINE __attribute__((always_inline)) inline

constexpr uint64_t ones(size_t bits) {
    return bits % 64 ? ~uint64_t(0) >> (64 - bits % 64) : ~uint64_t(0);
}

template <size_t Bits, size_t Stop, size_t Start>
struct part;

template <class High, class Low>
struct joined;

template <size_t Bits>
struct value {
    static constexpr size_t bits = Bits;
    static constexpr size_t words = (Bits + 63) / 64;
    uint64_t data[words] = {};

    value() = default;

    // Generated constants are lists of 32-bit numbers.
    template <typename... Rest>
    INLINE explicit constexpr value(uint32_t first, Rest... rest) {
        size_t index = 0;
        for (uint32_t number : {first, uint32_t(rest)...}) {
            data[index / 2] |= uint64_t(number) << (index % 2 * 32);
            index++;
        }
    }

    value(const value &) = default;
    // Variables only: what is assigned to an expression would be lost.
    value &operator=(const value &) & = default;

    INLINE const value &val() const { return *this; }

    INLINE explicit operator bool() const {
        uint64_t any = 0;
        for (uint64_t word : data) any |= word;
        return any != 0;
    }

    // Widens, by zeros or by the sign, or narrows.
    template <size_t To>
    INLINE value<To> resize(bool is_signed) const {
        value<To> result;
        if constexpr (To <= 64 && Bits <= 64) {
            const int unused = 64 - Bits;
            result.data[0] = is_signed ? uint64_t(int64_t(data[0] << unused) >> unused) : data[0];
            result.data[0] &= ones(To);
            return result;
        }
        const bool negative = is_signed && data[words - 1] >> ((Bits - 1) % 64) & 1;
        const uint64_t fill = negative ? ~uint64_t(0) : 0;
        for (size_t i = 0; i < result.words; i++) result.data[i] = i < words ? data[i] : fill;
        if (Bits < To && Bits % 64) result.data[words - 1] |= fill << (Bits % 64);
        result.data[result.words - 1] &= ones(To);
        return result;
    }

    template <size_t Stop, size_t Start>
    INLINE value<Stop - Start + 1> get() const {
        value<Stop - Start + 1> result;
        constexpr size_t base = Start / 64, shift = Start % 64;
        if constexpr (Stop / 64 == base) {
            result.data[0] = data[base] >> shift & ones(result.bits);
            return result;
        }
        for (size_t i = 0; i < result.words; i++) {
            result.data[i] = data[base + i] >> shift;
            if (shift && base + i < Stop / 64) result.data[i] |= data[base + i + 1] << (64 - shift);
        }
        result.data[result.words - 1] &= ones(result.bits);
        return result;
    }

    template <size_t Stop, size_t Start>
    INLINE void set(const value<Stop - Start + 1> &source) {
        constexpr size_t base = Start / 64, shift = Start % 64;
        for (size_t i = 0; i < source.words; i++) {
            const uint64_t mask = i + 1 < source.words ? ~uint64_t(0) : ones(source.bits);
            data[base + i] = (data[base + i] & ~(mask << shift)) | source.data[i] << shift;
            if (shift && base + i < Stop / 64) {
                uint64_t &next = data[base + i + 1];
                next = (next & ~(mask >> (64 - shift))) | source.data[i] >> (64 - shift);
            }
        }
    }

    template <size_t Stop, size_t Start = Stop>
    INLINE part<Bits, Stop, Start> slice() {
        return {*this};
    }

    template <size_t Stop, size_t Start = Stop>
    INLINE value<Stop - Start + 1> slice() const {
        return get<Stop, Start>();
    }

    template <class Low>
    INLINE value<Bits + Low::bits> concat(const Low &low) const {
        value<Bits + Low::bits> result;
        if constexpr (result.bits <= 64) {
            result.data[0] = data[0] << Low::bits | low.val().data[0];
            return result;
        }
        result.template set<Low::bits - 1, 0>(low.val());
        result.template set<Bits + Low::bits - 1, Low::bits>(*this);
        return result;
    }

    template <size_t Count>
    INLINE value<Count> repeat() const {
        static_assert(Bits == 1, "single bits only");
        return resize<Count>(true);
    }
};

// A slice of a variable, which is read or written.
template <size_t Bits, size_t Stop, size_t Start>
struct part {
    static constexpr size_t bits = Stop - Start + 1;
    value<Bits> &whole;

    INLINE value<bits> val() const { return whole.template get<Stop, Start>(); }
    INLINE operator value<bits>() const { return val(); }
    INLINE explicit operator bool() const { return bool(val()); }
    INLINE void operator=(const value<bits> &source) const { whole.template set<Stop, Start>(source); }

    template <class Low>
    INLINE joined<part, Low> concat(const Low &low) const {
        return {*this, low};
    }

    template <size_t Count>
    INLINE value<Count> repeat() const {
        return val().template repeat<Count>();
    }
};

// A slice and what follows it, which are read, or written if they are all slices.
template <class High, class Low>
struct joined {
    static constexpr size_t bits = High::bits + Low::bits;
    const High high;
    const Low low;

    INLINE value<bits> val() const { return high.val().concat(low); }
    INLINE operator value<bits>() const { return val(); }
    INLINE explicit operator bool() const { return bool(val()); }
    INLINE void operator=(const value<bits> &source) const {
        high = source.template get<bits - 1, Low::bits>();
        low = source.template get<Low::bits - 1, 0>();
    }

    template <class Lower>
    INLINE joined<joined, Lower> concat(const Lower &lower) const {
        return {*this, lower};
    }
};

struct observer {};
struct performer {};
struct interior {};

// A register.
template <size_t Bits>
struct wire {
    value<Bits> curr, next;

    wire() = default;
    template <typename... Numbers>
    explicit constexpr wire(Numbers... numbers) : curr(numbers...), next(numbers...) {}

    INLINE bool commit(observer &) {
        curr = next;
        return false;
    }
};

// An output of combinational logic.
template <size_t Bits>
struct net {
    value<Bits> curr;
    value<Bits> &next = curr;

    INLINE bool commit(observer &) { return false; }
};

struct module {
    virtual ~module() = default;
    virtual void reset() = 0;
    virtual bool eval(performer *) = 0;
    virtual bool commit() = 0;
};

// Bitwise and arithmetic cells take their operands at the width of the result.
#define BINARY(name, suffix, is_signed, statement)                                   \
    template <size_t Y, size_t A, size_t B>                                          \
    INLINE value<Y> name##_##suffix(const value<A> &left, const value<B> &right) {   \
        value<Y> a = left.template resize<Y>(is_signed), y;                          \
        value<Y> b = right.template resize<Y>(is_signed);                            \
        [[maybe_unused]] uint64_t carry = 0;                                         \
        for (size_t i = 0; i < y.words; i++) statement;                              \
        y.data[y.words - 1] &= ones(Y);                                              \
        return y;                                                                    \
    }
#define BOTH(name, statement)          \
    BINARY(name, uu, false, statement) \
    BINARY(name, ss, true, statement)

BOTH(and, y.data[i] = a.data[i] & b.data[i])
BOTH(or, y.data[i] = a.data[i] | b.data[i])
BOTH(xor, y.data[i] = a.data[i] ^ b.data[i])
BOTH(xnor, y.data[i] = ~(a.data[i] ^ b.data[i]))
BOTH(add, {
    const uint64_t half = a.data[i] + b.data[i];
    y.data[i] = half + carry;
    carry = (half < a.data[i]) | (y.data[i] < half);
})
BOTH(sub, {
    const uint64_t half = a.data[i] - b.data[i];
    y.data[i] = half - carry;
    carry = (a.data[i] < b.data[i]) | (half < carry);
})

#define PRODUCT(suffix, is_signed)                                                 \
    template <size_t Y, size_t A, size_t B>                                        \
    INLINE value<Y> mul_##suffix(const value<A> &left, const value<B> &right) {    \
        const value<Y> a = left.template resize<Y>(is_signed);                     \
        const value<Y> b = right.template resize<Y>(is_signed);                    \
        value<Y> y = value<Y>(uint32_t(0));                                        \
        for (size_t i = 0; i < y.words; i++) {                                     \
            uint64_t carry = 0;                                                    \
            for (size_t j = 0; i + j < y.words; j++) {                             \
                const unsigned __int128 sum =                                      \
                    (unsigned __int128)a.data[i] * b.data[j] + y.data[i + j] + carry; \
                y.data[i + j] = uint64_t(sum);                                     \
                carry = uint64_t(sum >> 64);                                       \
            }                                                                      \
        }                                                                          \
        y.data[y.words - 1] &= ones(Y);                                            \
        return y;                                                                  \
    }
PRODUCT(uu, false)
PRODUCT(ss, true)

#define UNARY(suffix, is_signed)                                         \
    template <size_t Y, size_t A>                                        \
    INLINE value<Y> pos_##suffix(const value<A> &a) {                    \
        return a.template resize<Y>(is_signed);                          \
    }                                                                    \
    template <size_t Y, size_t A>                                        \
    INLINE value<Y> not_##suffix(const value<A> &a) {                    \
        return xnor_uu<Y>(a.template resize<Y>(is_signed), value<Y>());  \
    }                                                                    \
    template <size_t Y, size_t A>                                        \
    INLINE value<Y> neg_##suffix(const value<A> &a) {                    \
        return sub_uu<Y>(value<Y>(), a.template resize<Y>(is_signed));   \
    }
UNARY(u, false)
UNARY(s, true)

template <size_t Y, size_t A>
INLINE value<Y> reduce_or(const value<A> &a) {
    return value<Y>(uint32_t(bool(a)));
}

template <size_t Y, size_t A>
INLINE value<Y> reduce_bool(const value<A> &a) {
    return reduce_or<Y>(a);
}

template <size_t Y, size_t A>
INLINE value<Y> logic_not(const value<A> &a) {
    return value<Y>(uint32_t(!bool(a)));
}

template <size_t Y, size_t A>
INLINE value<Y> reduce_and(const value<A> &a) {
    return logic_not<Y>(not_u<A>(a));
}

// Comparisons take their operands at the width of the wider one.
template <size_t A, size_t B>
INLINE int compare(const value<A> &left, const value<B> &right, bool is_signed) {
    constexpr size_t width = A > B ? A : B;
    value<width> a = left.template resize<width>(is_signed), b = right.template resize<width>(is_signed);
    if (is_signed) {
        a.data[a.words - 1] ^= uint64_t(1) << ((width - 1) % 64);
        b.data[b.words - 1] ^= uint64_t(1) << ((width - 1) % 64);
    }
    for (size_t i = a.words; i-- > 0;)
        if (a.data[i] != b.data[i]) return a.data[i] < b.data[i] ? -1 : 1;
    return 0;
}

#define COMPARISON(name, suffix, is_signed, operation)                        \
    template <size_t Y, size_t A, size_t B>                                   \
    INLINE value<Y> name##_##suffix(const value<A> &a, const value<B> &b) {   \
        return value<Y>(uint32_t(compare(a, b, is_signed) operation 0));      \
    }
#define COMPARISONS(name, operation)         \
    COMPARISON(name, uu, false, operation)   \
    COMPARISON(name, ss, true, operation)

COMPARISONS(eq, ==)
COMPARISONS(ne, !=)
COMPARISONS(lt, <)
COMPARISONS(le, <=)
COMPARISONS(gt, >)
COMPARISONS(ge, >=)

}  // namespace cxxrtl_yosys
