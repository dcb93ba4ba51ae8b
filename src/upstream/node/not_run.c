#include "upstream/node/not_run.h"

#include <string.h>

#include "base/num.h"
#include "limit/command/slot.h"
#include "upstream/node/node.h"

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

#define NOT_RUN(name, text, where)                                                                 \
    _Static_assert(sizeof(text) <= NOT_RUN_ROOM, "NOT_RUN_ROOM holds each row");
#include "upstream/node/not_run.def"
#undef NOT_RUN

struct slice not_run_text(enum not_run row)
{
    return rows[row];
}

/* The error is a redirect if its first word ends after `word` bytes. */
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
    else if (bytes.at[len - 1] == '\n') /* other bytes are no reply */
        look = (struct not_run_look){NOT_RUN_YES, row, len};
    return look;
}

static const struct {
    struct slice head;
    enum not_run row;
} redirects[] = {{{"-MOVED", 6}, NOT_RUN_MOVED}, {{"-ASK", 4}, NOT_RUN_ASK}};

static struct not_run_look look_at_redirects(struct slice bytes)
{
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

/* ---- MOVED and ASK ---- */

/* Splits "HOST:PORT" at the last colon: an IPv6 address contains colons, and may be in brackets. */
static bool split_address(struct slice text, struct slice *host, uint16_t *port)
{
    const char *colon = text.len > 0 ? memrchr(text.at, ':', text.len) : NULL;
    int64_t number;
    if (colon == NULL)
        return false;
    *host = slice_of(text.at, (size_t)(colon - text.at));
    if (!num_parse(slice_of(colon + 1, text.len - host->len - 1), &number) || number < 1 ||
        number > UINT16_MAX)
        return false;
    *port = (uint16_t)number;
    if (host->len >= 2 && host->at[0] == '[' && host->at[host->len - 1] == ']')
        *host = slice_of(host->at + 1, host->len - 2);
    return true;
}

static bool not_run_take_word(struct slice *text, struct slice word)
{
    if (text->len < word.len || memcmp(text->at, word.at, word.len) != 0)
        return false;
    *text = slice_of(text->at + word.len, text->len - word.len);
    return true;
}

bool redirect_is(struct slice reply)
{
    for (size_t i = 0; i < sizeof redirects / sizeof redirects[0]; i++) {
        struct slice text = reply;
        if (not_run_take_word(&text, redirects[i].head) &&
            (text.len == 0 || *text.at == ' ' || *text.at == '\r'))
            return true;
    }
    return false;
}

bool redirect_parse(struct slice reply, struct redirect *redirect)
{
    int64_t slot;
    if (reply.len < 2 || memcmp(reply.at + reply.len - 2, "\r\n", 2) != 0)
        return false;
    struct slice text = slice_of(reply.at, reply.len - 2);
    redirect->is_ask = not_run_take_word(&text, SLICE("-ASK "));
    if (!redirect->is_ask && !not_run_take_word(&text, SLICE("-MOVED ")))
        return false;
    const char *space = text.len > 0 ? memchr(text.at, ' ', text.len) : NULL;
    if (space == NULL)
        return false;
    size_t digits = (size_t)(space - text.at);
    if (!num_parse(slice_of(text.at, digits), &slot) || slot < 0 || slot >= SLOT_COUNT)
        return false;
    redirect->slot = (uint16_t)slot;
    if (!split_address(slice_of(space + 1, text.len - digits - 1), &redirect->host,
                       &redirect->port))
        return false;
    if (slice_eq(redirect->host, SLICE("?")))
        redirect->host = slice_of("", 0);
    return true;
}

static bool not_run_is_address(struct slice host, uint16_t port, const char *address)
{
    struct slice its_host;
    uint16_t its_port;
    return split_address(slice_str(address), &its_host, &its_port) && its_port == port &&
           slice_eq_nocase(its_host, host);
}

bool redirect_is_to(const struct redirect *redirect, const struct node *from,
                    const struct node *node)
{
    struct slice host = redirect->host, its_text = host, its_address = host;
    uint16_t port;
    if (host.len == 0 && !split_address(slice_str(from->text), &its_text, &port))
        return false;
    if (host.len == 0 && !split_address(slice_str(from->address), &its_address, &port))
        its_address = its_text;
    return not_run_is_address(its_text, redirect->port, node->text) ||
           not_run_is_address(its_address, redirect->port, node->address);
}
