#include "upstream/node/node.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"

struct node *node_new(const struct node_origin *origin)
{
    struct node *node = mem_zalloc(1, sizeof *node);
    atomic_init(&node->holders, 1);
    node->upstream = origin->upstream;
    node->endpoint = origin->endpoint;
    node->text = mem_strndup(origin->text, strlen(origin->text));
    if (origin->server_name != NULL)
        node->server_name = mem_strndup(origin->server_name, strlen(origin->server_name));
    node->address = mem_strndup(origin->address, strlen(origin->address));
    node->owned = owned_new();
    proven_init(&node->proven);
    /*
     * The old node's requirement of a password holds until the new node itself answers. Serving a
     * client wrongly is worse than refusing a client wrongly.
     */
    if (origin->before != NULL)
        atomic_init(&node->auth_generation,
                    node_auth_generation(origin->before) & AUTH_GENERATION_NEEDS_AUTH);
    const struct node *sharer = origin->before != NULL ? origin->before : origin->kin;
    node->contention = sharer != NULL ? contention_get(sharer->contention) : contention_new();
    return node;
}

struct node *node_get(struct node *node)
{
    atomic_fetch_add_explicit(&node->holders, 1, memory_order_relaxed);
    return node;
}

void node_put(struct node *node)
{
    if (node == NULL || atomic_fetch_sub_explicit(&node->holders, 1, memory_order_acq_rel) > 1)
        return;
    owned_free(node->owned);
    proven_fini(&node->proven);
    contention_put(node->contention);
    free(node->text);
    free(node->server_name);
    free(node->address);
    free(node);
}

int node_connect(struct node *node, struct link *link, struct loop *loop,
                 const struct link_ops *ops)
{
    if (!node_has_address(node))
        return UV_EAI_NONAME;
    struct tls_context *tls = upstream_tls(node->upstream);
    const struct link_target target = {
        .endpoint = &node->endpoint, .tls = tls, .server_name = node->server_name};
    int status = link_connect(link, loop, RANK_LANE, &target, ops);
    tls_context_put(tls);
    return status;
}

const char *node_login_keys(const struct node *node)
{
    return node->upstream->has_user ? "upstream-user and upstream-password-file"
                                    : "the password in upstream-password-file";
}

enum lack node_login_lack(const struct node *node)
{
    return node->upstream->has_user ? LACK_LOGIN : LACK_PASSWORD;
}

void node_note_login(struct node *node, bool is_accepted)
{
    if (atomic_load_explicit(&node->is_told_login, memory_order_relaxed) != is_accepted)
        return;
    if (atomic_exchange_explicit(&node->is_told_login, !is_accepted, memory_order_relaxed) &&
        is_accepted)
        log_at(LOG_SITE_CONTROL, LOG_INFO, "upstream %s accepts %s now", node->text,
               node_login_keys(node));
}

void node_note_bad_redirect(struct node *node)
{
    if (!atomic_exchange_explicit(&node->is_told_redirect, true, memory_order_relaxed))
        log_at(
            LOG_SITE_CONTROL, LOG_WARN,
            "upstream %s answers MOVED or ASK without a slot or an address: clients get -UPSTREAM moved; check the "
            "server there",
            node->text);
}

void node_lacks(struct node *node, enum lack lack)
{
    uint32_t bit = UINT32_C(1) << lack;
    if ((atomic_fetch_or_explicit(&node->lacks, bit, memory_order_relaxed) & bit) == 0)
        log_at(LOG_SITE_CONTROL, LOG_WARN, "upstream %s %s; %s", node->text, lack_what(lack),
               lack_remedy(lack, node->upstream->is_cluster));
}

void node_lacks_no_more(struct node *node, enum lack lack)
{
    uint32_t bit = UINT32_C(1) << lack;
    if ((atomic_load_explicit(&node->lacks, memory_order_relaxed) & bit) != 0)
        atomic_fetch_and_explicit(&node->lacks, ~bit, memory_order_relaxed);
}

void node_ask(struct node *node)
{
    if (!atomic_exchange_explicit(&node->is_asked, true, memory_order_acq_rel))
        upstream_ask(node->upstream);
}

void node_demote(struct node *node)
{
    atomic_store_explicit(&node->is_demoted, true, memory_order_relaxed);
}

void node_note_role(struct node *node, enum node_role role)
{
    if (role == ROLE_UNKNOWN)
        return;
    uint8_t before = atomic_exchange_explicit(&node->role, (uint8_t)role, memory_order_relaxed);
    if (before != ROLE_MASTER || role != ROLE_REPLICA)
        return;
    if (node->upstream->is_cluster) {
        upstream_ask_topology(node->upstream);
        return;
    }
    node_demote(node);
    node_ask(node);
}

void node_note_trip(struct node *node, uint64_t took_ns)
{
    uint64_t most_ns = node->trip_ns + node->trip_ns / NODE_TRIP_MORE;
    node->trip_ns = node->trip_ns == 0 || took_ns < most_ns ? took_ns : most_ns;
}
