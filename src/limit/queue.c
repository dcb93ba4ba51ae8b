#include "limit/queue.h"

/* ---- departures ---- */

static void queue_set(struct funnel *word, uint64_t ns)
{
    atomic_store_explicit(&word->tat_ns, ns, memory_order_relaxed);
}

static uint64_t word(const struct departure *departure, enum departure_word which)
{
    return funnel_word(departure->words[which]);
}

static uint64_t queue_less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t queue_later(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

/*
 * Total time that positions have moved back since the start. With `is_ahead`, moves for commands
 * that joined at the head are left out.
 */
static uint64_t departure_shift(const struct departure *departure, bool is_ahead)
{
    return queue_less(word(departure, DEPARTURE_SHIFT),
                      is_ahead ? word(departure, DEPARTURE_AHEAD) : 0);
}

/* Returns the position, moved back by by_ns. */
static struct queue_position departure_moved(struct queue_position position, uint64_t by_ns)
{
    return (struct queue_position){position.begin_ns + by_ns, position.end_ns + by_ns,
                                   position.due_ns + by_ns};
}

/*
 * The position of length span_ns at the head: before all waiting commands, after all departures and
 * earlier joins at the head.
 */
static struct queue_position departure_ahead(const struct departure *departure, uint64_t span_ns,
                                             uint64_t burst_ns, uint64_t now_ns)
{
    uint64_t begin_ns =
        queue_later(word(departure, DEPARTURE_LAST), word(departure, DEPARTURE_FRONT));
    begin_ns = queue_later(queue_later(begin_ns, now_ns), queue_less(now_ns + burst_ns, span_ns));
    return (struct queue_position){begin_ns, begin_ns + span_ns,
                                   queue_less(begin_ns + span_ns, burst_ns)};
}

/*
 * A command takes the position at the head, and the positions behind it move back by by_ns. The
 * caller also moves the funnel by by_ns.
 */
static void departure_put_ahead(const struct departure *departure,
                                const struct queue_position *position, uint64_t by_ns)
{
    queue_set(departure->words[DEPARTURE_SHIFT], word(departure, DEPARTURE_SHIFT) + by_ns);
    queue_set(departure->words[DEPARTURE_AHEAD], word(departure, DEPARTURE_AHEAD) + by_ns);
    queue_set(departure->words[DEPARTURE_FRONT], position->end_ns);
}

/*
 * Notes that the position's command could leave, but waits in another queue. Later joins at the
 * head come behind this position.
 */
static void departure_pass(const struct departure *departure, const struct queue_position *position)
{
    queue_set(departure->words[DEPARTURE_LAST],
              queue_later(word(departure, DEPARTURE_LAST), position->end_ns));
}

/* The earliest time at which the command of this position may leave. */
static uint64_t departure_until(const struct departure *departure,
                                const struct queue_position *position)
{
    uint64_t free_ns =
        queue_less(word(departure, DEPARTURE_GONE) + position->due_ns, position->begin_ns);
    return queue_later(free_ns, position->due_ns);
}

/*
 * The time from which a departure is charged, a little before now_ns. The difference is the cost
 * beyond the burst, for which the command has waited, plus the slack that the burst does not cover.
 */
static uint64_t earliest_ns(const struct queue_position *position, uint64_t now_ns)
{
    uint64_t allowed_ns = queue_less(position->due_ns + DEPARTURE_SLACK_NS, position->begin_ns);
    return queue_less(now_ns, allowed_ns);
}

/* Notes that the command of the position leaves. */
static void departure_go(const struct departure *departure, const struct queue_position *position,
                         uint64_t now_ns)
{
    uint64_t begin_ns = earliest_ns(position, now_ns);
    uint64_t gone_ns = word(departure, DEPARTURE_GONE);
    uint64_t last_ns = word(departure, DEPARTURE_LAST);
    gone_ns = queue_later(gone_ns, begin_ns) + (position->end_ns - position->begin_ns);
    last_ns = queue_later(last_ns, position->end_ns);
    uint64_t behind_ns = queue_less(gone_ns, last_ns);
    if (behind_ns > 0) {
        queue_set(departure->queue, funnel_word(departure->queue) + behind_ns);
        queue_set(departure->words[DEPARTURE_SHIFT], word(departure, DEPARTURE_SHIFT) + behind_ns);
        queue_set(departure->words[DEPARTURE_FRONT], word(departure, DEPARTURE_FRONT) + behind_ns);
    }
    queue_set(departure->words[DEPARTURE_GONE], gone_ns);
    queue_set(departure->words[DEPARTURE_LAST], last_ns + behind_ns);
}

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

static struct departure departure_at(const struct kept_position *position)
{
    return departure_of(position->holder, position->slot, position->departures);
}

static struct kept_position position_in(const struct queue *queue, struct queue_position at,
                                        uint64_t units, bool is_ahead)
{
    const struct departure departure = departure_in(queue);
    return (struct kept_position){.holder = queue->holder,
                                  .at = at,
                                  .shift_ns = departure_shift(&departure, is_ahead),
                                  .timed = funnel_word(departure.words[DEPARTURE_TIMED]),
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
    const struct rate *rate = subject_rate(queue->holder, queue->limit);
    const struct departure departure = departure_in(queue);
    uint64_t last_ns = funnel_queue(departure.queue, rate, now_ns, units);
    if (last_ns == 0)
        return 0;
    const struct queue_position at =
        departure_ahead(&departure, span_of(rate, units), rate->burst_ns, now_ns);
    uint64_t until_ns = departure_until(&departure, &at);
    uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    return at.begin_ns < funnel_word(departure.queue) || wait_ns > last_ns ? wait_ns : last_ns;
}

struct kept_position queue_join_ahead(const struct queue *queue, uint64_t units, uint64_t now_ns)
{
    const struct rate *rate = subject_rate(queue->holder, queue->limit);
    const struct departure departure = departure_in(queue);
    uint64_t before_ns = funnel_word(departure.queue);
    struct queue_position at =
        departure_ahead(&departure, span_of(rate, units), rate->burst_ns, now_ns);
    uint64_t last_ns = funnel_queue(departure.queue, rate, now_ns, units);
    if (last_ns == 0 || at.begin_ns >= before_ns)
        return queue_join(queue, units, now_ns, last_ns);
    funnel_enqueue(departure.queue, rate, now_ns, units);
    departure_put_ahead(&departure, &at, funnel_word(departure.queue) - before_ns);
    return position_in(queue, at, units, true);
}

struct kept_position queue_join(const struct queue *queue, uint64_t units, uint64_t now_ns,
                                uint64_t wait_ns)
{
    struct funnel *funnel = subject_funnel(queue->holder, queue->limit->slot);
    uint64_t before_ns = funnel_word(funnel);
    funnel_enqueue(funnel, subject_rate(queue->holder, queue->limit), now_ns, units);
    const struct queue_position at = {before_ns > now_ns ? before_ns : now_ns, funnel_word(funnel),
                                      now_ns + wait_ns};
    return position_in(queue, at, units, false);
}

struct kept_position queue_last(const struct queue *queue, uint64_t units)
{
    const struct rate *rate = subject_rate(queue->holder, queue->limit);
    uint64_t end_ns = funnel_word(subject_funnel(queue->holder, queue->limit->slot));
    uint64_t span_ns = span_of(rate, units);
    const struct queue_position at = {end_ns > span_ns ? end_ns - span_ns : 0, end_ns,
                                      end_ns > rate->burst_ns ? end_ns - rate->burst_ns : 0};
    return position_in(queue, at, units, false);
}

/*
 * Moves the position back, until its total shift is shift_ns. LIMIT FORGIVE may have reset the
 * total to 0.
 */
static bool queue_move(struct kept_position *position, uint64_t shift_ns)
{
    uint64_t by_ns = queue_less(shift_ns, position->shift_ns);
    position->at = departure_moved(position->at, by_ns);
    position->shift_ns = shift_ns;
    return by_ns > 0;
}

/* The position that ends at end_ns, at the current rate of the queue. */
static struct queue_position position_until(uint64_t end_ns, uint64_t span_ns, uint64_t burst_ns)
{
    return (struct queue_position){queue_less(end_ns, span_ns), end_ns,
                                   queue_less(end_ns, burst_ns)};
}

/*
 * Applies all rate changes since the last look to the position. True if the rate has changed since
 * the last look.
 */
static bool retime(struct kept_position *position, const struct departure *departure)
{
    uint64_t timed = funnel_word(departure->words[DEPARTURE_TIMED]);
    bool is_timed_anew = position->timed < timed;
    while (position->timed < timed) {
        const struct retiming *how =
            subject_retiming(position->holder, position->departures, position->timed + 1);
        uint64_t span_ns = position->at.end_ns - position->at.begin_ns;
        if (how == NULL) { /* the change is no longer recorded: the position goes to the end */
            position->at = position_until(funnel_word(departure->queue), span_ns,
                                          position->at.end_ns - position->at.due_ns);
            position->timed = timed;
            break;
        }
        (void)queue_move(position, how->shift_ns - (position->is_ahead ? how->ahead_ns : 0));
        uint64_t end_ns = position->at.end_ns;
        if (end_ns > how->at_ns)
            end_ns = how->at_ns + debt_at(end_ns - how->at_ns, how->from, how->to);
        end_ns = end_ns < how->end_ns ? end_ns : how->end_ns;
        position->at = position_until(end_ns, debt_at(span_ns, how->from, how->to), how->burst_ns);
        position->timed++;
    }
    return is_timed_anew;
}

static bool look(struct kept_position *position, const struct departure *departure)
{
    bool is_timed_anew = retime(position, departure);
    return queue_move(position, departure_shift(departure, position->is_ahead)) || is_timed_anew;
}

bool queue_look(struct kept_position *position)
{
    const struct departure departure = departure_at(position);
    return look(position, &departure);
}

uint64_t queue_until(const struct kept_position *position)
{
    const struct departure departure = departure_at(position);
    return departure_until(&departure, &position->at);
}

void queue_keep(struct kept_position *position)
{
    const struct departure departure = departure_at(position);
    departure_pass(&departure, &position->at);
    position->is_ahead = true;
    position->shift_ns = departure_shift(&departure, true);
}

void queue_go(const struct kept_position *position, uint64_t now_ns)
{
    const struct departure departure = departure_at(position);
    departure_go(&departure, &position->at, now_ns);
}

/* No command waits: the queue now ends behind the last used position. */
static void queue_cut(const struct departure *departure)
{
    uint64_t end_ns = funnel_word(departure->words[DEPARTURE_LAST]);
    uint64_t word_ns = funnel_peek(departure->queue);
    while (word_ns > end_ns && !funnel_replace(departure->queue, &word_ns, end_ns))
        continue;
}

void queue_leave(const struct kept_position *position)
{
    const struct departure departure = departure_at(position);
    struct kept_position now = *position;
    if (!subject_has_queue(position->holder, position->slot))
        return; /* the position became empty when the queue ended */
    (void)look(&now, &departure);
    uint64_t begin_ns = funnel_word(departure.words[DEPARTURE_LAST]);
    begin_ns = begin_ns > now.at.begin_ns ? begin_ns : now.at.begin_ns;
    if (begin_ns < now.at.end_ns)
        (void)funnel_take_back(departure.queue, begin_ns, now.at.end_ns);
    if (gauge_value(departure.words[DEPARTURE_WAITING]) == 0)
        queue_cut(&departure);
}

void queue_wait(const struct kept_position *position)
{
    const struct departure departure = departure_at(position);
    struct funnel *last = departure.words[DEPARTURE_LAST];
    if (gauge_value(departure.words[DEPARTURE_WAITING]) == 0 &&
        funnel_word(last) < position->at.begin_ns)
        atomic_store_explicit(&last->tat_ns, position->at.begin_ns, memory_order_relaxed);
    gauge_add(departure.words[DEPARTURE_WAITING], position->units);
}

void queue_wait_no_more(const struct kept_position *position)
{
    struct funnel *waiting =
        subject_funnel(position->holder, (uint16_t)(position->departures + DEPARTURE_WAITING));
    gauge_take(waiting,
               position->units < gauge_value(waiting) ? position->units : gauge_value(waiting));
}
