#include "run/topology/sentinel_name.h"

#include <string.h>

#include "base/clock.h"

#define LOOK_NS (1 * NS_PER_S) /* least time between two lookups (chosen) */

/* Returns the index of the endpoint in `known`; known.n: not there. */
static unsigned find_known(const struct sentinel_name *name, const struct endpoint *endpoint)
{
    const struct resolved *known = &name->known;
    unsigned i = 0;
    while (i < known->n &&
           (known->endpoints[i].length != endpoint->length ||
            memcmp(&known->endpoints[i].address, &endpoint->address, endpoint->length) != 0))
        i++;
    return i;
}

/*
 * Keeps the addresses that weir may dial. Returns NULL. If weir may dial none of the addresses,
 * returns the reason, and the old addresses stay.
 */
static const char *take_known(struct sentinel_name *name, const struct resolved *found)
{
    struct resolved left = dialling_allowed(name->dialling, found);
    if (left.n == 0)
        return left.why != NULL ? left.why : "it has no address";
    name->known = left;
    return NULL;
}

static void sentinel_name_on_resolved(void *arg, const struct resolved *found)
{
    struct sentinel_name *name = arg;
    bool was_known = name->known.n > 0;
    const struct endpoint before = name->known.endpoints[name->in_use];
    const char *why = take_known(name, found);
    if (why != NULL && !was_known)
        name->on_news(name->arg, NAME_LOST, why);
    if (why != NULL)
        return;
    unsigned at = was_known ? find_known(name, &before) : name->known.n;
    name->in_use = at < name->known.n ? at : 0;
    if (at == name->known.n)
        name->on_news(name->arg, was_known ? NAME_MOVED : NAME_FOUND, NULL);
}

void sentinel_name_init(struct sentinel_name *name, struct loop *loop,
                        const struct address *address)
{
    struct resolved literal = {.n = 1};
    const struct address *to = dialling_target(name->dialling, address, &name->refusal);
    if (to == NULL)
        return;
    if (address_is_literal(to, &literal.endpoints[0]))
        name->refusal = take_known(name, &literal);
    else
        name->resolver = resolver_new(loop, to->host, to->port, sentinel_name_on_resolved, name);
}

const struct endpoint *sentinel_name_endpoint(const struct sentinel_name *name)
{
    return name->known.n > 0 ? &name->known.endpoints[name->in_use] : NULL;
}

bool sentinel_name_is_last(const struct sentinel_name *name)
{
    return name->in_use + 1 >= name->known.n;
}

void sentinel_name_go_round(struct sentinel_name *name)
{
    name->in_use = sentinel_name_is_last(name) ? 0 : name->in_use + 1;
}

bool sentinel_name_is_looking(const struct sentinel_name *name)
{
    return name->resolver != NULL && resolver_is_looking(name->resolver);
}

void sentinel_name_look(struct sentinel_name *name)
{
    uint64_t now_ns = clock_ns();
    bool is_early =
        name->looked_ns != 0 && now_ns - name->looked_ns < upstream_time(name->upstream, LOOK_NS);
    if (name->resolver == NULL || sentinel_name_is_looking(name) || is_early)
        return;
    name->looked_ns = now_ns;
    resolver_look(name->resolver);
}

void sentinel_name_fini(struct sentinel_name *name)
{
    resolver_close(name->resolver);
    name->resolver = NULL;
}
