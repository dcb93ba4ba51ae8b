#include "limit/queue.h"

static struct departure departure_of(struct subject *holder, uint16_t slot, uint16_t departures)
{
    struct departure departure = {.queue = subject_funnel(holder, slot)};
    for (unsigned i = 0; i < DEPARTURE_WORDS; i++)
        departure.words[i] = subject_funnel(holder, (uint16_t)(departures + i));
    return departure;
}

static struct departure departure_in(const struct queue *queue)
{
    return departure_of(queue->holder, queue->limit->slot, queue->limit->departures);
}

static struct departure departure_at(const struct kept_place *place)
{
    return departure_of(place->holder, place->slot, place->departures);
}

static struct kept_place place_in(const struct queue *queue, struct queue_place at, uint64_t units, bool is_ahead)
{
    const struct departure departure = departure_in(queue);
    return (struct kept_place){.holder = queue->holder,
                               .at = at,
                               .shift_ns = departure_shift(&departure, is_ahead),
                               .units = units,
                               .slot = queue->limit->slot,
                               .departures = queue->limit->departures,
                               .id = queue->limit->id,
                               .is_ahead = is_ahead};
}

static uint64_t span_of(const struct rate *rate, uint64_t units)
{
    return rate_is_fine(rate) ? rate_span_ns(rate, units) : funnel_queue_span(rate, units);
}

uint64_t queue_wait_ahead(const struct queue *queue, uint64_t units, uint64_t now_ns)
{
    const struct rate *rate = &queue->limit->rate;
    const struct departure departure = departure_in(queue);
    uint64_t last_ns = funnel_queue(departure.queue, rate, now_ns, units);
    if (last_ns == 0)
        return 0;
    const struct queue_place at = departure_ahead(&departure, span_of(rate, units), rate->burst_ns, now_ns);
    uint64_t until_ns = departure_until(&departure, &at);
    uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    return at.begin_ns < funnel_word(departure.queue) || wait_ns > last_ns ? wait_ns : last_ns;
}

struct kept_place queue_join_ahead(const struct queue *queue, uint64_t units, uint64_t now_ns)
{
    const struct rate *rate = &queue->limit->rate;
    const struct departure departure = departure_in(queue);
    uint64_t before_ns = funnel_word(departure.queue);
    struct queue_place at = departure_ahead(&departure, span_of(rate, units), rate->burst_ns, now_ns);
    uint64_t last_ns = funnel_queue(departure.queue, rate, now_ns, units);
    if (last_ns == 0 || at.begin_ns >= before_ns)
        return queue_join(queue, units, now_ns, last_ns);
    funnel_enqueue(departure.queue, rate, now_ns, units);
    departure_put_ahead(&departure, &at, funnel_word(departure.queue) - before_ns);
    return place_in(queue, at, units, true);
}

struct kept_place queue_join(const struct queue *queue, uint64_t units, uint64_t now_ns, uint64_t wait_ns)
{
    struct funnel *funnel = subject_funnel(queue->holder, queue->limit->slot);
    uint64_t before_ns = funnel_word(funnel);
    funnel_enqueue(funnel, &queue->limit->rate, now_ns, units);
    const struct queue_place at = {before_ns > now_ns ? before_ns : now_ns, funnel_word(funnel), now_ns + wait_ns};
    return place_in(queue, at, units, false);
}

struct kept_place queue_last(const struct queue *queue, uint64_t units)
{
    const struct rate *rate = &queue->limit->rate;
    uint64_t end_ns = funnel_word(subject_funnel(queue->holder, queue->limit->slot));
    uint64_t span_ns = span_of(rate, units);
    const struct queue_place at = {end_ns > span_ns ? end_ns - span_ns : 0, end_ns,
                                   end_ns > rate->burst_ns ? end_ns - rate->burst_ns : 0};
    return place_in(queue, at, units, false);
}

/* By how much the place has been moved since place->at was right. LIMIT FORGIVE may have set the words to 0. */
static uint64_t moved_by(const struct kept_place *place, const struct departure *departure)
{
    uint64_t shift_ns = departure_shift(departure, place->is_ahead);
    return shift_ns > place->shift_ns ? shift_ns - place->shift_ns : 0;
}

bool queue_look(struct kept_place *place)
{
    const struct departure departure = departure_at(place);
    uint64_t by_ns = moved_by(place, &departure);
    place->at = departure_moved(place->at, by_ns);
    place->shift_ns = departure_shift(&departure, place->is_ahead);
    return by_ns > 0;
}

uint64_t queue_until(const struct kept_place *place)
{
    const struct departure departure = departure_at(place);
    return departure_until(&departure, &place->at);
}

void queue_keep(struct kept_place *place)
{
    const struct departure departure = departure_at(place);
    departure_pass(&departure, &place->at);
    place->is_ahead = true;
    place->shift_ns = departure_shift(&departure, true);
}

void queue_go(const struct kept_place *place, uint64_t now_ns)
{
    const struct departure departure = departure_at(place);
    departure_go(&departure, &place->at, now_ns);
}

bool queue_leave(const struct kept_place *place)
{
    const struct departure departure = departure_at(place);
    const struct queue_place at = departure_moved(place->at, moved_by(place, &departure));
    return funnel_take_back(departure.queue, at.begin_ns, at.end_ns);
}
