/*
 * Converts the debts of a holder to other rates (subject_convert).
 *
 * Every time after now is scaled by the ratio of the two rates. A queue keeps its order, and each
 * position is retimed. Words are scaled at once. Positions are scaled when their commands are
 * looked at next (limit/queue.h), from records kept here while commands wait.
 *
 * If a limit no longer delays, its queue ends behind the last used position. The subject owes the
 * units of the commands that have left, and the positions of waiting commands become empty.
 */
#include <stdlib.h>

#include "limit/queue.h"
#include "limit/subject.h"

/*
 * chosen: largest number of records of one queue. Few suffice, since each worker looks at its
 * positions after every change of rates.
 */
#define RETIMINGS_MAX 16

/*
 * The value of subject->rates during a conversion. No policy has this table: other threads wait for
 * the lock.
 */
static struct rate_table converting;

/* ---- one debt ---- */

/* The converted word, at most `most_ns` after now. */
static uint64_t ahead(uint64_t word_ns, uint64_t now_ns, struct unit_time from, struct unit_time to,
                      uint64_t most_ns)
{
    if (word_ns <= now_ns)
        return word_ns;
    uint64_t debt_ns = debt_at(word_ns - now_ns, from, to);
    return now_ns + (debt_ns < most_ns ? debt_ns : most_ns);
}

static uint64_t conversion_less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/*
 * The most that is owed: one burst. A debt of bytes also includes the bytes that were in flight
 * when the debt stopped further bytes, unless a virtual clock charged them.
 */
static uint64_t most_owed_ns(const struct slot_rate *from, const struct slot_rate *to,
                             uint64_t debt_ns)
{
    uint64_t most_ns = slot_burst_ns(to);
    if (to->kind == SLOT_BYTES && from->queue == SLOT_QUEUE_NONE)
        most_ns += debt_at(conversion_less(debt_ns, slot_burst_ns(from)), slot_unit_time(from),
                           slot_unit_time(to));
    return most_ns < RATE_LONGEST_NS ? most_ns : RATE_LONGEST_NS;
}

/*
 * Converts one word. The converted debt is at most most_owed_ns plus `waiting_ns`, and at most
 * `used_ns`. A word always gets another value if the rate of the word changes. A thread that knows
 * only the old rate can then not charge the word. An exception is a debt of few ns that rounding up
 * leaves unchanged: a thread with the old rate may then charge too much, once.
 */
static void convert_word(struct funnel *funnel, const struct slot_rate *from,
                         const struct slot_rate *to, uint64_t now_ns, uint64_t waiting_ns,
                         uint64_t used_ns)
{
    uint64_t word_ns = funnel_peek(funnel);
    uint64_t next_ns;
    do {
        uint64_t most_ns = most_owed_ns(from, to, conversion_less(word_ns, now_ns)) + waiting_ns;
        most_ns = most_ns < used_ns ? most_ns : used_ns;
        next_ns = ahead(word_ns, now_ns, slot_unit_time(from), slot_unit_time(to), most_ns);
        if (word_ns <= now_ns)
            next_ns = word_ns > 0 ? word_ns - 1 : 1; /* still empty */
    } while (!funnel_replace(funnel, &word_ns, next_ns));
}

/* ---- a queue ---- */

static struct funnel *departure_word(struct subject *subject, uint16_t departures,
                                     enum departure_word which)
{
    return subject_find_funnel(subject, (uint16_t)(departures + which));
}

static void conversion_set(struct funnel *word, uint64_t ns)
{
    atomic_store_explicit(&word->tat_ns, ns, memory_order_relaxed);
}

const struct retiming *subject_retiming(const struct subject *subject, uint16_t departures,
                                        uint64_t number)
{
    const struct retiming *retiming = subject->retimings;
    while (retiming != NULL && (retiming->departures != departures || retiming->number != number))
        retiming = retiming->next;
    return retiming;
}

void retimings_free(struct retiming *retimings)
{
    while (retimings != NULL) {
        struct retiming *next = retimings->next;
        free(retimings);
        retimings = next;
    }
}

/* Drops the records of one queue except the latest `kept`. */
static void drop_retimings(struct subject *subject, uint16_t departures, unsigned kept)
{
    struct retiming **link = &subject->retimings;
    while (*link != NULL) {
        struct retiming *retiming = *link;
        if (retiming->departures != departures || kept > 0) {
            kept -= retiming->departures == departures;
            link = &retiming->next;
            continue;
        }
        *link = retiming->next;
        free(retiming);
    }
}

/* If memory is out, no record is kept, and the positions go to the end of the queue. */
static void remember_retiming(struct subject *subject, const struct retiming *model)
{
    drop_retimings(subject, model->departures, RETIMINGS_MAX - 1);
    struct retiming *retiming = malloc(sizeof *retiming);
    if (retiming == NULL)
        return;
    *retiming = *model;
    retiming->next = subject->retimings;
    subject->retimings = retiming;
}

