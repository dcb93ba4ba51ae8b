#include "limit/policy/variant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- one variant ---- */

static struct limit *copy_limits(const struct policy *policy, size_t room)
{
    struct limit *limits = mem_zalloc(room, sizeof *limits);
    if (policy->n_limits > 0)
        memcpy(limits, policy->limits, policy->n_limits * sizeof *limits);
    return limits;
}

struct policy *variant_new(const struct policy *policy, struct policy_state *policy_state)
{
    struct policy *variant = mem_zalloc(1, sizeof *variant);
    *variant = policy != NULL ? *policy : (struct policy){.weight = POLICY_WEIGHT};
    variant->policy_state = policy_state;
    variant->limits = copy_limits(variant, variant->n_limits + 1U);
    variant->matches = NULL;
    variant->n_matches = 0;
    variant->binds = NULL;
    policy_get_rates(variant);
    return variant;
}

void variant_free(struct policy *variant)
{
    free(variant->limits);
    free(variant->binds);
    policy_put_rates(variant);
    free(variant);
}

static void take_out_line(struct policy *policy, enum unit unit, const struct class *class)
{
    uint16_t kept = 0;
    for (uint16_t i = 0; i < policy->n_limits; i++)
        if (policy->limits[i].unit != unit || policy->limits[i].class != class)
            policy->limits[kept++] = policy->limits[i];
    policy->n_limits = kept;
}

/* If the policy has the maximum of limits, `deny` replaces the last limit. */
void variant_deny(struct policy *variant, const struct limit *deny)
{
    take_out_line(variant, (enum unit)deny->unit, deny->class);
    variant->limits = mem_realloc(variant->limits, variant->n_limits + 1U, sizeof *variant->limits);
    size_t at =
        variant->n_limits < POLICY_MAX_LIMITS ? variant->n_limits++ : POLICY_MAX_LIMITS - 1U;
    variant->limits[at] = *deny;
}

/* ---- variants of single subjects ---- */

/* Short names first. */
static int variant_compare(const struct variant *one, struct slice subject, uint16_t index)
{
    struct slice name = slice_str(one->subject);
    if (name.len != subject.len)
        return name.len < subject.len ? -1 : 1;
    int order = memcmp(name.at, subject.at, name.len);
    return order != 0 ? order : (int)one->policy->index - (int)index;
}

/* Index of the first entry that is not before that subject and policy. */
static size_t variant_place_of(const struct variants *variants, struct slice subject,
                               uint16_t index)
{
    size_t low = 0, high = variants->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (variant_compare(&variants->at[middle], subject, index) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct policy *variants_find(const struct variants *variants, struct slice subject,
                             const struct policy *policy)
{
    size_t i = policy != NULL ? variant_place_of(variants, subject, policy->index) : variants->n;
    if (i == variants->n || variant_compare(&variants->at[i], subject, policy->index) != 0)
        return NULL;
    return variants->at[i].policy;
}

struct policy *variants_want(struct variants *variants, struct slice subject,
                             const struct policy *policy)
{
    struct policy *known = variants_find(variants, subject, policy);
    if (known != NULL)
        return known;
    size_t i = variant_place_of(variants, subject, policy->index);
    variants->at = mem_realloc(variants->at, variants->n + 1, sizeof *variants->at);
    memmove(variants->at + i + 1, variants->at + i, (variants->n - i) * sizeof *variants->at);
    variants->at[i] = (struct variant){mem_strndup(subject.at, subject.len),
                                       variant_new(policy, policy->policy_state)};
    variants->n++;
    return variants->at[i].policy;
}

struct variants variants_copy(const struct variants *variants)
{
    struct variants copy = {mem_zalloc(variants->n, sizeof *copy.at), variants->n};
    for (size_t i = 0; i < copy.n; i++) {
        const struct variant *one = &variants->at[i];
        copy.at[i].subject = mem_strndup(one->subject, strlen(one->subject));
        copy.at[i].policy = variant_new(one->policy, one->policy->policy_state);
    }
    return copy;
}

void variants_fini(struct variants *variants)
{
    for (size_t i = 0; i < variants->n; i++) {
        free(variants->at[i].subject);
        variant_free(variants->at[i].policy);
    }
    free(variants->at);
    *variants = (struct variants){0};
}

/* ---- lines ---- */

/*
 * A limit shared by all subjects cannot be set for one subject. All subjects share one funnel, and
 * the change would alter the debts of all.
 */
static bool variant_is_shared(const struct policy *policy, uint16_t first)
{
    uint16_t i = first;
    while (i < policy->n_limits && policy->limits[i].scope != PER_POLICY)
        i++;
    return i < policy->n_limits;
}

bool policy_replace_line(struct policies *policies, struct policy *policy,
                         const struct command_table *table, struct slice what,
                         struct slice expression, const struct line_span *span, char *why,
                         size_t why_size)
{
    enum unit unit = unit_find(what);
    struct classes *classes = policies_own_classes(policies);
    const struct class *class =
        unit == UNIT_COMMANDS ? class_find(classes, what, why, why_size) : NULL;
    if (unit == UNIT_COMMANDS && class == NULL)
        return false;
    struct limit *before = policy->limits;
    uint16_t n_before = policy->n_limits;
    policy->limits = copy_limits(policy, n_before + 1U);
    take_out_line(policy, unit, class);
    uint16_t first = policy->n_limits;
    bool is_good = policy_add_limits(policies, policy, table, what, expression, why, why_size);
    if (is_good && span->is_own && variant_is_shared(policy, first)) {
        snprintf(
            why, why_size,
            "all subjects share a limit `per policy`: leave `per policy` out to limit one subject");
        is_good = false;
    }
    if (!is_good) {
        free(policy->limits);
        policy->limits = before;
        policy->n_limits = n_before;
        return false;
    }
    free(before);
    for (uint16_t i = first; i < policy->n_limits; i++) {
        policy->limits[i].until_ns = span->until_ns;
        policy->limits[i].is_own = span->is_own;
    }
    return true;
}
