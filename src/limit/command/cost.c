#include "limit/command/cost.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/slice.h"
#include "base/why.h"
#include "limit/command/keys.h"
#include "limit/command/own.h"
#include "limit/policy/rate.h"

/* What the units of a line are multiplied by. */
enum cost_per { PER_CALL, PER_KEY, PER_COST, COST_PERS };
static const char *const cost_pers[COST_PERS] = {"", "per key", "per cost"};

/* A line of [cost]. */
struct cost {
    const struct class *class;
    uint32_t units;
    uint8_t per; /* enum cost_per */
};

/* Parses "100", "2 per key", "1 per cost". */
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
           why_set(why, why_size, "\"%.*s\" is not a cost: write a number, or a number and \"per key\" or \"per cost\"",
                   WHY_SLICE(text));
}

/* The class of `what`. A command takes precedence over a class of the same name. */
static const struct class *costly(struct classes *classes, const struct command_table *known, struct slice what,
                                  char *why, size_t why_size)
{
    char text[COMMAND_NAME_MAX + sizeof "cmd."];
    if (what.len > COMMAND_NAME_MAX || command_by_name(known, what) == NULL)
        return class_find(classes, what, why, why_size);
    int len = snprintf(text, sizeof text, "cmd.%.*s", (int)what.len, what.at);
    return class_find(classes, slice_of(text, (size_t)len), why, why_size);
}

bool costs_add(struct costs *costs, struct classes *classes, const struct command_table *table, struct slice what,
               struct slice cost, char *why, size_t why_size)
{
    struct cost parsed = {.class = costly(classes, table, what, why, why_size)};
    if (parsed.class == NULL || !parse_cost(cost, &parsed, why, why_size))
        return false;
    if (costs->n == UINT16_MAX - 1)
        return why_set(why, why_size, "too many costs: at most %zu", costs->n);
    costs->at = mem_realloc(costs->at, costs->n + 1, sizeof parsed);
    costs->at[costs->n++] = parsed;
    return true;
}

void costs_bind(struct costs *costs, const struct command_table *table)
{
    free(costs->of);
    costs->n_of = costs->n > 0 ? command_table_count(table) : 0;
    costs->of = mem_zalloc(costs->n_of, sizeof *costs->of);
    for (size_t id = 0; id < costs->n_of; id++)
        for (size_t i = 0; i < costs->n; i++)
            if (class_has(costs->at[i].class, table, command_table_row(table, id)))
                costs->of[id] = (uint16_t)(i + 1);
}

void costs_fini(struct costs *costs, bool is_owner)
{
    free(costs->of);
    if (is_owner)
        free(costs->at);
}

static uint64_t cost_times(const struct cost *cost, const struct command *command, struct slice request, uint32_t argc)
{
    if (cost->per == PER_KEY)
        return keys_most(command, request, argc);
    return cost->per == PER_COST && command->own > 0 ? own_units(own_row(command->own - 1U), request) : 1;
}

uint64_t costs_units(const struct costs *costs, const struct command *command, struct slice request, uint32_t argc)
{
    uint16_t at = command->id < costs->n_of ? costs->of[command->id] : 0;
    if (at == 0)
        return 1;
    const struct cost *cost = &costs->at[at - 1];
    uint64_t n = cost_times(cost, command, request, argc), units;
    bool is_beyond = __builtin_mul_overflow(cost->units, n > 0 ? n : 1, &units) || units > INT64_MAX;
    return is_beyond ? INT64_MAX : units;
}
