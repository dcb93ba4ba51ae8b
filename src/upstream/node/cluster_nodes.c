#include "upstream/node/cluster_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/slice.h"

#define ID_LENGTH (CLUSTER_ID - 1)
#define MOVES_MOST SLOT_COUNT

struct reading {
    struct cluster_nodes *nodes;
    struct why why;
    size_t line; /* from 1 */
};

/* ---- words ---- */

static bool cluster_nodes_is_id(struct slice text)
{
    bool is = text.len == ID_LENGTH;
    for (size_t i = 0; is && i < text.len; i++)
        is = (text.at[i] >= '0' && text.at[i] <= '9') || (text.at[i] >= 'a' && text.at[i] <= 'f');
    return is;
}

static void cluster_nodes_keep(char *out, struct slice text)
{
    memcpy(out, text.at, text.len);
    out[text.len] = '\0';
}

/* True if the text may be an IP address or a name, and fits. */
static bool cluster_nodes_is_host(struct slice text)
{
    if (text.len == 0 || text.len >= CLUSTER_HOST)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        bool is_digit = c >= '0' && c <= '9',
             is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_digit && !is_letter && (c == '\0' || strchr(".-_:%", c) == NULL))
            return false;
    }
    return true;
}

static bool is_unknown(struct slice host)
{
    return host.len == 0 || slice_eq(host, SLICE("?"));
}

static bool cluster_nodes_read_number(struct slice text, int64_t most, int64_t *number)
{
    return num_parse(text, number) && *number >= 0 && *number <= most;
}

/* Returns the text before the first `end`, and skips that text and the `end`. */
static struct slice take_until(struct slice *rest, char end)
{
    const char *at = rest->len > 0 ? memchr(rest->at, end, rest->len) : NULL;
    struct slice part = slice_of(rest->at, at != NULL ? (size_t)(at - rest->at) : rest->len);
    size_t used = at != NULL ? part.len + 1 : part.len;
    *rest = slice_of(rest->at + used, rest->len - used);
    return part;
}

/* ---- one node ---- */

/* The text is "host:port@bus,hostname,more". Before Redis 7.0 the text ends with the bus port. */
static bool read_address(const struct reading *reading, struct slice text, bool has_address,
                         struct cluster_node *node)
{
    struct slice address = take_until(&text, ','), hostname = take_until(&text, ',');
    struct slice at = take_until(&address, '@');
    const char *colon = at.len > 0 ? memrchr(at.at, ':', at.len) : NULL;
    int64_t port = 0;
    if (colon == NULL ||
        !cluster_nodes_read_number(slice_of(colon + 1, at.len - (size_t)(colon - at.at) - 1),
                                   UINT16_MAX, &port))
        return why_refuse(reading->why, "node %s has no port", node->id);
    struct slice host = slice_of(at.at, (size_t)(colon - at.at));
    if (!is_unknown(host) && !cluster_nodes_is_host(host))
        return why_refuse(reading->why, "node %s has an invalid host", node->id);
    if (!is_unknown(hostname) && !cluster_nodes_is_host(hostname))
        return why_refuse(reading->why, "node %s has an invalid host name", node->id);
    if (!has_address)
        return true;
    if (port == 0)
        return why_refuse(reading->why, "node %s has port 0", node->id);
    if (!is_unknown(host))
        cluster_nodes_keep(node->host, host);
    if (!is_unknown(hostname))
        cluster_nodes_keep(node->hostname, hostname);
    node->port = (uint16_t)port;
    return true;
}

struct flags {
    bool is_myself, is_in_handshake, has_no_address;
};

static struct flags read_flags(struct slice text, struct cluster_node *node)
{
    struct flags flags = {0};
    while (text.len > 0) {
        struct slice flag = take_until(&text, ',');
        flags.is_myself = flags.is_myself || slice_eq(flag, SLICE("myself"));
        flags.is_in_handshake = flags.is_in_handshake || slice_eq(flag, SLICE("handshake"));
        flags.has_no_address = flags.has_no_address || slice_eq(flag, SLICE("noaddr"));
        node->is_master = node->is_master || slice_eq(flag, SLICE("master"));
        node->is_replica =
            node->is_replica || slice_eq(flag, SLICE("slave")) || slice_eq(flag, SLICE("replica"));
        node->is_failing = node->is_failing || slice_eq(flag, SLICE("fail?"));
        node->is_failed = node->is_failed || slice_eq(flag, SLICE("fail"));
    }
    return flags;
}

/* ---- slots ---- */

