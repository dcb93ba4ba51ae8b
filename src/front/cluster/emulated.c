#include "front/cluster/emulated.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "limit/command/slot.h"
#include "resp/element.h"

#define ID_ROOM 41
/* offset from a node's client port to its cluster bus port; no client dials the bus port */
#define BUS 10000

/* ---- replies that weir builds ---- */

static void print_id(const struct emulated *emulated, char out[ID_ROOM])
{
    char address[512];
    int n = snprintf(address, sizeof address, "%.*s:%u", (int)emulated->host.len, emulated->host.at,
                     emulated->port);
    struct slice text =
        slice_of(address, (size_t)n < sizeof address ? (size_t)n : sizeof address - 1);
    uint64_t words[3];
    for (uint64_t i = 0; i < 3; i++)
        words[i] = hash_bytes((struct hash_key){i, ~i}, text);
    snprintf(out, ID_ROOM, "%016llx%016llx%08llx", (unsigned long long)words[0],
             (unsigned long long)words[1], (unsigned long long)(words[2] & 0xffffffff));
}

/* Adds a verbatim string in RESP3, a bulk in RESP2. */
static void build_text(struct build *out, struct slice text)
{
    if (!out->is_resp3) {
        build_bulk(out, text);
        return;
    }
    build_header(out, '=', (int64_t)text.len + 4);
    build_raw(out, SLICE("txt:"));
    build_raw(out, text);
    build_raw(out, SLICE("\r\n"));
}

static void build_slots(struct build *out, const struct emulated *emulated, const char *id)
{
    build_array(out, 1);
    build_array(out, 3);
    build_int(out, 0);
    build_int(out, SLOT_COUNT - 1);
    build_array(out, emulated->is_before_7 ? 3 : 4);
    build_bulk(out, emulated->host);
    build_int(out, emulated->port);
    build_bulk_str(out, id);
    if (!emulated->is_before_7)
        build_array(out, 0);
}

static void build_shards(struct build *out, const struct emulated *emulated, const char *id)
{
    build_array(out, 1);
    build_map(out, 2);
    build_bulk_str(out, "slots");
    build_array(out, 2);
    build_int(out, 0);
    build_int(out, SLOT_COUNT - 1);
    build_bulk_str(out, "nodes");
    build_array(out, 1);
    build_map(out, 7);
    build_bulk_str(out, "id");
    build_bulk_str(out, id);
    build_bulk_str(out, emulated->is_tls ? "tls-port" : "port");
    build_int(out, emulated->port);
    build_bulk_str(out, "ip");
    build_bulk(out, emulated->host);
    build_bulk_str(out, "endpoint");
    build_bulk(out, emulated->host);
    build_bulk_str(out, "role");
    build_bulk_str(out, "master");
    build_bulk_str(out, "replication-offset");
    build_int(out, 0);
    build_bulk_str(out, "health");
    build_bulk_str(out, "online");
}

static void build_nodes(struct build *out, const struct emulated *emulated, const char *id)
{
    char text[512];
    unsigned bus = emulated->port + (unsigned)BUS <= UINT16_MAX ? emulated->port + (unsigned)BUS
                                                                : emulated->port;
    int n =
        snprintf(text, sizeof text, "%s %.*s:%u@%u myself,master - 0 0 1 connected 0-%d\n", id,
                 (int)emulated->host.len, emulated->host.at, emulated->port, bus, SLOT_COUNT - 1);
    build_text(out, slice_of(text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1));
}

static void build_info(struct build *out)
{
    build_text(
        out,
        SLICE(
            "cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_slots_ok:16384\r\n"
            "cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:1\r\ncluster_size:1\r\n"
            "cluster_current_epoch:1\r\ncluster_my_epoch:1\r\ncluster_stats_messages_sent:0\r\n"
            "cluster_stats_messages_received:0\r\n"));
}

void emulated_reply(enum emulated_word word, const struct emulated *emulated, struct build *out)
{
    char id[ID_ROOM];
    print_id(emulated, id);
    switch (word) {
    case EMULATED_SLOTS:
        build_slots(out, emulated, id);
        break;
    case EMULATED_SHARDS:
        build_shards(out, emulated, id);
        break;
    case EMULATED_NODES:
        build_nodes(out, emulated, id);
        break;
    case EMULATED_INFO:
        build_info(out);
        break;
    case EMULATED_MYID:
        build_bulk_str(out, id);
        break;
    }
}

/* ---- replies of a node ---- */

/* Copies `text` with the first `before` replaced by `now`. False if `before` does not occur. */
static bool emulated_replace(struct slice text, struct slice before, struct slice now,
                             struct build *out)
{
    const char *at = memmem(text.at, text.len, before.at, before.len);
    if (at == NULL)
        return false;
    size_t head = (size_t)(at - text.at);
    build_raw(out, slice_of(text.at, head));
    build_raw(out, now);
    build_raw(out, slice_of(at + before.len, text.len - head - before.len));
    return true;
}

bool emulated_hello(struct slice reply, struct build *out)
{
    return emulated_replace(reply, SLICE("$4\r\nmode\r\n$7\r\ncluster\r\n"),
                            SLICE("$4\r\nmode\r\n$10\r\nstandalone\r\n"), out);
}

/* Finds the content of a bulk or verbatim string. False if the reply has another type. */
static bool emulated_read_text(struct slice reply, struct slice *text)
{
    struct element_head head;
    if (!element_head(reply, &head) || (head.type != '$' && head.type != '='))
        return false;
    int64_t skipped = head.type == '=' ? 4 : 0;
    if (head.number < skipped || head.rest.len != (size_t)head.number + 2)
        return false;
    *text = slice_of(head.rest.at + skipped, (size_t)(head.number - skipped));
    return true;
}

bool emulated_info(struct slice reply, const char *node, struct build *out)
{
    struct slice text;
    struct build whole;
    if (!emulated_read_text(reply, &text))
        return false;
    build_init(&whole, false);
    if (!emulated_replace(text, SLICE("redis_mode:cluster\r\n"), SLICE("redis_mode:standalone\r\n"),
                          &whole) &&
        !emulated_replace(text, SLICE("server_mode:cluster\r\n"),
                          SLICE("server_mode:standalone\r\n"), &whole))
        build_raw(&whole, text);
    if (text.len > 0)
        build_raw(&whole, SLICE("\r\n"));
    build_raw(&whole, SLICE("# weir\r\nweir_node:"));
    build_raw(&whole, slice_str(node));
    build_raw(&whole, SLICE("\r\n"));
    out->is_resp3 = reply.at[0] == '=';
    if (whole.is_broken)
        out->is_broken = true;
    else
        build_text(out, slice_of(whole.at, whole.len));
    build_fini(&whole);
    return true;
}
