/*
 * The table of families, with those whose numbers need little reading: holders, and several keys, whose numbers stand
 * one behind the other.
 */
#include "quota/reading.h"

/* ---- holders ---- */

static unsigned holding_numbers(const struct quota_ask *ask)
{
    (void)ask;
    return HOLDERS_NUMBERS;
}

static bool holding_is_sane(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    (void)ask;
    (void)n;
    return quota_is_within(numbers[HOLDERS_GRANTED], 0, 1) && quota_is_within(numbers[HOLDERS_HELD], 0, QUOTA_MOST) &&
           quota_is_within(numbers[HOLDERS_RETRY_MS], -1, QUOTA_MOST);
}

/* ---- several keys ---- */

static unsigned parts_numbers(const struct quota_ask *ask)
{
    unsigned n = 0;
    for (unsigned p = 0; p < ask->n_parts; p++)
        n += quota_numbers(&ask->parts[p]);
    return n;
}

static bool parts_are_sane(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    for (unsigned p = 0; p < ask->n_parts; numbers += quota_numbers(&ask->parts[p]), p++)
        if (!quota_numbers_are_sane(&ask->parts[p], numbers, n))
            return false;
    return true;
}

uint64_t quota_part_fitting(const struct quota_ask *part, const int64_t *numbers, uint64_t n)
{
    return part->cost == 0 ? n : quota_granted(part, numbers, n);
}

static uint64_t parts_granted(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    for (unsigned p = 0; p < ask->n_parts; numbers += quota_numbers(&ask->parts[p]), p++) {
        uint64_t fitting = quota_part_fitting(&ask->parts[p], numbers, n);
        if (!ask->parts[p].is_shadow && fitting < n)
            n = fitting;
    }
    return n;
}

/* ---- the rows ---- */

static const struct reading *reading_of_holders(void)
{
    static const struct reading row = {.numbers = holding_numbers, .is_sane = holding_is_sane};
    return &row;
}

static const struct reading *reading_of_parts(void)
{
    static const struct reading row = {.numbers = parts_numbers, .is_sane = parts_are_sane, .granted = parts_granted};
    return &row;
}

const struct reading *quota_reading(const struct quota_ask *ask)
{
    static const struct reading *(*const rows[FAMILIES])(void) = {
        [FAMILY_FUNNEL] = reading_of_funnels,  [FAMILY_WARM] = reading_of_warmups,
        [FAMILY_WINDOW] = reading_of_windows,  [FAMILY_PARTS] = reading_of_parts,
        [FAMILY_HOLDING] = reading_of_holders,
    };
    return rows[quota_algorithm(ask->rule.kind)->family]();
}

unsigned quota_numbers(const struct quota_ask *ask)
{
    return quota_reading(ask)->numbers(ask);
}

uint64_t quota_tries(const struct quota_ask *ask, uint64_t n)
{
    uint64_t tries;
    if (ask->mode != QUOTA_PARTIAL || ask->cost == 0)
        return n;
    return __builtin_mul_overflow(n, (uint64_t)ask->cost, &tries) ? UINT64_MAX : tries;
}

bool quota_numbers_are_sane(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    return quota_reading(ask)->is_sane(ask, numbers, quota_tries(ask, n));
}

uint64_t quota_granted(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    uint64_t most = ask->is_peek && n > 1 ? 1 : quota_tries(ask, n);
    return quota_is_sure(ask) ? most : quota_reading(ask)->granted(ask, numbers, most);
}
