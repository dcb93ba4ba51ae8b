#include "upstream/node/redirect.h"

#include <string.h>

#include "base/num.h"
#include "limit/command/slot.h"
#include "upstream/node/nodes.h"

/* "HOST:PORT" at the last colon: an IPv6 address has others, and may stand in brackets. */
static bool split_address(struct slice text, struct slice *host, uint16_t *port)
{
    const char *colon = text.len > 0 ? memrchr(text.at, ':', text.len) : NULL;
    int64_t number;
    if (colon == NULL)
        return false;
    *host = slice_of(text.at, (size_t)(colon - text.at));
    if (!num_parse(slice_of(colon + 1, text.len - host->len - 1), &number) || number < 1 || number > UINT16_MAX)
        return false;
    *port = (uint16_t)number;
    if (host->len >= 2 && host->at[0] == '[' && host->at[host->len - 1] == ']')
        *host = slice_of(host->at + 1, host->len - 2);
    return true;
}

static bool take_word(struct slice *text, struct slice word)
{
    if (text->len < word.len || memcmp(text->at, word.at, word.len) != 0)
        return false;
    *text = slice_of(text->at + word.len, text->len - word.len);
    return true;
}

bool redirect_is(struct slice reply)
{
    static const struct slice words[] = {{"-MOVED", 6}, {"-ASK", 4}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct slice text = reply;
        if (take_word(&text, words[i]) && (text.len == 0 || *text.at == ' ' || *text.at == '\r'))
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
    redirect->is_ask = take_word(&text, SLICE("-ASK "));
    if (!redirect->is_ask && !take_word(&text, SLICE("-MOVED ")))
        return false;
    const char *space = text.len > 0 ? memchr(text.at, ' ', text.len) : NULL;
    if (space == NULL)
        return false;
    size_t digits = (size_t)(space - text.at);
    if (!num_parse(slice_of(text.at, digits), &slot) || slot < 0 || slot >= SLOT_COUNT)
        return false;
    redirect->slot = (uint16_t)slot;
    if (!split_address(slice_of(space + 1, text.len - digits - 1), &redirect->host, &redirect->port))
        return false;
    if (slice_eq(redirect->host, SLICE("?")))
        redirect->host = slice_of("", 0);
    return true;
}

static bool is_address(struct slice host, uint16_t port, const char *address)
{
    struct slice its_host;
    uint16_t its_port;
    return split_address(slice_str(address), &its_host, &its_port) && its_port == port &&
           slice_eq_nocase(its_host, host);
}

bool redirect_is_to(const struct redirect *redirect, const struct node *from, const struct node *node)
{
    struct slice host = redirect->host, its_text = host, its_address = host;
    uint16_t port;
    if (host.len == 0 && !split_address(slice_str(from->text), &its_text, &port))
        return false;
    if (host.len == 0 && !split_address(slice_str(from->address), &its_address, &port))
        its_address = its_text;
    return is_address(its_text, redirect->port, node->text) || is_address(its_address, redirect->port, node->address);
}

/* A node may be announced by digits and by name, and be dialled by one of them. */
static bool is_announced(const struct redirect *redirect, const struct topology_row *row)
{
    return redirect->port == row->port &&
           ((row->host != NULL && slice_eq_nocase(redirect->host, slice_str(row->host))) ||
            (row->hostname != NULL && slice_eq_nocase(redirect->host, slice_str(row->hostname))));
}

struct nodes_row *redirect_row(const struct redirect *redirect, const struct nodes *nodes, const struct node *from)
{
    for (size_t i = 0; i < nodes->topology->n_masters; i++)
        if (is_announced(redirect, &nodes->topology->rows[i]) ||
            redirect_is_to(redirect, from, lanes_node(&nodes->rows[i]->lanes)))
            return nodes->rows[i];
    return NULL;
}
