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
#include "limit/keys.h"
#include "limit/own.h"
#include "limit/rate.h"

#define POLICIES_MAX 1024 /* each client is matched against them one by one */

/* What a cost is multiplied by; a word behind it says so. */
enum cost_per { PER_CALL, PER_KEY, PER_COST, COST_PERS };
static const char *const cost_pers[COST_PERS] = {"", "per key", "per cost"};

/* A line of [cost]. */
struct cost {
    const struct class *class;
    uint32_t units;
    uint8_t per; /* enum cost_per */
};

struct policies {
    _Atomic uint32_t references;
    struct policies *origin; /* who owns the classes, limits and matches; NULL: this set does */
    struct classes *classes;
    struct policy **policies; /* each by itself: pointers stand while more are added */
    size_t count;
    struct cost *costs;
    size_t n_costs;
    uint16_t *cost_of; /* per command id: 1 + the index of its cost, 0 for none. Made by policies_bind */
    size_t n_cost_of;
    bool is_shadow;
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
    free(policies->cost_of);
    if (policies->origin) {
        policies_put(policies->origin);
    } else {
        classes_free(policies->classes);
        free(policies->costs);
    }
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
    size_t known = 0;
    while (known < policies->count && !slice_eq_nocase(name, slice_str(policies->policies[known]->name)))
        known++;
    if (known < policies->count)
        return policies->policies[known];
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

void policies_set_shadow(struct policies *policies, bool is_shadow)
{
    policies->is_shadow = is_shadow;
}

bool policies_is_shadow(const struct policies *policies)
{
    return policies->is_shadow;
}

const struct policy *policies_find(const struct policies *policies, struct slice name)
{
    for (size_t i = 0; i < policies->count; i++)
        if (slice_eq_nocase(name, slice_str(policies->policies[i]->name)))
            return policies->policies[i];
    return NULL;
}

const struct classes *policies_classes(const struct policies *policies)
{
    return policies->classes;
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

/* What a limit may do to class control: it delays and closes, it never refuses. */
static bool suits_control(const struct limit *limit, char *why, size_t why_size)
{
    if (limit->action != OVER_REFUSE && limit->action != OVER_DENY)
        return true;
    struct slice name = class_name(limit->class);
    return why_set(why, why_size,
                   "%.*s is part of class control, which is never refused: write over delay or over close",
                   WHY_SLICE(name));
}

/* How many limits of the policy are from a line of that name. */
static uint16_t count_of_line(const struct policy *policy, enum unit unit, const struct class *class)
{
    uint16_t count = 0;
    for (size_t i = 0; i < policy->n_limits; i++)
        if (policy->limits[i].unit == unit && policy->limits[i].class == class)
            count++;
    return count;
}

static void label(struct limit *limit, const struct policy *policy, struct slice line)
{
    int len = snprintf(limit->label, sizeof limit->label, "%s/", policy->name);
    for (size_t i = 0; i < line.len && (size_t)len + 1 < sizeof limit->label; i++)
        limit->label[len++] = ascii_lower(line.at[i]);
    limit->label[len] = '\0';
}

static bool is_denied(const struct policy *policy, const struct class *class)
{
    for (size_t i = 0; class && i < policy->n_limits; i++)
        if (policy->limits[i].class == class && policy->limits[i].action == OVER_DENY)
            return true;
    return false;
}

/* One item of a line: a limit, or "deny". */
static bool parse_item(struct slice text, enum unit unit, bool is_alone, struct limit *limit, char *why,
                       size_t why_size)
{
    if (!slice_eq_nocase(text, SLICE("deny")))
        return limit_parse(text, unit, limit, why, why_size);
    if (unit != UNIT_COMMANDS)
        return why_set(why, why_size, "only a class of commands can be denied");
    if (!is_alone)
        return why_set(why, why_size, "deny stands alone: it lets nothing pass");
    limit->unit = UNIT_COMMANDS;
    limit->action = OVER_DENY;
    return true;
}

bool policy_add_limits(struct policies *policies, struct policy *policy, const struct command_table *table,
                       struct slice what, struct slice expression, char *why, size_t why_size)
{
    struct limit limits[POLICY_MAX_LIMITS];
    uint16_t count = 0;
    struct slice part;
    enum unit unit = unit_find(what);
    const struct class *class = unit == UNIT_COMMANDS ? class_find(policies->classes, what, why, why_size) : NULL;
    if (unit == UNIT_COMMANDS && !class)
        return false;
    if (is_denied(policy, class))
        return why_set(why, why_size, "deny stands alone: it lets nothing pass");
    bool is_control = class && class_is_control(class, table);
    uint16_t before = count_of_line(policy, unit, class);
    bool is_alone = before == 0 && !memchr(expression.at, ',', expression.len);
    while (split_next(&expression, ',', &part)) {
        if (policy->n_limits + count == POLICY_MAX_LIMITS)
            return why_set(why, why_size, "policy %s has more than %d limits", policy->name, POLICY_MAX_LIMITS);
        struct limit *limit = &limits[count];
        *limit = (struct limit){.class = class, .position = (uint16_t)(before + count)};
        if (!parse_item(part, unit, is_alone, limit, why, why_size) ||
            (is_control && !suits_control(limit, why, why_size)))
            return false;
        label(limit, policy, limit_line(limit));
        count++;
    }
    policy->limits = mem_realloc(policy->limits, policy->n_limits + count, sizeof *limits);
    memcpy(policy->limits + policy->n_limits, limits, count * sizeof *limits);
    policy->n_limits = (uint16_t)(policy->n_limits + count);
    return true;
}

bool policies_enroll(struct policies *policies, struct ledger *ledger)
{
    for (size_t i = 0; i < policies->count; i++) {
        struct policy *policy = policies->policies[i];
        policy->record = ledger_record(ledger, slice_str(policy->name));
        for (size_t j = 0; policy->record && j < policy->n_limits; j++)
            if (!ledger_enter(ledger, policy->record, limit_line(&policy->limits[j]), &policy->limits[j]))
                return false;
        if (!policy->record)
            return false;
    }
    return true;
}

/* ---- [cost] ---- */

/* "100", "2 per key", "1 per cost" */
static bool parse_cost(struct slice text, struct cost *cost, char *why, size_t why_size)
{
    struct slice word;
    uint64_t units;
    if (!split_word(&text, &word) || !rate_parse_count(word, &units, why, why_size))
        return word.len > 0 ? false : why_set(why, why_size, "a cost is missing: write 100, or 1 per key");
    if (units == 0 || units > UINT32_MAX)
        return why_set(why, why_size, "a cost is from 1 to %u", UINT32_MAX);
    text = split_trim(text);
    cost->units = (uint32_t)units;
    while (cost->per < COST_PERS && !slice_eq_nocase(text, slice_str(cost_pers[cost->per])))
        cost->per++;
    return cost->per < COST_PERS ||
           why_set(why, why_size, "\"%.*s\" means nothing: write a number, or a number and \"per key\" or \"per cost\"",
                   WHY_SLICE(text));
}

/* A command goes before a class of the same name: the cost is the command's. */
static const struct class *costly(struct policies *policies, const struct command_table *known, struct slice what,
                                  char *why, size_t why_size)
{
    char text[COMMAND_NAME_MAX + sizeof "cmd."];
    if (what.len > COMMAND_NAME_MAX || !command_by_name(known, what))
        return class_find(policies->classes, what, why, why_size);
    int len = snprintf(text, sizeof text, "cmd.%.*s", (int)what.len, what.at);
    return class_find(policies->classes, slice_of(text, (size_t)len), why, why_size);
}

bool policies_add_cost(struct policies *policies, const struct command_table *table, struct slice what,
                       struct slice cost, char *why, size_t why_size)
{
    struct cost parsed = {.class = costly(policies, table, what, why, why_size)};
    if (!parsed.class || !parse_cost(cost, &parsed, why, why_size))
        return false;
    if (policies->n_costs == UINT16_MAX - 1)
        return why_set(why, why_size, "there are already %zu costs", policies->n_costs);
    policies->costs = mem_realloc(policies->costs, policies->n_costs + 1, sizeof parsed);
    policies->costs[policies->n_costs++] = parsed;
    return true;
}

static void bind_costs(struct policies *policies, const struct command_table *table)
{
    free(policies->cost_of);
    policies->n_cost_of = policies->n_costs > 0 ? command_table_count(table) : 0;
    policies->cost_of = mem_zalloc(policies->n_cost_of, sizeof *policies->cost_of);
    for (size_t id = 0; id < policies->n_cost_of; id++)
        for (size_t i = 0; i < policies->n_costs; i++)
            if (class_has(policies->costs[i].class, table, command_table_row(table, id)))
                policies->cost_of[id] = (uint16_t)(i + 1);
}

static uint64_t times(const struct cost *cost, const struct command *command, struct slice request, uint32_t argc)
{
    if (cost->per == PER_KEY)
        return keys_most(command, request, argc);
    return cost->per == PER_COST && command->own > 0 ? own_units(own_row(command->own - 1U), request) : 1;
}

uint64_t policies_cost(const struct policies *policies, const struct command *command, struct slice request,
                       uint32_t argc)
{
    uint16_t at = command->id < policies->n_cost_of ? policies->cost_of[command->id] : 0;
    if (at == 0)
        return 1;
    const struct cost *cost = &policies->costs[at - 1];
    uint64_t n = times(cost, command, request, argc), units;
    bool is_beyond = __builtin_mul_overflow(cost->units, n > 0 ? n : 1, &units) || units > INT64_MAX;
    return is_beyond ? INT64_MAX : units;
}

/* ---- which limit binds which command ---- */

/* Is the limit asked when a command wants to pass? The others are asked at other moments. */
static bool is_asked(const struct limit *limit, const struct command_table *table, const struct command *command)
{
    switch ((enum unit)limit->unit) {
    case UNIT_COMMANDS:
        return class_has(limit->class, table, command);
    case UNIT_INFLIGHT:
        return !command->blocks || keys_may_block(command); /* while they block they are not in flight */
    case UNIT_COST:
    case UNIT_BYTES_IN:
    case UNIT_BYTES_OUT:
        return true;
    case UNIT_CONNECTIONS:
    case UNIT_CONNECTS:
    case UNIT_AUTH_FAILURES:
    case UNIT_COUNT:
        break;
    }
    return false;
}

static void bind_limit(struct policy *policy, size_t index, const struct command_table *table)
{
    const struct limit *limit = &policy->limits[index];
    bool is_control = limit->class && class_is_control(limit->class, table);
    uint64_t bit = UINT64_C(1) << index;
    for (size_t id = 0; id < policy->n_binds; id++) {
        const struct command *command = command_table_row(table, id);
        bool is_exempt = (command->flags & CMD_CONTROL) && !is_control;
        if (!is_exempt && is_asked(limit, table, command))
            policy->binds[id] |= bit;
    }
    policy->of_unit[limit->unit] |= bit;
    policy->of_scope[limit->scope] |= bit;
    policy->of_action[limit->action] |= bit;
}

static void bind_policy(struct policy *policy, const struct command_table *table, bool is_shadow)
{
    free(policy->binds);
    policy->n_binds = command_table_count(table);
    policy->binds = mem_zalloc(policy->n_binds, sizeof *policy->binds);
    memset(policy->of_unit, 0, sizeof policy->of_unit);
    memset(policy->of_scope, 0, sizeof policy->of_scope);
    memset(policy->of_action, 0, sizeof policy->of_action);
    /* Not by what binds together under this table: workers that change tables at different moments must agree. */
    policy->is_joint = policy->n_limits > 1;
    uint64_t all = 0;
    for (size_t i = 0; i < policy->n_limits; i++) {
        bind_limit(policy, i, table);
        all |= UINT64_C(1) << i;
    }
    policy->shadows = is_shadow ? all : policy->of_action[OVER_SHADOW];
    policy->is_plain = policy->shadows == 0 && policy->of_unit[UNIT_COMMANDS] == all &&
                       policy->of_scope[PER_SUBJECT] == all && policy->of_action[OVER_REFUSE] == all;
    if (policy->record && (policy->is_joint || !policy->is_plain))
        atomic_store_explicit(&policy->record->is_locked, true, memory_order_relaxed);
}

void policies_bind(struct policies *policies, const struct command_table *table)
{
    for (size_t i = 0; i < policies->count; i++)
        bind_policy(policies->policies[i], table, policies->is_shadow);
    bind_costs(policies, table);
}

struct policies *policies_rebind(struct policies *policies, const struct command_table *table)
{
    struct policies *origin = policies->origin ? policies->origin : policies;
    struct policies *copy = policies_new(origin->classes);
    copy->origin = policies_get(origin);
    copy->costs = origin->costs;
    copy->n_costs = origin->n_costs;
    copy->is_shadow = origin->is_shadow;
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

bool policies_match_keys(const struct policies *policies)
{
    for (size_t i = 0; i < policies->count; i++)
        for (size_t j = 0; j < policies->policies[i]->n_matches; j++)
            if (match_is_of_key(&policies->policies[i]->matches[j]))
                return true;
    return false;
}

bool policies_limit_connections(const struct policies *policies)
{
    for (size_t i = 0; i < policies->count; i++) {
        const struct policy *policy = policies->policies[i];
        if ((policy->of_unit[UNIT_CONNECTIONS] | policy->of_unit[UNIT_CONNECTS]) != 0)
            return true;
    }
    return false;
}
