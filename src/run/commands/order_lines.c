#include "run/commands/order_lines.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/split.h"
#include "base/why.h"
#include "limit/policy/named_subject.h"
#include "run/commands/order_line.h"

#define WHY_ROOM 512

bool order_is_special(const struct order *order)
{
    return order->key != NULL || order->lives != NULL || order->until_ns > 0;
}

static char *check_subject(const struct order *order, const struct identity *identity)
{
    char why[WHY_ROOM];
    struct named_subject named;
    if (order->key == NULL || named_subject_read(&named, identity, slice_str(order->key), why, sizeof why))
        return NULL;
    return order_error("%s", why);
}

char *order_lines_set(const struct order *order, const struct line_name *name, const struct identity *identity,
                      struct set_lines *lines, uint64_t now_ns)
{
    struct slice expression = split_trim(slice_str(order->expression));
    struct set_line line = {.what = order->what, .subject = order->key};
    char *error = order_end(order, now_ns, &line.until_ns);
    if (error == NULL)
        error = check_subject(order, identity);
    if (error != NULL)
        return error;
    if (set_lines_find(lines, name->section, name->key, order->key) == NULL && lines->n >= SET_LINES_MAX)
        return order_error("there are already %d lines set for one subject or for a time: take some back, or let them "
                           "end (EX)",
                           SET_LINES_MAX);
    line.policy = mem_strndup(name->section.at, name->section.len);
    line.expression = mem_strndup(expression.at, expression.len);
    set_lines_put(lines, &line);
    free(line.policy);
    free(line.expression);
    return NULL;
}

char *order_lines_unset(const struct order *order, const struct line_name *name, struct set_lines *lines)
{
    if (!set_lines_drop(lines, name->section, name->key, order->key))
        return order_error("policy %.*s has no limit %s for %s", WHY_SLICE(name->section), order->what, order->key);
    return NULL;
}

char *order_lines_told(const struct order *order, const struct line_name *name, const char *before, const char *now)
{
    const char *for_word = order->key != NULL ? " for " : "", *subject = order->key != NULL ? order->key : "";
    char end[ORDER_END_ROOM];
    before = before != NULL ? before : "none";
    if (order->kind == ORDER_UNSET)
        return order_told("[policy %.*s] %s%s%s removed (before: %s; now: %s)", WHY_SLICE(name->section), order->what,
                          for_word, subject, before, now != NULL ? now : "none");
    return order_told("[policy %.*s] %s = %s%s%s%s (before: %s)", WHY_SLICE(name->section), order->what,
                      order->expression, for_word, subject, order_print_end(order, ", ends in ", end), before);
}