static bool take_slot(const struct reading *reading, size_t number, int64_t slot)
{
    struct cluster_nodes *nodes = reading->nodes;
    if (nodes->owners[slot] != CLUSTER_NOBODY)
        return why_refuse(reading->why, "slot %d is served twice", (int)slot);
    nodes->owners[slot] = (uint16_t)number;
    nodes->nodes[number].n_slots++;
    return true;
}

/* Reads a slot or a range of slots: "5", "0-5460". */
static bool read_range(const struct reading *reading, size_t number, struct slice text)
{
    struct slice rest = text, first = take_until(&rest, '-');
    int64_t from, to;
    if (!cluster_nodes_read_number(first, INT32_MAX, &from))
        return why_refuse(reading->why, "node %s has slots that are not numbers",
                          reading->nodes->nodes[number].id);
    to = from;
    if (first.len < text.len && !cluster_nodes_read_number(rest, INT32_MAX, &to))
        return why_refuse(reading->why, "node %s has slots that are not numbers",
                          reading->nodes->nodes[number].id);
    if (to >= SLOT_COUNT || from > to)
        return why_refuse(reading->why,
                          "node %s has slots from %d to %d: a slot is a number below %d",
                          reading->nodes->nodes[number].id, (int)from, (int)to, SLOT_COUNT);
    for (; from <= to; from++)
        if (!take_slot(reading, number, from))
            return false;
    return true;
}

/* "[93->-ID]" is migrating, "[77-<-ID]" is importing. */
static bool read_move(const struct reading *reading, struct slice text)
{
    struct cluster_nodes *nodes = reading->nodes;
    struct slice rest = slice_of(text.at + 1, text.len - 1), number = take_until(&rest, '-');
    int64_t slot;
    bool is_whole = rest.len == ID_LENGTH + 3 && rest.at[1] == '-' &&
                    rest.at[rest.len - 1] == ']' && (rest.at[0] == '<' || rest.at[0] == '>');
    if (!is_whole || !cluster_nodes_is_id(slice_of(rest.at + 2, ID_LENGTH)) ||
        !cluster_nodes_read_number(number, SLOT_COUNT - 1, &slot))
        return why_refuse(reading->why, "line %zu has a migrating slot that weir cannot parse",
                          reading->line);
    if (nodes->n_moves == MOVES_MOST)
        return why_refuse(reading->why, "more than %d slots migrate", MOVES_MOST);
    if ((nodes->n_moves & (nodes->n_moves - 1)) == 0) /* capacity 1, 2, 4 ... */
        nodes->moves = mem_realloc(nodes->moves, nodes->n_moves > 0 ? 2 * nodes->n_moves : 1,
                                   sizeof *nodes->moves);
    struct cluster_move *move = &nodes->moves[nodes->n_moves++];
    *move = (struct cluster_move){.slot = (uint16_t)slot, .is_import = rest.at[0] == '<'};
    cluster_nodes_keep(move->other, slice_of(rest.at + 2, ID_LENGTH));
    return true;
}

static bool read_slots(const struct reading *reading, size_t number, bool is_myself,
                       struct slice rest)
{
    const struct cluster_node *node = &reading->nodes->nodes[number];
    struct slice word;
    while (split_word(&rest, &word)) {
        if (!node->is_master)
            return why_refuse(reading->why, "node %s serves slots but is not a master", node->id);
        if (word.at[0] != '[' ? !read_range(reading, number, word)
                              : is_myself && !read_move(reading, word))
            return false;
    }
    return true;
}

/* ---- the whole answer ---- */

static bool cluster_nodes_is_known(const struct cluster_nodes *nodes, const char *id)
{
    return cluster_nodes_find(nodes, id) != CLUSTER_NOBODY;
}

static bool cluster_nodes_add_node(const struct reading *reading, const struct cluster_node *node,
                                   bool is_myself, struct slice slots)
{
    struct cluster_nodes *nodes = reading->nodes;
    if (cluster_nodes_is_known(nodes, node->id))
        return why_refuse(reading->why, "node %s is listed twice", node->id);
    if (is_myself && nodes->myself < nodes->n)
        return why_refuse(reading->why, "two nodes have the flag myself");
    if (nodes->n == CLUSTER_NODES_MOST)
        return why_refuse(reading->why, "there are more than %d nodes", CLUSTER_NODES_MOST);
    if ((nodes->n & (nodes->n - 1)) == 0)
        nodes->nodes =
            mem_realloc(nodes->nodes, nodes->n > 0 ? 2 * nodes->n : 1, sizeof *nodes->nodes);
    if (is_myself)
        nodes->myself = nodes->n;
    nodes->nodes[nodes->n++] = *node;
    return read_slots(reading, nodes->n - 1, is_myself, slots);
}

