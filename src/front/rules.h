/*
 * Everything that a reload can change, in one immutable struct. Reference-counted: workers and the
 * main thread hold references. A configuration (run/config/config.h) embeds rules that are still
 * being filled. The rules in use are copies of a configuration's rules.
 */
#ifndef WEIR_FRONT_RULES_H
#define WEIR_FRONT_RULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "limit/figures/top.h"
#include "limit/policy/exceptions.h"
#include "limit/policy/identity.h"
#include "limit/policy/ip.h"
#include "limit/policy/policy.h"
#include "net/tls_context.h"
#include "quota/named.h"
#include "quota/prefix.h"
#include "quota/quota.h"

/* A password of weir's own; strings on the heap. */
struct own_password {
    char *newest;    /* NULL: weir does not log in */
    char *before;    /* the password before `newest`; NULL: none */
    char *path;      /* file that holds the password */
    uint32_t number; /* incremented with each new password */
};

struct rules {
    _Atomic unsigned holders;
    /* made for the command table that is handed out with the rules; one reference */
    struct policies *policies;
    /*
     * id of the limit that stands for operators' blocks in statistics; TOP_NO_LIMIT: no subject has
     * been blocked yet
     */
    uint32_t block_id;
    struct exceptions *exceptions; /* exceptions from `policies`; one reference; NULL: none */
    struct identity identity;
    char error_prefix[33];
    /*
     * fair-share = on: subjects that send at the same time get fair shares; see
     * front/route/fair_share.h
     */
    bool has_shares;
    unsigned max_clients;
    /* unbound connections that one address may have; 0: any number */
    unsigned unauthenticated;
    struct limit unbound_limit;         /* `unauthenticated` as a limit */
    struct policy_state *unbound_state; /* counters of unbound_limit */
    struct policy
        /* a policy with unbound_limit alone; made by rules_new; see front/client/unbound.h */
        unbound_policy;
    /* 0: derived from descriptors and Redis' maxclients; see upstream/lane/room.h */
    unsigned max_lanes;
    size_t output_limit_bytes;
    struct own_password upstream_password;
    struct networks proxies;   /* peers that may send a PROXY header */
    size_t memory_limit_bytes; /* 0: none */
    uint64_t idle_timeout_ns;  /* 0: none */
    uint64_t handshake_timeout_ns;
    uint64_t request_timeout_ns;
    /* how long a command waits for a connection to Redis; see front/route/outage.h */
    uint64_t failover_wait_ns;
    bool tells_outage; /* when-upstream-down = error */
    /* a command that takes at least this long enters the slow log; SLOWLOG_OFF: none does */
    uint64_t slow_ns;
    unsigned slow_entries; /* capacity of the slow log */
    struct named *named;   /* one reference */
    enum quota_when_down when_down;
    bool is_down_by_error; /* limit-when-error = down */
    enum quota_cell cell;
    bool passes_maintenance; /* CLIENT MAINT_NOTIFICATIONS goes to Redis; false: weir refuses it */
    char limit_prefix[PREFIX_MAX + 1];
    /* context of the listeners; one reference; NULL: no listener speaks TLS */
    struct tls_context *tls;
    struct tls_context *upstream_tls; /* one reference; NULL: connections to Redis use no TLS */
};

/* Copies `rules` to `model`, except the reference count, which workers change meanwhile. */
void rules_copy(struct rules *model, const struct rules *rules);

/*
 * A copy of `model` with one reference. Takes over the reference to `policies`, adds references to
 * the other parts, and copies the password.
 */
struct rules *rules_new(const struct rules *model, struct policies *policies);
struct rules *rules_get(struct rules *rules); /* adds a reference; any thread */
void rules_put(struct rules *rules);

/*
 * Frees everything that the rules own, but not `rules`. For rules that are embedded in another
 * struct.
 */
void rules_fini(struct rules *rules);

#endif
