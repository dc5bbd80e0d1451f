// The clock of one quantiser: blocks in, results out, as patterns of cycles say. What translate.py writes stands before
// it, with the struct core.

extern "C" {

// Decisions for cycle i, period + i, and so on.
struct pattern {
    const uint8_t *bits;
    uint64_t period;
};

__attribute__((visibility("default"))) void *hwgen_create() { return new core; }

__attribute__((visibility("default"))) void hwgen_destroy(void *handle) { delete static_cast<core *>(handle); }

// Gives the number of cycles; 0 if nothing moved for as many as patience says, or if a result was one too many.
__attribute__((visibility("default"))) uint64_t hwgen_quantise(
    void *handle, const uint8_t *fraction, const uint8_t *exponent, const uint8_t *blocks, uint64_t count,
    const pattern *offer, const pattern *take, uint64_t patience, uint8_t *results) {
    core &top = *static_cast<core *>(handle);
    load(top.i_tensor_fraction, fraction);
    load(top.i_tensor_exponent, exponent);
    uint64_t accepted = 0, answered = 0, idle = 0, cycle = 0;
    bool pending = false;
    while (answered < count) {
        if (!pending && accepted < count && offer->bits[cycle % offer->period]) {
            pending = true;
            auto &payload = top.i_block__payload;
            load(payload, blocks + accepted * bytes_of(payload));
        }
        const bool taking = take->bits[cycle % take->period];
        top.i_block__valid = bit{{pending}};
        top.i_result__ready = bit{{taking}};
        top.eval();
        const bool accepting = pending && bool(top.o_block__ready());
        const bool answering = taking && bool(top.o_result__valid());
        if (answering) {
            if (answered == accepted) return 0;
            const auto &payload = top.o_result__payload();
            store(payload, results + answered * bytes_of(payload));
        }
        top.commit();
        if (accepting) {
            pending = false;
            accepted++;
        }
        answered += answering;
        cycle++;
        idle = accepting || answering ? 0 : idle + 1;
        if (idle > patience) return 0;
    }
    return cycle;
}

}  // extern "C"
