/*
 * The policies of one configuration, in file order.
 *
 * Policies are built, then bound to a command table, then immutable. A set for another table shares
 * everything except `binds` with its origin: the set from which the new set was made. The set keeps
 * a reference on its origin.
 */
#include "limit/policy/policy.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/slice.h"
#include "base/why.h"
#include "limit/command/keys.h"
#include "limit/policy/match_index.h"

#define POLICIES_MAX 1024
#define TABLE_SIZE (2 * POLICIES_MAX)

struct policies {
    _Atomic uint32_t references;
    struct policies *origin; /* owns the classes, limits and matches; NULL: this set owns them */
    struct classes *classes;
    /* one allocation each: pointers stay valid while policies are added */
    struct policy **policies;
    size_t count;
    uint16_t table[TABLE_SIZE]; /* by hash of a policy's name: its index + 1; 0: free */
    struct match_index *index;  /* owned by the origin; NULL: not bound yet */
    size_t otherwise;           /* index of the policy `default`; equals count if there is none */
    struct costs costs;
    struct policy_state *unlimited; /* counters of subjects without a policy; NULL: not enrolled */
    struct peak_plan peak_rates;    /* for subjects without a policy */
    uint64_t order;                 /* order of the set's rate tables: limit/rate_table.h */
    bool is_shadow;
    bool delays; /* a limit of any policy delays; set by policy_add_limits */
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
    policy_put_rates(policy);
    peak_plan_fini(&policy->peak_rates);
    free(policy);
}

static void drop_index(struct policies *policies)
{
    if (policies->index != NULL)
        match_index_fini(policies->index);
    free(policies->index);
    policies->index = NULL;
}

void policies_put(struct policies *policies)
{
    if (atomic_fetch_sub_explicit(&policies->references, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < policies->count; i++)
        policy_free(policies->policies[i], policies->origin == NULL);
    free(policies->policies);
    peak_plan_fini(&policies->peak_rates);
    costs_fini(&policies->costs, policies->origin == NULL);
    if (policies->origin != NULL) {
        policies_put(policies->origin);
    } else {
        classes_free(policies->classes);
        drop_index(policies);
    }
    free(policies);
}

static struct policy *policy_append(struct policies *policies)
{
    policies->policies =
        mem_realloc(policies->policies, policies->count + 1, sizeof(struct policy *));
    struct policy *policy = mem_zalloc(1, sizeof *policy);
    policy->index = (uint16_t)policies->count;
    policies->policies[policies->count++] = policy;
    return policy;
}

/*
 * A policy's name appears in error replies and metrics: only characters that need no quoting are
 * allowed.
 */
static bool policy_is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = ascii_lower(name.at[i]);
        bool is_word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!is_word && c != '-' && c != '_' && c != '.')
            return false;
    }
    return name.len > 0 && name.len <= POLICY_NAME_MAX;
}

/*
 * Index, in the table, of the policy with that name, or of the free entry for the policy. `name`
 * must satisfy policy_is_name.
 */
static size_t policy_spot_of(const struct policies *policies, struct slice name)
{
    char lower[POLICY_NAME_MAX];
    for (size_t i = 0; i < name.len; i++)
        lower[i] = ascii_lower(name.at[i]);
    const struct slice wanted = slice_of(lower, name.len);
    size_t at = (size_t)hash_bytes((struct hash_key){0, 0}, wanted) % TABLE_SIZE;
    while (policies->table[at] != 0 &&
           !slice_eq(wanted, slice_str(policies->policies[policies->table[at] - 1]->name)))
        at = (at + 1) % TABLE_SIZE;
    return at;
}

static struct policy *policy_find(const struct policies *policies, struct slice name)
{
    size_t at = policy_is_name(name) ? policy_spot_of(policies, name) : TABLE_SIZE;
    return at < TABLE_SIZE && policies->table[at] != 0 ? policies->policies[policies->table[at] - 1]
                                                       : NULL;
}

