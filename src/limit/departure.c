#include "limit/departure.h"

static void set(struct funnel *word, uint64_t ns)
{
    atomic_store_explicit(&word->tat_ns, ns, memory_order_relaxed);
}

static uint64_t word(const struct departure *departure, enum departure_word which)
{
    return funnel_word(departure->words[which]);
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t later(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

uint64_t departure_shift(const struct departure *departure, bool is_ahead)
{
    return less(word(departure, DEPARTURE_SHIFT), is_ahead ? word(departure, DEPARTURE_AHEAD) : 0);
}

struct queue_place departure_moved(struct queue_place place, uint64_t by_ns)
{
    return (struct queue_place){place.begin_ns + by_ns, place.end_ns + by_ns, place.due_ns + by_ns};
}

struct queue_place departure_ahead(const struct departure *departure, uint64_t span_ns, uint64_t burst_ns,
                                   uint64_t now_ns)
{
    uint64_t begin_ns = later(word(departure, DEPARTURE_LAST), word(departure, DEPARTURE_FRONT));
    begin_ns = later(later(begin_ns, now_ns), less(now_ns + burst_ns, span_ns));
    return (struct queue_place){begin_ns, begin_ns + span_ns, less(begin_ns + span_ns, burst_ns)};
}

void departure_put_ahead(const struct departure *departure, const struct queue_place *place, uint64_t by_ns)
{
    set(departure->words[DEPARTURE_SHIFT], word(departure, DEPARTURE_SHIFT) + by_ns);
    set(departure->words[DEPARTURE_AHEAD], word(departure, DEPARTURE_AHEAD) + by_ns);
    set(departure->words[DEPARTURE_FRONT], place->end_ns);
}

void departure_pass(const struct departure *departure, const struct queue_place *place)
{
    set(departure->words[DEPARTURE_LAST], later(word(departure, DEPARTURE_LAST), place->end_ns));
}

uint64_t departure_until(const struct departure *departure, const struct queue_place *place)
{
    uint64_t free_ns = less(word(departure, DEPARTURE_GONE) + place->due_ns, place->begin_ns);
    return later(free_ns, place->due_ns);
}

/*
 * What leaves is charged as if it had begun a little earlier: by what it takes beyond the burst, since it has waited
 * for that, and by the slack, as far as the burst does not cover that.
 */
static uint64_t earliest_ns(const struct queue_place *place, uint64_t now_ns)
{
    uint64_t allowed_ns = less(place->due_ns + DEPARTURE_SLACK_NS, place->begin_ns);
    return less(now_ns, allowed_ns);
}

void departure_go(const struct departure *departure, const struct queue_place *place, uint64_t now_ns)
{
    uint64_t begin_ns = earliest_ns(place, now_ns);
    uint64_t gone_ns = word(departure, DEPARTURE_GONE);
    uint64_t last_ns = word(departure, DEPARTURE_LAST);
    gone_ns = later(gone_ns, begin_ns) + (place->end_ns - place->begin_ns);
    last_ns = later(last_ns, place->end_ns);
    uint64_t behind_ns = less(gone_ns, last_ns);
    if (behind_ns > 0) {
        set(departure->queue, funnel_word(departure->queue) + behind_ns);
        set(departure->words[DEPARTURE_SHIFT], word(departure, DEPARTURE_SHIFT) + behind_ns);
        set(departure->words[DEPARTURE_FRONT], word(departure, DEPARTURE_FRONT) + behind_ns);
    }
    set(departure->words[DEPARTURE_GONE], gone_ns);
    set(departure->words[DEPARTURE_LAST], last_ns + behind_ns);
}
