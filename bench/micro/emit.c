/* Microbenchmark: RESP written into memory. */
#include "micro.h"
#include "resp/emit.h"

static void header(uint64_t n)
{
    char out[EMIT_HEADER_MAX];
    while (n-- > 0)
        micro_use(emit_header(out, '$', (int64_t)(n & 0xffff)));
}

static void array(uint64_t n)
{
    const struct slice args[] = {SLICE("GET"), SLICE("get16:0000123")};
    char out[EMIT_HEADER_MAX * 3 + 64];
    while (n-- > 0)
        micro_use(emit_array(out, args, 2));
}

const struct micro *micro_emit(void)
{
    static const struct micro rows[] = {
        {"emit/header", NULL, header},
        {"emit/array GET", NULL, array},
        {0},
    };
    return rows;
}