struct policy *policies_add(struct policies *policies, struct slice name, char *why,
                            size_t why_size)
{
    struct policy *known = policy_find(policies, name);
    if (known != NULL)
        return known;
    if (!policy_is_name(name)) {
        why_set(why, why_size,
                "\"%.*s\" is not a policy's name: write 1 to %d letters, digits, '-', '_' and '.'",
                WHY_SLICE(name), POLICY_NAME_MAX);
        return NULL;
    }
    if (policies->count == POLICIES_MAX) {
        why_set(why, why_size, "too many policies: at most %d; merge some of them", POLICIES_MAX);
        return NULL;
    }
    size_t at = policy_spot_of(policies, name);
    struct policy *policy = policy_append(policies);
    policies->table[at] = (uint16_t)policies->count;
    policy->weight = POLICY_WEIGHT;
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

static bool policies_delay(const struct policies *policies)
{
    return policies->delays;
}

const struct policy *policies_find(const struct policies *policies, struct slice name)
{
    return policy_find(policies, name);
}

const struct classes *policies_classes(const struct policies *policies)
{
    return policies->classes;
}

struct classes *policies_own_classes(struct policies *policies)
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
        return why_set(why, why_size,
                       "a term is missing: write user:PATTERN, name:PATTERN or ip:ADDRESS/N");
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

/* A limit on class control may delay or close, never refuse. */
static bool suits_control(const struct limit *limit, char *why, size_t why_size)
{
    if (limit->action != OVER_REFUSE && limit->action != OVER_DENY)
        return true;
    struct slice name = class_name(limit->class);
    return why_set(
        why, why_size,
        "%.*s is part of class control, which is never refused: write over delay or over close",
        WHY_SLICE(name));
}

/* Number of limits that the policy already has from lines of that name. */
static uint16_t count_of_line(const struct policy *policy, enum unit unit,
                              const struct class *class)
{
    uint16_t count = 0;
    for (size_t i = 0; i < policy->n_limits; i++)
        if (policy->limits[i].unit == unit && policy->limits[i].class == class)
            count++;
    return count;
}

struct slice limit_line(const struct limit *limit)
{
    return limit->class != NULL ? class_name(limit->class) : unit_name((enum unit)limit->unit);
}

static void label(struct limit *limit, const struct policy *policy, struct slice line)
{
    int len = snprintf(limit->label, sizeof limit->label, "%s/", policy->name);
    for (size_t i = 0; i < line.len && (size_t)len + 1 < sizeof limit->label; i++)
        limit->label[len++] = ascii_lower(line.at[i]);
    limit->label[len] = '\0';
}

static bool policy_is_denied(const struct policy *policy, const struct class *class)
{
    for (size_t i = 0; class != NULL && i < policy->n_limits; i++)
        if (policy->limits[i].class == class && policy->limits[i].action == OVER_DENY)
            return true;
    return false;
}

/* Parses one item of a line: a limit, or "deny". */
static bool parse_item(struct slice text, enum unit unit, bool is_alone, struct limit *limit,
                       char *why, size_t why_size)
{
    if (!slice_eq_nocase(text, SLICE("deny")))
        return limit_parse(text, unit, limit, why, why_size);
    if (unit != UNIT_COMMANDS)
        return why_set(why, why_size, "only a class of commands can be denied");
    if (!is_alone)
        return why_set(why, why_size, "deny refuses everything: remove the other limits");
    limit->unit = UNIT_COMMANDS;
    limit->action = OVER_DENY;
    return true;
}

bool policy_add_limits(struct policies *policies, struct policy *policy,
                       const struct command_table *table, struct slice what,
                       struct slice expression, char *why, size_t why_size)
{
    struct limit limits[POLICY_MAX_LIMITS];
    uint16_t count = 0;
    struct slice part;
    enum unit unit = unit_find(what);
    const struct class *class =
        unit == UNIT_COMMANDS ? class_find(policies->classes, what, why, why_size) : NULL;
    if (unit == UNIT_COMMANDS && class == NULL)
        return false;
    if (policy_is_denied(policy, class))
        return why_set(why, why_size, "deny refuses everything: remove the other limits");
    bool is_control = class != NULL && class_is_control(class, table);
    uint16_t before = count_of_line(policy, unit, class);
    bool is_alone = before == 0 && memchr(expression.at, ',', expression.len) == NULL;
    while (split_next(&expression, ',', &part)) {
        if (policy->n_limits + count == POLICY_MAX_LIMITS)
            return why_set(why, why_size, "policy %s has more than %d limits", policy->name,
                           POLICY_MAX_LIMITS);
        struct limit *limit = &limits[count];
        *limit = (struct limit){.class = class, .position = (uint16_t)(before + count)};
        if (!parse_item(part, unit, is_alone, limit, why, why_size) ||
            (is_control && !suits_control(limit, why, why_size)))
            return false;
        label(limit, policy, limit_line(limit));
        count++;
    }
    for (uint16_t i = 0; i < count; i++)
        policies->delays |= limits[i].action == OVER_DELAY;
    policy->limits = mem_realloc(policy->limits, policy->n_limits + count, sizeof *limits);
    memcpy(policy->limits + policy->n_limits, limits, count * sizeof *limits);
    policy->n_limits = (uint16_t)(policy->n_limits + count);
    return true;
}

void policies_rate(struct policies *policies)
{
    for (size_t i = 0; i < policies->count; i++)
        policy_rate(policies->policies[i], NULL, policies);
}

static uint64_t policies_order(const struct policies *policies)
{
    return policies->order;
}

bool policies_enroll(struct policies *policies, struct registry *registry)
{
    policies->unlimited = registry_policy(registry, SLICE(""));
    for (size_t i = 0; i < policies->count; i++) {
        struct policy *policy = policies->policies[i];
        policy->policy_state = registry_policy(registry, slice_str(policy->name));
        for (size_t j = 0; policy->policy_state != NULL && j < policy->n_limits; j++)
            if (!registry_enter(registry, policy->policy_state, limit_line(&policy->limits[j]),
                                &policy->limits[j]))
                return false;
        if (policy->policy_state == NULL)
            return false;
    }
    policies->order = registry_next_order(registry);
    policies_rate(policies);
    return true;
}

bool policies_add_cost(struct policies *policies, const struct command_table *table,
                       struct slice what, struct slice cost, char *why, size_t why_size)
{
    return costs_add(&policies->costs, policies->classes, table, what, cost, why, why_size);
}

uint64_t policies_cost(const struct policies *policies, const struct command *command,
                       struct slice request, uint32_t argc)
{
    return costs_units(&policies->costs, command, request, argc);
}

/* ---- a command table ---- */

/* Makes the index of all matches. */
static void make_index(struct policies *policies)
{
    drop_index(policies);
    policies->index = mem_zalloc(1, sizeof *policies->index);
    policies->otherwise = policies->count;
    for (size_t i = 0; i < policies->count; i++) {
        const struct policy *policy = policies->policies[i];
        for (size_t j = 0; j < policy->n_matches; j++)
            match_index_add(policies->index, &policy->matches[j], (uint32_t)i);
        if (strcmp(policy->name, default_name) == 0)
            policies->otherwise = i;
    }
    match_index_finish(policies->index);
}

void policies_bind(struct policies *policies, const struct command_table *table)
{
    if (policies->origin == NULL)
        make_index(policies);
    struct members *members = members_new(policies->classes, table);
    for (size_t i = 0; i < policies->count; i++) {
        struct policy *policy = policies->policies[i];
        policy_bind(policy, members, policies->is_shadow);
        peak_plan_make(&policy->peak_rates, members, policy->policy_state, policy->limits,
                       policy->n_limits);
    }
    costs_bind(&policies->costs, table);
    peak_plan_make(&policies->peak_rates, members, policies->unlimited, NULL, 0);
    members_free(members);
}

const struct peak_plan *policies_unlimited_peak_plan(const struct policies *policies)
{
    return &policies->peak_rates;
}

struct policies *policies_rebind(struct policies *policies, const struct command_table *table)
{
    struct policies *origin = policies->origin != NULL ? policies->origin : policies;
    struct policies *copy = policies_new(origin->classes);
    copy->origin = policies_get(origin);
    copy->costs = (struct costs){.at = origin->costs.at, .n = origin->costs.n};
    copy->is_shadow = origin->is_shadow;
    copy->delays = origin->delays;
    copy->unlimited = origin->unlimited;
    copy->index = origin->index;
    copy->otherwise = origin->otherwise;
    memcpy(copy->table, origin->table, sizeof copy->table);
    copy->order = origin->order;
    for (size_t i = 0; i < origin->count; i++) {
        struct policy *policy = policy_append(copy);
        *policy = *origin->policies[i];
        policy->binds = NULL;
        policy_get_rates(policy);
        policy->peak_rates = (struct peak_plan){.n_groups = 0};
    }
    policies_bind(copy, table);
    return copy;
}

/* ---- finding the policy of a client ---- */

bool policy_matches(const struct policy *policy, const struct facts *facts)
{
    for (size_t i = 0; i < policy->n_matches; i++)
        if (match_holds(&policy->matches[i], facts))
            return true;
    return false;
}

const struct policy *policies_match(const struct policies *policies, const struct facts *facts)
{
    uint32_t first = match_index_find(policies->index, facts);
    size_t i = first != MATCH_INDEX_NONE ? first : policies->otherwise;
    return i < policies->count ? policies->policies[i] : NULL;
}

bool policies_match_keys(const struct policies *policies)
{
    return policies->index->has_keys;
}

size_t policies_patterns(const struct policies *policies)
{
    return policies->index->n_tried;
}

/* ---- which limits apply to which command: a set of limits for each row of a command table ---- */

/*
 * True if the limit is checked when a command asks to pass. `is_of_class`: the command is in the
 * class of the limit. Other limits are checked at connects and logins.
 */
static bool policy_is_asked(const struct limit *limit, bool is_of_class,
                            const struct command *command)
{
    enum unit unit = (enum unit)limit->unit;
    if (unit == UNIT_COMMANDS)
        return is_of_class;
    if (unit == UNIT_INFLIGHT)
        /* calls that block are not counted as in flight */
        return !command->blocks || keys_may_block(command);
    return unit_is_taken(unit) || unit_is_bytes(unit);
}

static void bind_limit(struct policy *policy, size_t index, struct members *members)
{
    const struct command_table *table = members_table(members);
    const struct limit *limit = &policy->limits[index];
    bool is_control = limit->class != NULL && class_is_control(limit->class, table);
    const bool *of_class = limit->unit == UNIT_COMMANDS ? members_of(members, limit->class) : NULL;
    uint64_t bit = UINT64_C(1) << index;
    for (size_t id = 0; id < policy->n_binds; id++) {
        const struct command *command = command_table_row(table, id);
        bool is_exempt = (command->flags & CMD_CONTROL) && !is_control;
        if (!is_exempt && policy_is_asked(limit, of_class != NULL && of_class[id], command))
            policy->binds[id] |= bit;
    }
    policy->is_measured |= limit->unit == UNIT_COST;
    policy->of_unit[limit->unit] |= bit;
    policy->of_scope[limit->scope] |= bit;
    policy->of_action[limit->action] |= bit;
    policy->blocks |= limit->is_block ? bit : 0;
}

void policy_bind(struct policy *policy, struct members *members, bool is_shadow)
{
    free(policy->binds);
    policy->n_binds = command_table_count(members_table(members));
    policy->binds = mem_zalloc(policy->n_binds, sizeof *policy->binds);
    memset(policy->of_unit, 0, sizeof policy->of_unit);
    memset(policy->of_scope, 0, sizeof policy->of_scope);
    memset(policy->of_action, 0, sizeof policy->of_action);
    policy->is_measured = false;
    policy->blocks = 0;
    /*
     * is_joint does not depend on the table: workers change tables at different times and must
     * agree.
     */
    policy->is_joint = policy->n_limits > 1;
    uint64_t all = 0;
    for (size_t i = 0; i < policy->n_limits; i++) {
        bind_limit(policy, i, members);
        all |= UINT64_C(1) << i;
    }
    policy->shadows = is_shadow ? all & ~policy->blocks : policy->of_action[OVER_SHADOW];
    policy->is_plain = policy->shadows == 0 && policy->of_unit[UNIT_COMMANDS] == all &&
                       policy->of_scope[PER_SUBJECT] == all &&
                       policy->of_action[OVER_REFUSE] == all;
    if (policy->policy_state != NULL && (policy->is_joint || !policy->is_plain))
        atomic_store_explicit(&policy->policy_state->is_locked, true, memory_order_relaxed);
}

/* ---- rates: the last rates in the registry, overlaid with the limits of the policy ---- */

static bool has_delay(const struct policy *policy)
{
    for (size_t i = 0; i < policy->n_limits; i++)
        if (policy->limits[i].action == OVER_DELAY)
            return true;
    return false;
}

static enum slot_queue policy_queue_of(const struct limit *limit, bool is_shadow, bool has_clocks)
{
    if (limit_has_positions(limit))
        return is_shadow ? SLOT_QUEUE_SHADOW : SLOT_QUEUE;
    return is_shadow && has_clocks ? SLOT_AHEAD : SLOT_QUEUE_NONE;
}

static struct rate_table *own_rates(const struct policy *policy, enum scope scope,
                                    const struct policies *set)
{
    struct rate_table *table = registry_rates(policy->policy_state, scope, policies_order(set));
    bool has_clocks = policies_delay(set) || has_delay(policy);
    for (size_t i = 0; i < policy->n_limits; i++) {
        const struct limit *limit = &policy->limits[i];
        if (limit->scope != scope)
            continue;
        slot_rate_set(&table->at[limit->slot], limit);
        table->at[limit->slot].queue =
            (uint8_t)policy_queue_of(limit, policies_is_shadow(set), has_clocks);
    }
    return table;
}

void policy_get_rates(struct policy *policy)
{
    for (int scope = 0; scope < SCOPE_COUNT; scope++) {
        (void)rate_table_get(policy->rates[scope]);
        (void)rate_table_get(policy->common[scope]);
    }
}

void policy_put_rates(struct policy *policy)
{
    for (int scope = 0; scope < SCOPE_COUNT; scope++) {
        rate_table_put(policy->rates[scope]);
        rate_table_put(policy->common[scope]);
        policy->rates[scope] = policy->common[scope] = NULL;
    }
}

void policy_rate(struct policy *policy, struct rate_table *const common[SCOPE_COUNT],
                 const struct policies *set)
{
    struct rate_table *made[SCOPE_COUNT];
    for (int scope = 0; scope < SCOPE_COUNT; scope++)
        made[scope] = own_rates(policy, (enum scope)scope, set);
    policy_put_rates(policy);
    for (int scope = 0; scope < SCOPE_COUNT; scope++) {
        policy->rates[scope] = made[scope];
        policy->common[scope] = rate_table_get(common != NULL ? common[scope] : made[scope]);
    }
}

/* ---- amounts ---- */

void amounts_take(struct amounts *amounts, const struct policies *policies,
                  const struct command *command, struct slice request, uint32_t argc)
{
    for (size_t unit = 0; unit < UNIT_COUNT; unit++)
        amounts->of[unit] = unit == UNIT_COST ? policies_cost(policies, command, request, argc) : 1;
}
