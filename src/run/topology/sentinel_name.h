/*
 * The addresses of one sentinel that weir may dial: the addresses of its name, or the configured
 * address.
 *
 * weir connects to the address in use. sentinel_name_go_round changes the address in use. Main
 * thread.
 */
#ifndef WEIR_RUN_SENTINEL_NAME_H
#define WEIR_RUN_SENTINEL_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "net/resolver.h"
#include "run/config/address.h"
#include "run/config/dialling.h"
#include "upstream/upstream.h"

enum name_news {
    NAME_FOUND, /* the sentinel has an address, and had none before */
    NAME_MOVED, /* the address in use is gone, and another is in use */
    NAME_LOST,  /* a lookup failed, and no earlier lookup had found an address */
};

struct sentinel_name {
    struct upstream *upstream;       /* for upstream_time */
    const struct dialling *dialling; /* must outlive the name */
    struct resolver *resolver;       /* NULL: there is no name to look up */
    struct resolved known;           /* from the last successful lookup */
    unsigned in_use;
    uint64_t looked_ns;  /* time of the last lookup */
    const char *refusal; /* why the address is never dialled (static); NULL: no reason */
    /* `why` is static; NULL except for NAME_LOST. */
    void (*on_news)(void *arg, enum name_news news, const char *why);
    void *arg;
};

/*
 * Sets the address as announced or configured; upstream-map applies. The owner sets the public
 * fields before.
 */
void sentinel_name_init(struct sentinel_name *name, struct loop *loop,
                        const struct address *address);

/* Returns the endpoint to connect to; NULL: none yet. */
const struct endpoint *sentinel_name_endpoint(const struct sentinel_name *name);

/* True if the address in use is the last one of this round. */
bool sentinel_name_is_last(const struct sentinel_name *name);

/* Uses the next address; after the last address the first. */
void sentinel_name_go_round(struct sentinel_name *name);

/*
 * Looks the name up, unless a lookup began within the last second. on_news follows if the addresses
 * change.
 */
void sentinel_name_look(struct sentinel_name *name);

/* True if a lookup is under way. */
bool sentinel_name_is_looking(const struct sentinel_name *name);

/* on_news is not called any more. */
void sentinel_name_fini(struct sentinel_name *name);

#endif