static void convert_queue(struct subject *subject, struct funnel *queue,
                          const struct slot_rate *from, const struct slot_rate *to, uint64_t now_ns)
{
    static const enum departure_word times[] = {DEPARTURE_LAST, DEPARTURE_FRONT};
    struct unit_time before = slot_unit_time(from), after = slot_unit_time(to);
    if (departure_word(subject, to->departures, DEPARTURE_TIMED) == NULL)
        return; /* no decision has used this queue of the subject yet */
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        struct funnel *word = departure_word(subject, to->departures, times[i]);
        conversion_set(word, ahead(funnel_word(word), now_ns, before, after, RATE_LONGEST_NS));
    }
    struct funnel *gone = departure_word(subject, to->departures, DEPARTURE_GONE);
    conversion_set(gone, ahead(funnel_word(gone), now_ns, before, after,
                               slot_burst_ns(to) + DEPARTURE_SLACK_NS));
    struct funnel *timed = departure_word(subject, to->departures, DEPARTURE_TIMED);
    conversion_set(timed, funnel_word(timed) + 1);
    if (funnel_word(departure_word(subject, to->departures, DEPARTURE_WAITING)) == 0) {
        drop_retimings(subject, to->departures, 0);
        return;
    }
    const struct retiming retiming = {
        .number = funnel_word(timed),
        .at_ns = now_ns,
        .end_ns = funnel_word(queue),
        .shift_ns = funnel_word(departure_word(subject, to->departures, DEPARTURE_SHIFT)),
        .ahead_ns = funnel_word(departure_word(subject, to->departures, DEPARTURE_AHEAD)),
        .burst_ns = slot_burst_ns(to),
        .from = before,
        .to = after,
        .departures = to->departures,
    };
    remember_retiming(subject, &retiming);
}

/* ---- a holder ---- */

/* The time, at the new rate, of the units that commands wait for in the limit's queue. */
static uint64_t waiting_ns(struct subject *subject, const struct slot_rate *from,
                           const struct slot_rate *to)
{
    const struct funnel *waiting = from->queue == SLOT_QUEUE && to->queue == SLOT_QUEUE
                                       ? departure_word(subject, to->departures, DEPARTURE_WAITING)
                                       : NULL;
    return waiting != NULL
               ? debt_at(funnel_word(waiting), (struct unit_time){1, 1}, slot_unit_time(to))
               : 0;
}

/*
 * If a queue ends: the time of its used positions, at the new rate; otherwise UINT64_MAX. The debt
 * of an overflow subject is not cut below the burst: subjects that owed no more than this debt were
 * dropped.
 */
static uint64_t used_ns(struct subject *subject, const struct slot_rate *from,
                        const struct slot_rate *to, uint64_t now_ns)
{
    const struct funnel *last =
        from->queue == SLOT_QUEUE && to->queue != SLOT_QUEUE && !subject_is_overflow(subject)
            ? departure_word(subject, to->departures, DEPARTURE_LAST)
            : NULL;
    return last != NULL ? debt_at(conversion_less(funnel_word(last), now_ns), slot_unit_time(from),
                                  slot_unit_time(to))
                        : UINT64_MAX;
}

/* A queue begins: all current debt counts as departed. */
static void begin_queue(struct subject *subject, const struct funnel *queue, uint16_t departures)
{
    static const enum departure_word left[] = {DEPARTURE_GONE, DEPARTURE_LAST};
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
        struct funnel *word = departure_word(subject, departures, left[i]);
        if (word != NULL && funnel_word(word) < funnel_word(queue))
            conversion_set(word, funnel_word(queue));
    }
}

static void convert_slot(struct subject *subject, uint16_t slot, const struct slot_rate *from,
                         const struct slot_rate *to, uint64_t now_ns)
{
    struct funnel *funnel = subject_find_funnel(subject, slot);
    bool is_same_time = unit_time_is_same(slot_unit_time(from), slot_unit_time(to));
    /* the end of a queue, or of charges by virtual clocks */
    bool is_end = from->queue != SLOT_QUEUE_NONE && to->queue != from->queue;
    bool is_cut = to->rate.burst < from->rate.burst || is_end;
    if (funnel == NULL)
        return;
    if (!is_same_time || is_cut) {
        convert_word(funnel, from, to, now_ns, waiting_ns(subject, from, to),
                     used_ns(subject, from, to, now_ns));
        if (to->departures != SLOT_NOWHERE)
            convert_queue(subject, funnel, from, to, now_ns);
    }
    if (to->queue == SLOT_QUEUE && from->queue != SLOT_QUEUE)
        begin_queue(subject, funnel, to->departures);
}

void subject_convert(struct subject *subject, struct rate_table *table, uint64_t now_ns)
{
    struct rate_table *before = atomic_load_explicit(&subject->rates, memory_order_relaxed);
    uint16_t n = before != NULL && before->n < table->n ? before->n : table->n;
    atomic_store_explicit(&subject->rates, &converting, memory_order_relaxed);
    for (uint16_t slot = 0; before != NULL && slot < n; slot++)
        if (before->at[slot].kind != SLOT_OTHER && table->at[slot].kind != SLOT_OTHER)
            convert_slot(subject, slot, &before->at[slot], &table->at[slot], now_ns);
    atomic_store_explicit(&subject->rates, rate_table_get(table), memory_order_release);
    rate_table_put(before);
}
