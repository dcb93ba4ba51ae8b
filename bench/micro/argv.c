/* Microbenchmark: the arguments of a whole request. */
#include <stdlib.h>

#include "micro.h"
#include "resp/argv.h"

static void walk(struct slice request, uint64_t n)
{
    while (n-- > 0) {
        struct argv_walk walk;
        struct slice arg;
        argv_walk_init(&walk, request);
        while (argv_next(&walk, &arg))
            micro_use(arg.at);
    }
}

static void walk_get(uint64_t n)
{
    walk(SLICE("*2\r\n$3\r\nGET\r\n$13\r\nget16:0000123\r\n"), n);
}

static void walk_set(uint64_t n)
{
    walk(SLICE("*3\r\n$3\r\nSET\r\n$13\r\nset16:0000123\r\n$16\r\n0123456789abcdef\r\n"), n);
}

static void split_inline(uint64_t n)
{
    const struct slice line = SLICE("SET set16:0000123 \"a value\"\r\n");
    char out[ARGV_INLINE_ROOM(32)];
    while (n-- > 0) {
        size_t len;
        if (!argv_split(line, out, &len))
            abort();
        micro_use(len);
    }
}

const struct micro *micro_argv(void)
{
    static const struct micro rows[] = {
        {"argv/walk GET", NULL, walk_get},
        {"argv/walk SET", NULL, walk_set},
        {"argv/split inline SET", NULL, split_inline},
        {0},
    };
    return rows;
}
