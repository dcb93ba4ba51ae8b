#include "quota/named.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/near.h"
#include "base/why.h"

struct item {
    char *name;
    struct quota_rule rule;
};

struct named {
    _Atomic unsigned holders;
    struct item *items;
    size_t n;
};

struct named *named_new(void)
{
    struct named *named = mem_zalloc(1, sizeof *named);
    atomic_init(&named->holders, 1);
    return named;
}

struct named *named_get(struct named *named)
{
    atomic_fetch_add_explicit(&named->holders, 1, memory_order_relaxed);
    return named;
}

void named_put(struct named *named)
{
    if (atomic_fetch_sub_explicit(&named->holders, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < named->n; i++)
        free(named->items[i].name);
    free(named->items);
    free(named);
}

static struct item *find(const struct named *named, struct slice name)
{
    for (size_t i = 0; i < named->n; i++)
        if (slice_eq_nocase(name, slice_str(named->items[i].name)))
            return &named->items[i];
    return NULL;
}

static bool is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.at[i] <= ' ' || name.at[i] > '~')
            return false;
    return name.len > 0 && name.len <= NAMED_NAME_MAX;
}

bool named_add(struct named *named, struct slice name, struct slice algorithm, struct slice text, char *why,
               size_t why_size)
{
    struct item *item = find(named, name);
    if (item != NULL)
        return quota_limit_parse(algorithm, text, &item->rule, why, why_size);
    struct quota_rule rule = {0};
    if (!is_name(name))
        return why_set(why, why_size, "a limit is named with 1 to %d printable characters without blanks",
                       NAMED_NAME_MAX);
    if (named->n == NAMED_MAX)
        return why_set(why, why_size, "there are already %d named limits", NAMED_MAX);
    if (!quota_limit_parse(algorithm, text, &rule, why, why_size))
        return false;
    named->items = mem_realloc(named->items, named->n + 1, sizeof *named->items);
    named->items[named->n++] = (struct item){mem_strndup(name.at, name.len), rule};
    return true;
}

const struct quota_rule *named_find(const struct named *named, struct slice name)
{
    const struct item *item = find(named, name);
    return item != NULL ? &item->rule : NULL;
}

static struct slice name_at(const void *arg, size_t i)
{
    const struct named *named = arg;
    return slice_str(named->items[i].name);
}

struct slice named_near(const struct named *named, struct slice name)
{
    return near_name(name, named->n, name_at, named);
}
