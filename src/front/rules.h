/*
 * What a reload can change, as one immutable whole. Counted: workers and the main thread hold on to it. A configuration
 * (run/config/config.h) has one too, which is being filled, and of which those that run are copies.
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

/* Of weir itself; heap. */
struct own_password {
    char *newest;    /* NULL: weir does not log in */
    char *before;    /* what was the newest before; NULL: nothing was */
    char *path;      /* of the file that has it */
    uint32_t number; /* counts the newest ones */
};

struct rules {
    _Atomic unsigned holders;
    struct policies *policies;     /* one reference; bound to the command table that is handed out with the rules */
    uint32_t block_id;             /* the limit by which blocks refuse; TOP_NO_LIMIT: nobody has been blocked yet */
    struct exceptions *exceptions; /* from the policies; one reference; NULL: none */
    struct identity identity;
    char error_prefix[33];
    bool has_shares; /* subjects that send at the same time have fair shares: front/route/fair_share.h */
    unsigned max_clients;
    unsigned unauthenticated;      /* connections of one address that are not bound yet; 0: any number */
    struct limit unbound_limit;    /* the same as a limit, ... */
    struct record *unbound_record; /* ... of the ledger's own record, ... */
    struct policy
        unbound_policy; /* ... and as the only one of a policy; made by rules_new; see front/client/unbound.h */
    unsigned max_lanes; /* 0: by descriptors and Redis' maxclients; see upstream/lane/room.h */
    size_t output_limit_bytes;
    struct own_password upstream_password;
    struct networks proxies;   /* whom the PROXY protocol is believed */
    size_t memory_limit_bytes; /* 0: none */
    uint64_t idle_timeout_ns;  /* 0: none; so of the other two */
    uint64_t handshake_timeout_ns;
    uint64_t request_timeout_ns;
    uint64_t failover_wait_ns; /* how long a command waits for a connection to Redis, see front/route/outage.h */
    bool tells_outage;         /* when-upstream-down = error */
    uint64_t slow_ns;          /* a command that takes so long is in the slow log; SLOWLOG_OFF: none is */
    unsigned slow_entries;     /* that are kept there */
    struct named *named;       /* one reference */
    enum quota_when_down when_down;
    bool is_down_by_error; /* limit-when-error = down */
    enum quota_cell cell;
    bool passes_maintenance; /* CLIENT MAINT_NOTIFICATIONS goes to Redis; else weir refuses it */
    char limit_prefix[PREFIX_MAX + 1];
    struct tls_context *tls;          /* of listeners; one reference; NULL: none of them speaks it */
    struct tls_context *upstream_tls; /* one reference; NULL: plain */
};

/* For another by this model: all of it but how many hold it, which workers change meanwhile. */
void rules_copy(struct rules *model, const struct rules *rules);

/* A copy of `model` with one holder and references of its own, but for `policies`, whose reference it takes over. */
struct rules *rules_new(const struct rules *model, struct policies *policies);
struct rules *rules_get(struct rules *rules); /* one more holder; any thread */
void rules_put(struct rules *rules);

/* What they own, for those that are part of something else and have no holders. */
void rules_fini(struct rules *rules);

#endif
