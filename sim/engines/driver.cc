// The clock of one core: steps and C in, results out, until something is needed from outside. What translate.py writes stands
// before it, with the struct core.

extern "C" {

struct position {
    uint64_t cycle, accepted, supplied, answered, idle, step_pending, addend_pending;
};

// Payloads [first, last) of total, and the cycles in which they were accepted, by payload.
struct stream {
    const uint8_t *payloads;
    uint64_t first, last, total;
    uint64_t *accepted;
};

// Decisions for cycles [start, stop).
struct decisions {
    const uint8_t *offer, *supply, *take;
    uint64_t start, stop;
};

enum { done, needs_steps, needs_addends, needs_cycles, stuck, surplus };

__attribute__((visibility("default"))) void *hwgen_create() { return new core; }

__attribute__((visibility("default"))) void hwgen_destroy(void *handle) { delete static_cast<core *>(handle); }

__attribute__((visibility("default"))) int hwgen_run(
    void *handle, position *at, const stream *steps, const stream *addends, const decisions *decided, uint8_t *results,
    uint64_t expected, uint64_t *handshakes, uint64_t patience) {
    core &top = *static_cast<core *>(handle);
    while (at->accepted < steps->total || at->answered < expected) {
        if (at->cycle >= decided->stop) return needs_cycles;
        const uint64_t now = at->cycle - decided->start;
        if (!at->step_pending && at->accepted < steps->total) {
            if (at->accepted >= steps->last) return needs_steps;
            if (decided->offer[now]) {
                at->step_pending = 1;
                auto &payload = top.i_step__payload;
                load(payload, steps->payloads + (at->accepted - steps->first) * bytes_of(payload));
            }
        }
        if (!at->addend_pending && at->supplied < addends->total) {
            if (at->supplied >= addends->last) return needs_addends;
            if (decided->supply[now]) {
                at->addend_pending = 1;
                auto &payload = top.i_addend__payload;
                load(payload, addends->payloads + (at->supplied - addends->first) * bytes_of(payload));
            }
        }
        const bool taking = decided->take[now];
        top.i_step__valid = bit{{at->step_pending}};
        top.i_addend__valid = bit{{at->addend_pending}};
        top.i_result__ready = bit{{taking}};
        top.eval();
        const bool step_ready = bool(top.o_step__ready()), addend_ready = bool(top.o_addend__ready());
        const bool valid = bool(top.o_result__valid());
        const bool accepting = at->step_pending && step_ready, supplying = at->addend_pending && addend_ready;
        const bool answering = taking && valid;
        handshakes
            [at->step_pending << 5 | uint64_t(step_ready) << 4 | at->addend_pending << 3 | uint64_t(addend_ready) << 2 |
             uint64_t(valid) << 1 | uint64_t(taking)]++;
        if (answering) {
            if (at->answered == expected) return surplus;
            const auto &payload = top.o_result__payload();
            store(payload, results + at->answered * bytes_of(payload));
        }
        top.commit();
        if (accepting) {
            at->step_pending = 0;
            steps->accepted[at->accepted++] = at->cycle;
        }
        if (supplying) {
            at->addend_pending = 0;
            addends->accepted[at->supplied++] = at->cycle;
        }
        at->answered += answering;
        at->cycle++;
        if (accepting || supplying || answering) {
            at->idle = 0;
        } else if (
            taking && (at->step_pending || at->accepted == steps->total) &&
            (at->addend_pending || at->supplied == addends->total)) {
            if (++at->idle > patience) return stuck;
        }
    }
    return done;
}

}  // extern "C"
