#include "upstream/not_run.h"

#include <string.h>

static const struct slice rows[NOT_RUN_FIXED] = {
#define NOT_RUN(name, text, where) [NOT_RUN_##name] = {text, sizeof(text) - 1},
#include "upstream/not_run.def"
#undef NOT_RUN
};

enum where { REPLICATED, CLUSTER };

static const enum where wheres[NOT_RUN_FIXED] = {
#define NOT_RUN(name, text, where) [NOT_RUN_##name] = (where),
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

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* `-MOVED SLOT ADDRESS:PORT` of these bytes, whose first have the form of `head`. */
static struct not_run_look look_at_redirect(struct slice bytes, struct slice head, enum not_run row)
{
    size_t at = head.len, digits = 0, port = 0;
    struct not_run_look no = {.sight = NOT_RUN_NO};
    for (; at < bytes.len && is_digit(bytes.at[at]); at++)
        digits++;
    if (digits > 5 || (at < bytes.len && (digits == 0 || bytes.at[at] != ' ')))
        return no;
    bool is_port = false;
    for (at++; at < bytes.len && bytes.at[at] > ' ' && bytes.at[at] < 0x7f; at++) {
        bool is_colon = bytes.at[at] == ':';
        port = is_colon ? 0 : port + 1;
        is_port = is_colon || (is_port && is_digit(bytes.at[at]));
    }
    if (at + 2 > NOT_RUN_ROOM)
        return no;
    if (at >= bytes.len)
        return (struct not_run_look){.sight = NOT_RUN_MORE};
    if (!is_port || port == 0 || port > 5 || bytes.at[at] != '\r' || (at + 1 < bytes.len && bytes.at[at + 1] != '\n'))
        return no;
    if (at + 1 == bytes.len)
        return (struct not_run_look){.sight = NOT_RUN_MORE};
    return (struct not_run_look){NOT_RUN_YES, row, at + 2};
}

static struct not_run_look look_at_redirects(struct slice bytes)
{
    static const struct {
        struct slice head;
        enum not_run row;
    } redirects[] = {{{"-MOVED ", 7}, NOT_RUN_MOVED}, {{"-ASK ", 5}, NOT_RUN_ASK}};
    struct not_run_look look = {.sight = NOT_RUN_NO};
    for (size_t i = 0; i < sizeof redirects / sizeof redirects[0]; i++) {
        const struct slice head = redirects[i].head;
        size_t n = bytes.len < head.len ? bytes.len : head.len;
        if (memcmp(bytes.at, head.at, n) != 0)
            continue;
        if (n == head.len)
            return look_at_redirect(bytes, head, redirects[i].row);
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
