#include "quota/numbers.h"

#include "base/clock.h"

/* A key under a penalty has "number left_us granted" in place of its first number. */
static void read_hold(int64_t *first, struct slice *error, struct quota_hold *hold)
{
    enum { NUMBER, LEFT_US, GRANTED, HELD_NUMBERS };
    int64_t held[HELD_NUMBERS];
    if (error->at == NULL || !answer_held(*error, held, HELD_NUMBERS) || held[LEFT_US] < 1 ||
        held[LEFT_US] > QUOTA_MOST || held[GRANTED] < 0)
        return;
    *first = held[NUMBER];
    *hold = (struct quota_hold){held[LEFT_US] * (int64_t)NS_PER_US, (uint64_t)held[GRANTED]};
    *error = slice_of(NULL, 0);
}

static bool read_key(struct answer *answer, const struct quota_ask *ask, int64_t *numbers, struct quota_hold *hold,
                     struct slice *error)
{
    unsigned n = quota_numbers(ask);
    for (unsigned i = 0; i < n; i++) {
        struct slice text = slice_of(NULL, 0);
        if (!answer_number(answer, &numbers[i], &text))
            return false;
        if (i == 0)
            read_hold(&numbers[0], &text, hold);
        *error = text.at != NULL ? text : *error;
    }
    return true;
}

bool quota_numbers_read(struct answer *answer, const struct quota_ask *ask, int64_t *numbers, struct quota_hold *holds,
                        struct slice *error)
{
    if (ask->n_parts == 0)
        return read_key(answer, ask, numbers, holds, error);
    for (unsigned p = 0; p < ask->n_parts; numbers += quota_numbers(&ask->parts[p]), p++)
        if (!read_key(answer, &ask->parts[p], numbers, &holds[p], error))
            return false;
    return true;
}