static bool cluster_nodes_read_line(const struct reading *reading, struct slice rest)
{
    enum { ID, ADDRESS, FLAGS, MASTER, PING, PONG, EPOCH, LINK, WORDS };
    struct slice words[WORDS] = {{0}};
    struct cluster_node node = {.port = 0};
    int64_t epoch;
    for (int i = 0; i < WORDS; i++)
        if (!split_word(&rest, &words[i]))
            return why_refuse(reading->why, "line %zu is incomplete", reading->line);
    if (!cluster_nodes_is_id(words[ID]))
        return why_refuse(reading->why, "line %zu does not begin with the name of a node",
                          reading->line);
    cluster_nodes_keep(node.id, words[ID]);
    struct flags flags = read_flags(words[FLAGS], &node);
    if (flags.is_in_handshake)
        return true;
    if (!read_address(reading, words[ADDRESS], !flags.has_no_address, &node))
        return false;
    if (cluster_nodes_is_id(words[MASTER]))
        cluster_nodes_keep(node.master_id, words[MASTER]);
    else if (!slice_eq(words[MASTER], SLICE("-")))
        return why_refuse(reading->why, "node %s has a master without a name", node.id);
    if (!cluster_nodes_read_number(words[EPOCH], INT64_MAX, &epoch))
        return why_refuse(reading->why, "node %s has a config epoch that is not a number", node.id);
    node.epoch = (uint64_t)epoch;
    node.is_linked = flags.is_myself || slice_eq(words[LINK], SLICE("connected"));
    return cluster_nodes_add_node(reading, &node, flags.is_myself, rest);
}

static bool is_same_place(const struct cluster_node *a, const struct cluster_node *b)
{
    return !a->is_failed && !b->is_failed && a->port != 0 && a->port == b->port &&
           a->host[0] != '\0' && strcmp(a->host, b->host) == 0;
}

static bool check_whole(const struct reading *reading)
{
    const struct cluster_nodes *nodes = reading->nodes;
    if (nodes->myself >= nodes->n)
        return why_refuse(reading->why, "no node has the flag myself");
    for (size_t i = 0; i < nodes->n; i++)
        for (size_t j = 0; j < i && nodes->nodes[i].n_slots > 0; j++)
            if (nodes->nodes[j].n_slots > 0 && is_same_place(&nodes->nodes[i], &nodes->nodes[j]))
                return why_refuse(reading->why, "nodes %s and %s have the same address",
                                  nodes->nodes[j].id, nodes->nodes[i].id);
    return true;
}

static bool cluster_nodes_read_all(struct reading *reading, struct slice text)
{
    while (text.len > 0) {
        struct slice line = take_until(&text, '\n');
        reading->line++;
        if (line.len > 0 && line.at[line.len - 1] == '\r')
            line.len--;
        bool is_passed_over = line.len == 0 || (line.len > 5 && memcmp(line.at, "vars ", 5) == 0);
        if (!is_passed_over && !cluster_nodes_read_line(reading, line))
            return false;
    }
    return check_whole(reading);
}

bool cluster_nodes_read(struct cluster_nodes *nodes, struct slice text, struct why why)
{
    struct reading reading = {.nodes = nodes, .why = why};
    *nodes = (struct cluster_nodes){.myself = SIZE_MAX};
    for (size_t slot = 0; slot < SLOT_COUNT; slot++)
        nodes->owners[slot] = CLUSTER_NOBODY;
    bool is_read = text.len <= CLUSTER_TEXT_MAX
                       ? cluster_nodes_read_all(&reading, text)
                       : why_refuse(why, "the reply has %zu bytes, and weir accepts at most %d",
                                    text.len, CLUSTER_TEXT_MAX);
    if (!is_read)
        cluster_nodes_fini(nodes);
    return is_read;
}

uint16_t cluster_nodes_find(const struct cluster_nodes *nodes, const char *id)
{
    for (size_t i = 0; i < nodes->n; i++)
        if (strcmp(nodes->nodes[i].id, id) == 0)
            return (uint16_t)i;
    return CLUSTER_NOBODY;
}

void cluster_nodes_fini(struct cluster_nodes *nodes)
{
    free(nodes->nodes);
    free(nodes->moves);
    memset(nodes, 0, sizeof *nodes);
}
