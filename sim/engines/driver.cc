// The clock of one core: steps in, results out, until something is needed from outside. What translate.py writes stands
// before it, with the struct core.

namespace {

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

}  // namespace

extern "C" {

struct position {
    uint64_t cycle, accepted, answered, idle, pending;
};

enum { done, needs_steps, needs_cycles, stuck, surplus };

__attribute__((visibility("default"))) void *hwgen_create() { return new core; }

__attribute__((visibility("default"))) void hwgen_destroy(void *handle) { delete static_cast<core *>(handle); }

// Steps [first, last) of total are at payloads, decisions for cycles [start, stop) at offer and take.
__attribute__((visibility("default"))) int hwgen_run(
    void *handle, position *at, const uint8_t *payloads, uint64_t first, uint64_t last, uint64_t total,
    const uint8_t *offer, const uint8_t *take, uint64_t start, uint64_t stop, uint8_t *results, uint64_t expected,
    uint64_t *handshakes, uint64_t patience) {
    core &top = *static_cast<core *>(handle);
    while (at->accepted < total || at->answered < expected) {
        if (at->cycle >= stop) return needs_cycles;
        if (!at->pending && at->accepted < total) {
            if (at->accepted >= last) return needs_steps;
            if (offer[at->cycle - start]) {
                at->pending = 1;
                load(top.i_step__payload, payloads + (at->accepted - first) * bytes_of(top.i_step__payload));
            }
        }
        const bool taking = take[at->cycle - start];
        top.i_step__valid = bit{{at->pending}};
        top.i_result__ready = bit{{taking}};
        top.eval();
        const bool ready = bool(top.o_step__ready()), valid = bool(top.o_result__valid());
        const bool accepting = at->pending && ready, answering = taking && valid;
        handshakes[at->pending << 3 | uint64_t(ready) << 2 | uint64_t(valid) << 1 | uint64_t(taking)]++;
        if (answering) {
            if (at->answered == expected) return surplus;
            const auto &payload = top.o_result__payload();
            store(payload, results + at->answered * bytes_of(payload));
        }
        top.commit();
        if (accepting) at->pending = 0;
        at->accepted += accepting;
        at->answered += answering;
        at->cycle++;
        if (accepting || answering) {
            at->idle = 0;
        } else if (taking && (at->pending || at->accepted == total)) {
            if (++at->idle > patience) return stuck;
        }
    }
    return done;
}

}  // extern "C"
