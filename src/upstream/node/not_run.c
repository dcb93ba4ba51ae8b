#include "upstream/node/not_run.h"

#include <string.h>

static const struct slice rows[NOT_RUN_FIXED] = {
#define NOT_RUN(name, text, where) [NOT_RUN_##name] = {text, sizeof(text) - 1},
#include "upstream/node/not_run.def"
#undef NOT_RUN
};

enum where { REPLICATED, CLUSTER };

static const enum where wheres[NOT_RUN_FIXED] = {
#define NOT_RUN(name, text, where) [NOT_RUN_##name] = (where),
#include "upstream/node/not_run.def"
#undef NOT_RUN
};

#define NOT_RUN(name, text, where) _Static_assert(sizeof(text) <= NOT_RUN_ROOM, "NOT_RUN_ROOM holds each row");
#include "upstream/node/not_run.def"
#undef NOT_RUN

struct slice not_run_text(enum not_run row)
{
    return rows[row];
}

/* The error's first word is that of a redirect, if it ends behind these `word` bytes. */
static struct not_run_look look_at_redirect(struct slice bytes, size_t word, enum not_run row)
{
    size_t most = bytes.len < NOT_RUN_ROOM ? bytes.len : NOT_RUN_ROOM;
    const char *end = memchr(bytes.at, '\r', most);
    size_t len = end != NULL ? (size_t)(end - bytes.at) + 2 : bytes.len + 1;
    struct not_run_look look = {.sight = NOT_RUN_NO};
    if ((bytes.len > word && bytes.at[word] != ' ' && bytes.at[word] != '\r') || len > NOT_RUN_ROOM)
        return look;
    if (bytes.len < len)
        look.sight = NOT_RUN_MORE;
    else if (bytes.at[len - 1] == '\n') /* else it is no reply at all */
        look = (struct not_run_look){NOT_RUN_YES, row, len};
    return look;
}

static struct not_run_look look_at_redirects(struct slice bytes)
{
    static const struct {
        struct slice head;
        enum not_run row;
    } redirects[] = {{{"-MOVED", 6}, NOT_RUN_MOVED}, {{"-ASK", 4}, NOT_RUN_ASK}};
    struct not_run_look look = {.sight = NOT_RUN_NO};
    for (size_t i = 0; i < sizeof redirects / sizeof redirects[0]; i++) {
        const struct slice head = redirects[i].head;
        size_t n = bytes.len < head.len ? bytes.len : head.len;
        if (memcmp(bytes.at, head.at, n) != 0)
            continue;
        if (n == head.len)
            return look_at_redirect(bytes, n, redirects[i].row);
        look.sight = NOT_RUN_MORE;
    }
    return look;
}

struct not_run_look not_run_look(struct slice bytes, bool is_cluster)
{
    struct not_run_look look = {.sight = NOT_RUN_NO};
    if (is_cluster)
        look = look_at_redirects(bytes);
    for (size_t i = 0; i < NOT_RUN_FIXED && look.sight != NOT_RUN_YES; i++) {
        size_t n = bytes.len < rows[i].len ? bytes.len : rows[i].len;
        if ((wheres[i] == CLUSTER && !is_cluster) || memcmp(bytes.at, rows[i].at, n) != 0)
            continue;
        if (n == rows[i].len)
            return (struct not_run_look){NOT_RUN_YES, (enum not_run)i, n};
        look.sight = NOT_RUN_MORE;
    }
    return look;
}
