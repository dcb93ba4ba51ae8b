/*
 * The policies of one configuration, in file order.
 *
 * Policies are built in place, then bound to a command table, then never change. A set for another table shares all
 * but the binds with the set it was made from, which it holds on to.
 */
#include "limit/policy.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/split.h"
#include "base/why.h"
#include "limit/rate.h"

#define POLICIES_MAX 1024 /* each client is matched against them one by one */

struct policies {
    _Atomic uint32_t references;
    struct policies *origin; /* who owns the classes, limits and matches; NULL: this set does */
    struct classes *classes;
    struct policy **policies; /* each by itself: pointers stand while more are added */
    size_t count;
};

static const char default_name[] = "default";

/* ---- the set ---- */

struct policies *policies_new(struct classes *classes)
{
    struct policies *policies = mem_zalloc(1, sizeof *policies);
    atomic_init(&policies->references, 1);
    policies->classes = classes;
    return policies;
}

struct policies *policies_get(struct policies *policies)
{
    atomic_fetch_add_explicit(&policies->references, 1, memory_order_relaxed);
    return policies;
}

static void policy_free(struct policy *policy, bool is_owner)
{
    for (size_t i = 0; is_owner && i < policy->n_matches; i++)
        match_fini(&policy->matches[i]);
    if (is_owner) {
        free(policy->matches);
        free(policy->limits);
    }
    free(policy->binds);
    free(policy);
}

void policies_put(struct policies *policies)
{
    if (atomic_fetch_sub_explicit(&policies->references, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < policies->count; i++)
        policy_free(policies->policies[i], !policies->origin);
    free(policies->policies);
    if (policies->origin)
        policies_put(policies->origin);
    else
        classes_free(policies->classes);
    free(policies);
}

static struct policy *append(struct policies *policies)
{
    policies->policies = mem_realloc(policies->policies, policies->count + 1, sizeof(struct policy *));
    struct policy *policy = mem_zalloc(1, sizeof *policy);
    policy->index = (uint16_t)policies->count;
    policies->policies[policies->count++] = policy;
    return policy;
}

/* A policy's name shows in error replies and metrics, so it is made of what needs no quoting anywhere. */
static bool is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = ascii_lower(name.at[i]);
        bool is_word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!is_word && c != '-' && c != '_' && c != '.')
            return false;
    }
    return name.len > 0 && name.len <= POLICY_NAME_MAX;
}

struct policy *policies_add(struct policies *policies, struct slice name, char *why, size_t why_size)
{
    for (size_t i = 0; i < policies->count; i++)
        if (slice_eq_nocase(name, slice_str(policies->policies[i]->name)))
            return policies->policies[i];
    if (!is_name(name)) {
        why_set(why, why_size, "\"%.*s\" is not a policy's name: write 1 to %d letters, digits, '-', '_' and '.'",
                WHY_SLICE(name), POLICY_NAME_MAX);
        return NULL;
    }
    if (policies->count == POLICIES_MAX) {
        why_set(why, why_size, "there are already %d policies: join some of them", POLICIES_MAX);
        return NULL;
    }
    struct policy *policy = append(policies);
    for (size_t i = 0; i < name.len; i++)
        policy->name[i] = ascii_lower(name.at[i]);
    return policy;
}

size_t policies_count(const struct policies *policies)
{
    return policies->count;
}

const struct policy *policies_at(const struct policies *policies, size_t index)
{
    return policies->policies[index];
}

/* ---- lines of one policy ---- */

static bool add_term(struct policy *policy, struct slice term, char *why, size_t why_size)
{
    struct match match;
    if (term.len == 0)
        return why_set(why, why_size, "a term is missing: write user:PATTERN, name:PATTERN or ip:ADDRESS/N");
    if (policy->n_matches == UINT16_MAX)
        return why_set(why, why_size, "policy %s has more than %d terms", policy->name, UINT16_MAX);
    if (!match_parse(&match, term, why, why_size))
        return false;
    policy->matches = mem_realloc(policy->matches, policy->n_matches + 1U, sizeof match);
    policy->matches[policy->n_matches++] = match;
    return true;
}

bool policy_add_match(struct policy *policy, struct slice terms, char *why, size_t why_size)
{
    uint16_t before = policy->n_matches;
    struct slice term;
    while (split_next(&terms, ',', &term)) {
        if (add_term(policy, term, why, why_size))
            continue;
        while (policy->n_matches > before)
            match_fini(&policy->matches[--policy->n_matches]);
        return false;
    }
    return true;
}

bool policy_can_match(const struct policy *policy)
{
    return policy->n_matches > 0 || strcmp(policy->name, default_name) == 0;
}

