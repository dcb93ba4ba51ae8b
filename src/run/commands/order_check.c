#include "run/commands/order_check.h"

#include "base/split.h"
#include "base/why.h"
#include "limit/command/class.h"
#include "limit/policy/imply.h"
#include "limit/policy/named_subject.h"
#include "run/config/config_build.h"
#include "run/commands/order_line.h"

#define WHY_ROOM 512

/* ---- what ---- */

static void on_unknown(void *arg, struct slice class, struct slice unknown, struct slice near)
{
    char **error = arg;
    (void)class;
    if (*error == NULL && near.len > 0)
        *error =
            order_error("%.*s is no command that weir knows (did you mean %.*s?)", WHY_SLICE(unknown), WHY_SLICE(near));
    else if (*error == NULL)
        *error =
            order_error("%.*s is no command that weir knows: for one of a module that is not loaded yet, write the "
                        "line into the file, then LIMIT RELOAD",
                        WHY_SLICE(unknown));
}

/* Classes that are spelled out are in none of the operator's, and a set of its own finds them all the same. */
char *order_check_class(const struct line_name *name, const struct command_table *table)
{
    char why[WHY_ROOM];
    char *error = NULL;
    struct classes *spelled = classes_new();
    if (class_find(spelled, name->key, why, sizeof why) != NULL)
        classes_check(spelled, table, on_unknown, &error);
    classes_free(spelled);
    return error;
}

/* ---- whom ---- */

char *order_check_whom(const struct order *order, const struct line_name *name, const struct identity *identity,
                       const struct policies *policies)
{
    char why[WHY_ROOM];
    struct named_subject named;
    const struct policy *other;
    if (!config_is_limit_line(name->key))
        return order_error("%s cannot be SET for one subject or for a time: only limits can", order->what);
    const struct policy *policy = policies_find(policies, name->section);
    if (policy == NULL || order->key == NULL ||
        !named_subject_read(&named, identity, slice_str(order->key), why, sizeof why) || !named.is_whole)
        return NULL; /* of a name that is wrong, more is said elsewhere */
    struct slice kind, rest = slice_str(order->key);
    split_next(&rest, ':', &kind);
    if (!policies_bind_elsewhere(policies, policy, &named.facts, kind, &other))
        return NULL;
    if (other == NULL)
        return order_error("%s is not bound by policy %s, nor by any other", order->key, policy->name);
    return order_error("%s is bound by policy %s, not by %s: LIMIT SET %s ...", order->key, other->name, policy->name,
                       other->name);
}
