/*
 * The addresses of one sentinel that weir may dial: of its name, or the one that is configured.
 *
 * One of them is in use: connections are made to it until sentinel_name_go_round. Main thread.
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
    NAME_FOUND, /* it has an address, where it had none */
    NAME_MOVED, /* the address in use is none of its any more: another is */
    NAME_LOST,  /* it has no address, and never had one */
};

struct sentinel_name {
    struct upstream *upstream;       /* for its hurry */
    const struct dialling *dialling; /* lives longer */
    struct resolver *resolver;       /* NULL: no name is to be looked up */
    struct resolved known;           /* by the last look-up that found any */
    unsigned in_use;
    uint64_t looked_ns;  /* when it was looked up last */
    const char *refusal; /* why it is never dialled; NULL: it is; static */
    /* `why` is static; NULL unless it is lost. */
    void (*on_news)(void *arg, enum name_news news, const char *why);
    void *arg;
};

/*
 * As announced or configured; upstream-map applies. The other fields are set by the owner before.
 */
void sentinel_name_init(struct sentinel_name *name, struct loop *loop, const struct address *address);

/* Where to connect to; NULL: nowhere yet. */
const struct endpoint *sentinel_name_endpoint(const struct sentinel_name *name);

/* True if behind the address in use there are none that have not been tried. */
bool sentinel_name_is_last(const struct sentinel_name *name);

/* The next address is in use, after the last the first. */
void sentinel_name_go_round(struct sentinel_name *name);

/* Look the name up, unless it was within the last second; on_news follows if it has changed. */
void sentinel_name_look(struct sentinel_name *name);

/* Is a look-up under way? */
bool sentinel_name_is_looking(const struct sentinel_name *name);

/* on_news does not follow. */
void sentinel_name_fini(struct sentinel_name *name);

#endif
