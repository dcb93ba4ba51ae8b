#include "upstream/not_run.h"

#include <string.h>

static const struct slice rows[NOT_RUN_ROWS] = {
#define NOT_RUN(name, text, where) [NOT_RUN_##name] = {text, sizeof(text) - 1},
#include "upstream/not_run.def"
#undef NOT_RUN
};

#define NOT_RUN(name, text, where) _Static_assert(sizeof(text) <= NOT_RUN_ROOM, "NOT_RUN_ROOM holds each row");
#include "upstream/not_run.def"
#undef NOT_RUN

struct slice not_run_text(enum not_run row)
{
    return rows[row];
}

struct not_run_look not_run_look(struct slice bytes)
{
    struct not_run_look look = {.sight = NOT_RUN_NO};
    for (size_t i = 0; i < NOT_RUN_ROWS; i++) {
        size_t n = bytes.len < rows[i].len ? bytes.len : rows[i].len;
        if (memcmp(bytes.at, rows[i].at, n) != 0)
            continue;
        if (n == rows[i].len)
            return (struct not_run_look){NOT_RUN_YES, (enum not_run)i, n};
        look.sight = NOT_RUN_MORE;
    }
    return look;
}
