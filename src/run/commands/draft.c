#include "run/commands/draft.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/split.h"
#include "base/why.h"
#include "quota/algorithm.h"
#include "run/config/config_edit.h"
#include "run/commands/order_check.h"
#include "run/commands/order_line.h"
#include "run/commands/order_lines.h"

struct draft draft_new(const struct config_file *running, const struct set_lines *lines)
{
    struct draft draft = {.lines = set_lines_copy(lines)};
    config_file_copy(&draft.file, running);
    return draft;
}

void draft_fini(struct draft *draft)
{
    config_file_fini(&draft->file);
    set_lines_fini(&draft->lines);
    *draft = (struct draft){0};
}

/* ---- lines of policies ---- */

static const char *or_none(const char *text)
{
    return text != NULL ? text : "none";
}

/* What holds for all subjects of the policy; heap, NULL: nothing. */
static char *value_for_all(const struct draft *draft, const struct line_name *name)
{
    const struct set_line *line = set_lines_find(&draft->lines, name->section, name->key, NULL);
    return line != NULL ? mem_strndup(line->expression, strlen(line->expression))
                        : config_file_value(&draft->file, name);
}

/* Could it have an effect? What replaces a line that is there needs no command that is known. */
static char *check_effect(const struct draft *draft, const struct order *order, const struct line_name *name,
                          const struct live_rules *live)
{
    if (order->is_handed_over)
        return NULL;
    char *there = value_for_all(draft, name);
    char *error = there != NULL ? NULL : order_check_class(name, live->commands);
    free(there);
    if (error == NULL && order_is_special(order))
        error = order_check_whom(order, name, &live->rules->identity, live->rules->policies);
    return error;
}

/* A line for one subject, or for a time. */
static char *change_lines(struct draft *draft, const struct order *order, const struct line_name *name,
                          const struct identity *identity, char **told)
{
    const struct set_line *known = set_lines_find(&draft->lines, name->section, name->key, order->key);
    char *before = known != NULL        ? mem_strndup(known->expression, strlen(known->expression))
                   : order->key == NULL ? config_file_value(&draft->file, name)
                                        : NULL;
    char *error = order->kind == ORDER_SET ? order_lines_set(order, name, identity, &draft->lines, clock_ns())
                                           : order_lines_unset(order, name, &draft->lines);
    if (error == NULL) {
        char *now = value_for_all(draft, name);
        *told = order_lines_told(order, name, before, now);
        free(now);
    }
    free(before);
    return error;
}

/* Put `value` in the place of the lines of that name, and of what has been set there for a time. */
static void replace(struct draft *draft, const struct line_name *name, const char *value)
{
    config_file_replace(&draft->file, name, value);
    set_lines_drop(&draft->lines, name->section, name->key, NULL);
}

static char *set(struct draft *draft, const struct order *order, const struct live_rules *live, char **told)
{
    struct line_name name;
    char *error = order_line(order, live->rules->policies, &name);
    if (error == NULL)
        error = check_effect(draft, order, &name, live);
    if (error != NULL)
        return error;
    if (order_is_special(order))
        return change_lines(draft, order, &name, &live->rules->identity, told);
    struct slice value = split_trim(slice_str(order->expression));
    char *expression = mem_strndup(value.at, value.len);
    char *before = config_file_value(&draft->file, &name);
    replace(draft, &name, expression);
    *told = order_told("[policy %.*s] %s = %s (before: %s)", WHY_SLICE(name.section), order->what, expression,
                       or_none(before));
    free(before);
    free(expression);
    return NULL;
}

static char *unset(struct draft *draft, const struct order *order, const struct live_rules *live, char **told)
{
    struct line_name name;
    char *error = order_line(order, live->rules->policies, &name);
    if (error != NULL)
        return error;
    if (order_is_special(order) || set_lines_find(&draft->lines, name.section, name.key, NULL) != NULL)
        return change_lines(draft, order, &name, &live->rules->identity, told);
    char *before = config_file_value(&draft->file, &name);
    if (before == NULL)
        return order_error("policy %.*s has no limit %s", WHY_SLICE(name.section), order->what);
    replace(draft, &name, NULL);
    *told =
        order_told("[policy %.*s] %s removed (before: %s; now: none)", WHY_SLICE(name.section), order->what, before);
    free(before);
    return NULL;
}

/* ---- other lines ---- */

/* A limit has one algorithm: remove lines of another. */
static void replace_named(struct config_file *file, const struct line_name *name, const char *value)
{
    struct line_name other = *name;
    for (uint8_t kind = 0; quota_named_kind(name->key) != QUOTA_KINDS && kind < QUOTA_KINDS; kind++) {
        other.key = slice_str(quota_algorithm(kind)->name);
        if (quota_algorithm(kind)->is_named && !slice_eq_nocase(other.key, name->key))
            config_file_replace(file, &other, NULL);
    }
    config_file_replace(file, name, value);
}

static char *set_limit(struct draft *draft, const struct order *order, const struct live_rules *live, char **told)
{
    struct line_name name;
    struct slice value;
    char *error = order_named_line(order, live->rules->named, &name, &value);
    if (error != NULL)
        return error;
    char *text = mem_strndup(value.at, value.len);
    char *before = config_file_value(&draft->file, &name);
    replace_named(&draft->file, &name, text);
    *told = order_told("[limit %s] %.*s = %s (before: %s)", order->policy, WHY_SLICE(name.key), text, or_none(before));
    free(before);
    free(text);
    return NULL;
}

static char *set_mode(struct draft *draft, const struct order *order, const struct live_rules *live, char **told)
{
    const struct line_name name = {SECTION_WEIR, SLICE(""), SLICE("mode")};
    (void)live;
    if (!order_is_one_line(order->expression))
        return order_error("a mode is enforce or shadow");
    config_file_replace(&draft->file, &name, order->expression);
    bool is_shadow = slice_eq_nocase(split_trim(slice_str(order->expression)), SLICE("shadow"));
    *told = order_told("mode = %s", is_shadow ? "shadow" : "enforce");
    return NULL;
}

/* ---- orders ---- */

static char *(*const kinds[])(struct draft *draft, const struct order *order, const struct live_rules *live,
                              char **told) = {
    [ORDER_SET] = set,
    [ORDER_UNSET] = unset,
    [ORDER_SET_LIMIT] = set_limit,
    [ORDER_MODE] = set_mode,
};

bool draft_is_for(const struct order *order)
{
    return order->kind < sizeof kinds / sizeof kinds[0] && kinds[order->kind] != NULL;
}

char *draft_change(struct draft *draft, const struct order *order, const struct live_rules *live, char **told)
{
    return kinds[order->kind](draft, order, live, told);
}