/* Units that LIMITS.md has and this does not, yet. */
static bool is_later_unit(struct slice what)
{
    static const char *const units[] = {"cost", "bytes-in", "bytes-out", "inflight", "connections", "connects"};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (slice_eq_nocase(what, slice_str(units[i])))
            return true;
    return false;
}

static const struct class *limited_class(struct policies *policies, const struct command_table *table,
                                         struct slice what, char *why, size_t why_size)
{
    if (is_later_unit(what)) {
        why_set(why, why_size, "limits in unit %.*s are not yet supported: limit a class of commands", WHY_SLICE(what));
        return NULL;
    }
    const struct class *class = class_find(policies->classes, what, why, why_size);
    if (!class || !class_is_control(class, table))
        return class;
    struct slice name = class_name(class);
    why_set(why, why_size,
            "class control is never refused, and %.*s is part of it: leave this line out (over delay and over close "
            "are not yet supported)",
            WHY_SLICE(name));
    return NULL;
}

static void limit_init(struct limit *limit, const struct policy *policy, const struct class *class,
                       const struct rate *rate)
{
    struct slice name = class_name(class);
    *limit = (struct limit){.class = class, .rate = *rate};
    snprintf(limit->label, sizeof limit->label, "%s/%.*s", policy->name, (int)name.len, name.at);
}

bool policy_add_limits(struct policies *policies, struct policy *policy, const struct command_table *table,
                       struct slice what, struct slice expression, char *why, size_t why_size)
{
    struct limit limits[POLICY_MAX_LIMITS];
    size_t count = 0;
    struct slice part;
    const struct class *class = limited_class(policies, table, what, why, why_size);
    if (!class)
        return false;
    if (slice_eq_nocase(split_trim(expression), SLICE("deny")))
        return why_set(why, why_size, "\"deny\" is not yet supported: give a rate, or leave the class to Redis' ACL");
    while (split_next(&expression, ',', &part)) {
        struct rate rate;
        if (policy->n_limits + count == POLICY_MAX_LIMITS)
            return why_set(why, why_size, "policy %s has more than %d limits", policy->name, POLICY_MAX_LIMITS);
        if (!rate_parse(part, &rate, why, why_size))
            return false;
        limit_init(&limits[count++], policy, class, &rate);
    }
    policy->limits = mem_realloc(policy->limits, policy->n_limits + count, sizeof *limits);
    memcpy(policy->limits + policy->n_limits, limits, count * sizeof *limits);
    policy->n_limits = (uint16_t)(policy->n_limits + count);
    return true;
}

/* ---- which limit binds which command ---- */

static void bind_limit(struct policy *policy, size_t index, const struct command_table *table)
{
    const struct class *class = policy->limits[index].class;
    bool is_control = class_is_control(class, table);
    for (size_t id = 0; id < policy->n_binds; id++) {
        const struct command *command = command_table_row(table, id);
        bool is_exempt = (command->flags & CMD_CONTROL) && !is_control;
        if (!is_exempt && class_has(class, table, command))
            policy->binds[id] |= UINT64_C(1) << index;
    }
}

static void bind_policy(struct policy *policy, const struct command_table *table)
{
    free(policy->binds);
    policy->n_binds = command_table_count(table);
    policy->binds = mem_zalloc(policy->n_binds, sizeof *policy->binds);
    /* Not by what binds together under this table: workers that change tables at different moments must agree. */
    policy->is_joint = policy->n_limits > 1;
    for (size_t i = 0; i < policy->n_limits; i++)
        bind_limit(policy, i, table);
}

void policies_bind(struct policies *policies, const struct command_table *table)
{
    for (size_t i = 0; i < policies->count; i++)
        bind_policy(policies->policies[i], table);
}

struct policies *policies_rebind(struct policies *policies, const struct command_table *table)
{
    struct policies *origin = policies->origin ? policies->origin : policies;
    struct policies *copy = policies_new(origin->classes);
    copy->origin = policies_get(origin);
    for (size_t i = 0; i < origin->count; i++) {
        struct policy *policy = append(copy);
        *policy = *origin->policies[i];
        policy->binds = NULL;
    }
    policies_bind(copy, table);
    return copy;
}

/* ---- who is bound ---- */

static bool matches(const struct policy *policy, const struct facts *facts)
{
    for (size_t i = 0; i < policy->n_matches; i++)
        if (match_holds(&policy->matches[i], facts))
            return true;
    return false;
}

const struct policy *policies_match(const struct policies *policies, const struct facts *facts)
{
    const struct policy *otherwise = NULL;
    for (size_t i = 0; i < policies->count; i++) {
        const struct policy *policy = policies->policies[i];
        if (matches(policy, facts))
            return policy;
        if (strcmp(policy->name, default_name) == 0)
            otherwise = policy;
    }
    return otherwise;
}
