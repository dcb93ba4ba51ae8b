#include "limit/command/own.h"

#include "resp/argv.h"

enum control { LIMITED, READING, CONTROL };
enum sender { ANYBODY, OPERATOR };

static const struct own rows[] = {
#define OWN(name_, arity_, class, sender, first, last, step, arguments_, summary_)                 \
    {.name = (name_),                                                                              \
     .arguments = (arguments_),                                                                    \
     .summary = (summary_),                                                                        \
     .arity = (arity_),                                                                            \
     .first_key = (first),                                                                         \
     .last_key = (last),                                                                           \
     .key_step = (step),                                                                           \
     .is_control = (class) == CONTROL,                                                             \
     .writes = (class) == LIMITED,                                                                 \
     .is_operators = (sender) == OPERATOR},
#include "limit/command/own.def"
#undef OWN
};

size_t own_count(void)
{
    return sizeof rows / sizeof rows[0];
}

const struct own *own_row(size_t i)
{
    return &rows[i];
}

const struct own *own_find(struct slice name)
{
    for (size_t i = 0; i < own_count(); i++)
        if (slice_eq_nocase(slice_str(rows[i].name), name))
            return &rows[i];
    return NULL;
}

/* ---- units of a call ---- */

/*
 * Parses as redis-cell does: a sign and leading zeros are allowed. Any other text, and any number
 * below 1, counts as 1.
 */
static uint64_t units_of(struct slice text)
{
    uint64_t units = 0;
    for (size_t i = text.len > 0 && text.at[0] == '+'; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return 1;
        if (__builtin_mul_overflow(units, UINT64_C(10), &units) ||
            __builtin_add_overflow(units, (uint64_t)(text.at[i] - '0'), &units))
            return UINT64_MAX;
    }
    return units > 0 ? units : 1;
}

static void skip(struct argv_walk *walk, int n)
{
    struct slice word;
    while (n > 0 && argv_next(walk, &word))
        n--;
}

/* Reads the quantity, which stands behind the mandatory arguments. */
static uint64_t quantity_of(const struct own *own, struct argv_walk *walk)
{
    struct slice word;
    skip(walk, -own->arity);
    return argv_next(walk, &word) ? units_of(word) : 1;
}

/*
 * True if a call may name several keys, each behind the name of an algorithm, with AND in between.
 */
static bool asks_several(const struct own *own)
{
    return strstr(own->arguments, "[AND ") != NULL;
}

/*
 * The COST of one key, read from the key's position up to the next key. Several COSTs are an error;
 * the last one counts.
 */
static uint64_t cost_of(struct argv_walk *walk, bool has_parts, bool *has_more)
{
    struct slice word;
    uint64_t units = 1;
    *has_more = false;
    while (!*has_more && argv_next(walk, &word))
        if (has_parts && slice_eq_nocase(word, SLICE("and")))
            *has_more = true;
        else if (slice_eq_nocase(word, SLICE("cost")) && argv_next(walk, &word))
            units = units_of(word);
    return units;
}

static uint64_t costs_of(const struct own *own, struct argv_walk *walk)
{
    uint64_t units = 0;
    bool has_more;
    skip(walk, own->last_key + 1);
    do {
        if (__builtin_add_overflow(units, cost_of(walk, asks_several(own), &has_more), &units))
            units = UINT64_MAX;
        skip(walk, has_more ? 2 : 0);
    } while (has_more);
    return units;
}

uint64_t own_units(const struct own *own, struct slice request)
{
    struct argv_walk walk;
    argv_walk_init(&walk, request);
    if (strstr(own->arguments, "[quantity:integer]") != NULL)
        return quantity_of(own, &walk);
    return strstr(own->arguments, "[COST n:integer]") != NULL ? costs_of(own, &walk) : 1;
}
