#include "upstream/lane/deliver.h"

#include <string.h>

#include "limit/command/command.h"
#include "upstream/lane/unsolicited.h"
#include "upstream/lane/calls.h"
#include "upstream/lane/own_words.h"
#include "upstream/lane/passthrough_end.h"
#include "upstream/lane/slow_reader.h"
#include "upstream/node/not_run.h"

static struct call *oldest(struct lane *lane)
{
    return calls_is_empty(&lane->calls) ? NULL : calls_oldest(&lane->calls);
}

static void wake_if_idle(struct lane_user *lane_user)
{
    if (lane_user->in_flight > 0 || !lane_user->wants_idle)
        return;
    lane_user->wants_idle = false;
    lane_user_resume(lane_user, LANE_USER_HAS_REPLIES);
}

/* Wakes a lane user if its client has closed its side, and the oldest call may wait in Redis. */
static void wake_if_gone(const struct lane *lane, struct lane_user *lane_user)
{
    if (lane_user->is_gone && lane_waits(lane))
        link_wake(lane_user_link(lane_user));
}

/*
 * Stops counting the work of a lane user if the oldest call may wait in Redis. Redis does not work
 * on the calls behind a waiting call.
 */
static void forget_if_waits(const struct lane *lane, const struct lane_user *lane_user)
{
    if (lane_user->sender != 0 && lane_waits(lane))
        lane_discount(lane, calls_oldest(&lane->calls)->lane_user);
}

/* True if pushes are possible at all. */
static bool may_push(const struct lane *lane)
{
    return lane->key.protocol == 3;
}

/*
 * True if the owner may have asked for pushes, or another connection may redirect invalidations to
 * this lane.
 */
static bool wants_push(const struct lane *lane)
{
    return lane->owner != NULL &&
           (lane->beside != BESIDE_NOTHING || lane->is_not_reusable || lane_is_untrusted(lane) ||
            (lane->is_listed && owned_is_pointed_at(lane_node(lane)->owned, lane->id)));
}

/*
 * The reply that ends a run of the lane user has been passed on. Pushes that follow at once belong
 * to the run.
 */
static void end_run(struct lane *lane, struct lane_user *lane_user)
{
    if (lane_is_monitoring(lane) || (may_push(lane) && wants_push(lane)))
        lane->ends_run = RUN_ENDS_WITH_PUSHES;
    else
        lane_user->ops->on_run_end(lane_user);
}

static void finish_oldest(struct lane *lane)
{
    struct call done = *calls_oldest(&lane->calls);
    calls_pop(&lane->calls);
    if (lane->state == LANE_RETIRED && calls_is_empty(&lane->calls))
        lane->base->ops->on_emptied(lane);
    if (done.lane_user == NULL)
        return;
    if (--done.lane_user->in_flight == 0)
        done.lane_user->sent_parts = 0;
    if (done.counted != 0)
        done.lane_user->ops->on_counted(done.lane_user, done.counted);
    if ((done.flags & CALL_ENDS_RUN) != 0)
        end_run(lane, done.lane_user);
    wake_if_idle(done.lane_user);
    wake_if_gone(lane, done.lane_user);
    forget_if_waits(lane, done.lane_user);
}

/* `n` requests of the oldest call are no longer in flight. */
static inline void note_ended(struct lane *lane, const struct call *call, uint32_t n)
{
    inflight_end(&lane->base->counts, call, n);
    if (call->lane_user != NULL && call->lane_user->sender != 0)
        fair_answered(fair_sender(lane->base->fair, call->lane_user->sender), n, call->sent_ns,
                      link_loop(&lane->link)->now_ns);
}

/* `n` requests of the oldest call have been answered. */
static void deliver_note_answered(struct lane *lane, const struct call *call, uint32_t n)
{
    bool is_timed =
        call->lane_user != NULL && call->arrived_ns != 0 && (call->flags & CALL_MAY_WAIT) == 0;
    note_ended(lane, call, n);
    if (is_timed)
        call->lane_user->ops->on_timed(call->lane_user, call, n);
    tags_drop(&lane->tags, n);
}

/*
 * `n` errors have answered requests of the oldest call. Requests of weir's own, which are not
 * timed, do not count.
 */
static inline void count_errors(struct lane *lane, const struct call *call, uint32_t n)
{
    if (n > 0 && call->arrived_ns != 0)
        count_add(&lane->base->counts.error_replies, n);
}

/*
 * True if these bytes may say that the server is a replica. A script can forge the error of a
 * replica, and a value can contain the text. The bytes are therefore only a reason to probe the
 * node's role.
 */
static bool may_be_replica(struct slice bytes)
{
    static const struct slice words[] = {
        {"-READONLY ", 10}, {"-UNBLOCKED ", 11}, {"-MASTERDOWN ", 12}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (memmem(bytes.at, bytes.len, words[i].at, words[i].len) != NULL)
            return true;
    return false;
}

static inline void note_errors(struct lane *lane, struct slice bytes, uint32_t n)
{
    if (n > 0 && may_be_replica(bytes))
        lane->base->ops->on_doubted(lane);
}

static bool deliver_is_plain(struct lane *lane)
{
    const struct call *call = oldest(lane);
    return call != NULL && lane->beside == BESIDE_NOTHING && call_is_plain(call);
}

static inline void note_progress(struct lane *lane, enum scan_result result, size_t used)
{
    if (result == SCAN_FRAME) {
        lane->frame_bytes = 0;
        lane->lag = LAG_NONE;
        return;
    }
    lane->frame_bytes += used;
}

/*
 * True if the frame that begins with these bytes may say that Redis did not run the oldest call.
 * False if the call's lane user cannot take the call back.
 */
static bool may_be_refusal(const struct lane *lane, struct slice bytes)
{
    if (bytes.at[0] != '-' || calls_is_empty(&lane->calls))
        return false;
    const struct call *call = calls_oldest(&lane->calls);
    return call->flow == FLOW_ONE && call->lane_user != NULL &&
           call->lane_user->ops->on_not_run != NULL &&
           not_run_look(bytes, lane->base->worker_lanes->upstream->is_cluster).sight != NOT_RUN_NO;
}

/*
 * True if the next frame cannot be passed on together with plain replies. The frame is a push, or
 * an error that may return the call to its lane user.
 */
static inline bool is_apart(const struct lane *lane, const char *p, const char *end)
{
    return *p == '>' ||
           (*p == '-' && lane->keeps && may_be_refusal(lane, slice_of(p, (size_t)(end - p))));
}

/*
 * Like reply_scan_plain. With lane.keeps, refused calls may go back to their lane user. The scan
 * then stops before a push, and before an error that may return a call.
 */
static uint32_t scan_plain(struct lane *lane, const char *p, const char *end, uint32_t most,
                           size_t *used)
{
    if (!lane->keeps)
        return reply_scan_plain(&lane->scan, p, (size_t)(end - p), most, used);
    uint32_t n = 0;
    size_t one;
    *used = 0;
    while (n < most && p < end && (n == 0 || !is_apart(lane, p, end)) &&
           reply_scan_plain(&lane->scan, p, (size_t)(end - p), 1, &one) > 0) {
        n++;
        p += one;
        *used += one;
    }
    return n;
}

/*
 * Take all plain replies of the oldest call that have arrived, as one piece. Returns the end of the
 * piece; NULL: the lane is closed.
 */
static const char *take_plain(struct lane *lane, const char *p, const char *end)
{
    const char *start = p;
    struct call *call = calls_oldest(&lane->calls);
    enum scan_result result = SCAN_FRAME;
    size_t used;
    uint32_t n_before = call->n;
    uint32_t errors_before = lane->scan.errors;
    uint32_t n_plain = scan_plain(lane, p, end, call->n, &used);
    if (n_plain > 0)
        note_progress(lane, SCAN_FRAME, used);
    call->n -= n_plain;
    p += used;
    while (call->n > 0 && p < end &&
           (p == start || result == SCAN_MORE ||
            !(lane->frame_bytes == 0 && is_apart(lane, p, end)))) {
        result = reply_scan(&lane->scan, p, (size_t)(end - p), &used);
        if (result == SCAN_BAD) {
            lane_fail(lane, END_NONSENSE, "it broke the protocol");
            return NULL;
        }
        p += used;
        call->n -= result == SCAN_FRAME;
        note_progress(lane, result, used);
    }
    count_errors(lane, call, lane->scan.errors - errors_before);
    note_errors(lane, slice_of(start, (size_t)(p - start)), lane->scan.errors - errors_before);

    bool is_answered = call->n == 0;
    struct lane_user *lane_user = call->lane_user;
    if (call->n < n_before)
        deliver_note_answered(lane, call, n_before - call->n);
    if (lane_user != NULL) {
        lane_charge_bytes(lane, lane_user, (size_t)(p - start));
        lane_user->ops->on_bytes(lane_user, start, (size_t)(p - start));
    }
    if (lane_is_closed(lane))
        return NULL;
    if (lane_user != NULL && lane_is_in_frame(lane))
        slow_reader_look(lane, lane_user);
    if (is_answered)
        finish_oldest(lane);
    return p;
}

/*
 * n bytes for the lane user of the oldest call, or for the owner, are thrown away. The lane user is
 * still charged for the bytes.
 */
static void note_unheard(struct lane *lane, size_t n)
{
    struct call *call = oldest(lane);
    struct lane_user *lane_user = lane->owner != NULL ? lane->owner
                                  : call != NULL      ? call->lane_user
                                                      : NULL;
    if (lane_user == NULL || lane_user->ops->on_unheard == NULL ||
        (call != NULL && call->arrived_ns == 0))
        return; /* a call of weir's own */
    lane_user->counted = call != NULL ? call->counted : 0;
    lane_user->ops->on_unheard(lane_user, n);
    lane_user->counted = 0;
    if (!lane_is_closed(lane) && lane_is_in_frame(lane))
        slow_reader_look(lane, lane_user);
}

static void note_reply(struct lane *lane, const struct call *call)
{
    if (glimpse_type(&lane->glimpse) != '+')
        return;
    if (call->flow == FLOW_MONITOR)
        lane_note_monitor(lane);
    if (call->effect == EFFECT_RESET && glimpse_starts(&lane->glimpse, SLICE("+RESET")))
        lane_end_subscriptions(lane);
}

/*
 * The nonce's reply has arrived. False: another reply has arrived instead, the earlier replies are
 * untrusted, and the lane is closed.
 */
static bool check_nonce(struct lane *lane)
{
    lane_end_question(lane);
    if (nonce_is_answered(&lane->nonce, &lane->glimpse))
        return true;
    lane_fail(lane, END_NONSENSE, "its replies do not match the requests");
    return false;
}

/* True for weir's HELLO, which asks for the connection's id. `call` may be NULL. */
static bool tells_id(const struct call *call)
{
    return call != NULL && call->effect == EFFECT_ID;
}

/*
 * True if a server that became a replica has ended a blocked command. Redis closes the lane's
 * connection behind the error -UNBLOCKED (disconnectOrRedirectAllBlockedClients). If weir took the
 * lane back first, the client would stay connected. weir therefore closes the client's connection
 * at once.
 */
static bool is_ended_by_role(const struct lane *lane, const struct call *call)
{
    /*
     * a cluster's blocked commands are sent again to the slot's new master: front/cluster/carry.h
     */
    bool is_sent_again = lane->base->worker_lanes->upstream->is_cluster;
    return !is_sent_again && lane->role == LANE_PRIVATE && (call->flags & CALL_MAY_WAIT) != 0 &&
           glimpse_starts(&lane->glimpse, SLICE("-UNBLOCKED force unblock"));
}

/* The oldest call has been answered. False: the lane is closed. */
static bool end_call(struct lane *lane, const struct call *call)
{
    deliver_note_answered(lane, call, 1);
    if ((call->flags & CALL_NONCE) != 0 && !check_nonce(lane))
        return false;
    if ((call->flags & CALL_VOUCHES) != 0)
        lane->base->ops->on_vouched(lane);
    if ((call->flags & CALL_ADMITS) != 0 && glimpse_type(&lane->glimpse) != '-')
        /* done before any client sees the reply, and even if the lane user has left */
        node_end_auth_generation(lane_node(lane));
    if (tells_id(call))
        lane->id = greeting_id(bytes_slice(&lane->held));
    if ((call->flags & CALL_LOOK) != 0 && call->lane_user != NULL)
        call->lane_user->ops->on_answer(call->lane_user, call, &lane->glimpse);
    if (lane_is_closed(lane))
        return false;
    if (is_ended_by_role(lane, call)) {
        lane_fail(lane, END_LOST, "it has become a replica, and unblocks its clients");
        return false;
    }
    finish_oldest(lane);
    return true;
}

static bool tell_run_end(struct lane *lane)
{
    lane->ends_run = RUN_GOES_ON;
    lane->owner->ops->on_run_end(lane->owner);
    return !lane_is_closed(lane);
}

/*
 * A frame that answers no call has arrived in full. Ends a run that waited for the end of the
 * frame, and resumes an owner that waits for the end of its replies. False: the lane is closed.
 */
static bool end_unsolicited(struct lane *lane)
{
    if (lane->ends_run == RUN_ENDS_WITH_FRAME && !tell_run_end(lane))
        return false;
    if (lane->owner != NULL)
        wake_if_idle(lane->owner);
    return true;
}

/* Count the frame that has just ended against the oldest call. False: the lane is closed. */
static bool end_frame(struct lane *lane)
{
    /* a call may have been sent since the frame began */
    struct call *call = lane->framing == FRAMING_UNSOLICITED ? NULL : oldest(lane);
    bool is_list = lane->scan.kind == '>' || lane->scan.kind == '*';
    struct slice word = is_list ? glimpse_first_bulk(&lane->glimpse) : slice_of(NULL, 0);
    bool confirms = unsolicited_is_confirmed(call);
    uint32_t *count = confirms ? unsolicited_confirmed(lane, word) : NULL;
    bool is_unasked = unsolicited_ends_unasked(lane, call, word);
    lane->errs_late = count == &lane->shard_channels;

    if (is_unasked) {
        unsolicited_note_confirmation(lane, &lane->shard_channels);
        return end_unsolicited(lane);
    }
    if (count != NULL) {
        /* UNSUBSCRIBE of everything: one frame for each channel, or one frame without channels */
        if (call->n == 0)
            call->n = *count > 0 ? *count : 1;
        unsolicited_note_confirmation(lane, count);
        call->n--;
    } else if (unsolicited_is(lane, word)) {
        return end_unsolicited(lane);
    } else if (call == NULL) {
        lane_fail(lane, END_NONSENSE, "it sent a reply without a request");
        return false;
    } else {
        note_reply(lane, call);
        count_errors(lane, call, scan_is_error(lane->scan.kind) && lane->framing != FRAMING_MUTED);
        note_errors(lane, slice_of(lane->glimpse.head, lane->glimpse.n_head),
                    scan_is_error(lane->scan.kind));
        call->n = confirms ? 0 : call->n - 1;
    }

    if (call->n == 0)
        return end_call(lane, call);
    if (call->flow == FLOW_ONE) /* one call of a run */
        deliver_note_answered(lane, call, 1);
    return true;
}

static bool is_unheard(const struct call *call, char type)
{
    return (call->flags & (type == '-' ? CALL_MUTE_ERROR : CALL_MUTE_UNLESS_ERROR)) != 0;
}

/*
 * True if a frame that answers no call may begin with this byte. The owner would take any other
 * frame for the reply to a request that waits in weir.
 */
static bool may_come_unsolicited(const struct lane *lane, char type)
{
    if (type == '>')
        return may_push(lane);
    return lane->owner != NULL && ((type == '*' && lane->beside != BESIDE_NOTHING) ||
                                   (type == '+' && lane_is_monitoring(lane)));
}

/* False: no frame may arrive now. */
static bool begin_frame(struct lane *lane, struct slice head)
{
    char type = head.at[0];
    const struct call *call = oldest(lane);
    if (!may_come_unsolicited(lane, type) && (type == '>' || call == NULL)) {
        lane_fail(lane, END_NONSENSE, "it sent a reply without a request");
        return false;
    }
    glimpse_reset(&lane->glimpse);
    if (tells_id(call))
        lane->held.len = 0;
    if (call != NULL && !unsolicited_may_be_message(lane, head) && is_unheard(call, type))
        lane->framing = FRAMING_MUTED;
    return true;
}

/* Take one frame, or the piece that has arrived. Returns like take_plain. */
static const char *take_flow(struct lane *lane, const char *p, const char *end)
{
    if (!lane_is_in_frame(lane) && !begin_frame(lane, slice_of(p, (size_t)(end - p))))
        return NULL;
    size_t used;
    enum scan_result result = reply_scan(&lane->scan, p, (size_t)(end - p), &used);
    if (result == SCAN_BAD) {
        lane_fail(lane, END_NONSENSE, "it broke the protocol");
        return NULL;
    }
    glimpse_feed(&lane->glimpse, p, used);
    note_progress(lane, result, used);
    const struct call *call = oldest(lane);
    if (tells_id(call) && !bytes_add(&lane->held, slice_of(p, used), GREETED_MAX))
        lane->held.len = 0; /* the answer is too long, or memory is out: the id stays unknown */
    if (lane->framing != FRAMING_MUTED) {
        struct lane_user *lane_user =
            lane->owner != NULL ? lane->owner : calls_oldest(&lane->calls)->lane_user;
        if (lane_user != NULL) {
            lane_user->counted =
                calls_is_empty(&lane->calls) ? 0 : calls_oldest(&lane->calls)->counted;
            lane_charge_bytes(lane, lane_user, used);
            lane_user->ops->on_bytes(lane_user, p, used);
            lane_user->counted = 0;
        }
        if (lane_is_closed(lane))
            return NULL;
        if (lane_user != NULL && lane_is_in_frame(lane))
            slow_reader_look(lane, lane_user);
    } else {
        note_unheard(lane, used);
        if (lane_is_closed(lane))
            return NULL;
    }
    if (result == SCAN_FRAME && !end_frame(lane))
        return NULL;
    return p + used;
}

static const char *take_passthrough(struct lane *lane, const char *p, const char *end)
{
    const struct slice bytes = slice_of(p, (size_t)(end - p));
    if (lane->state == LANE_ENDING)
        passthrough_end_take(lane, bytes);
    else
        lane->owner->ops->on_bytes(lane->owner, bytes.at, bytes.len);
    return NULL;
}

/* Drop a frame, for example a line of MONITOR about a command of weir's own. */
static const char *take_unheard(struct lane *lane, const char *p, const char *end)
{
    size_t used;
    enum scan_result result = reply_scan(&lane->scan, p, (size_t)(end - p), &used);
    if (result == SCAN_BAD) {
        lane_fail(lane, END_NONSENSE, "it broke the protocol");
        return NULL;
    }
    note_progress(lane, result, used);
    return p + used;
}

/*
 * Drop and count a push that no client has asked for, or a second answer to SUNSUBSCRIBE
 * (lane.errs_late).
 */
static const char *take_dropped(struct lane *lane, const char *p, const char *end)
{
    const char *next = take_unheard(lane, p, end);
    lane->errs_late = false;
    if (next != NULL && !lane_is_in_frame(lane))
        count_add(&lane->base->counts.pushes_dropped, 1);
    return next;
}

/* True if the lane user of the call needs each frame reported apart. */
static bool wants_frames(const struct call *call)
{
    return call->lane_user != NULL && call->lane_user->is_returning;
}

/* Returns how to take a frame that begins with these bytes, and is no refusal. */
static inline enum lane_framing framing_of(struct lane *lane, struct slice bytes)
{
    const struct call *call = oldest(lane);
    bool is_push = bytes.at[0] == '>';
    if (unsolicited_is_monitored(lane, bytes) && own_words_in_line(bytes))
        return FRAMING_OWN_WORDS;
    if (call == NULL && lane->errs_late && bytes.at[0] == '-')
        return FRAMING_DROPPED;
    if (is_push && may_push(lane) && !wants_push(lane))
        return FRAMING_DROPPED;
    if (!is_push && deliver_is_plain(lane) && !(lane->keeps && wants_frames(call)))
        return FRAMING_PLAIN;
    return call != NULL ? FRAMING_REPLY : FRAMING_UNSOLICITED;
}

/*
 * Take the frame, or the piece that has arrived, as framing_of has chosen. Returns like take_plain.
 */
static inline const char *take_framed(struct lane *lane, const char *p, const char *end)
{
    switch ((enum lane_framing)lane->framing) {
    case FRAMING_PLAIN:
        return take_plain(lane, p, end);
    case FRAMING_DROPPED:
        return take_dropped(lane, p, end);
    case FRAMING_OWN_WORDS:
        return take_unheard(lane, p, end);
    default:
        return take_flow(lane, p, end);
    }
}

/*
 * Redis did not run the oldest request: the lane user takes the request back. False: the reply is
 * passed on.
 */
static bool take_back(struct lane *lane, enum not_run row, struct slice reply)
{
    struct call *call = calls_oldest(&lane->calls);
    struct lane_user *lane_user = call->lane_user;
    if (lane_user == NULL || lane_user->ops->on_not_run == NULL ||
        !lane_user->ops->on_not_run(lane_user, call, row, reply))
        return false;
    if (lane_is_closed(lane))
        return true;
    lane_counts_note_refusal(&lane->base->counts, row);
    note_errors(lane, reply, 1);
    note_ended(lane, call, 1);
    tags_drop(&lane->tags, 1);
    if (--call->n > 0)
        return true;
    call->counted = 0; /* a request that goes back stays counted until the request is answered */
    finish_oldest(lane);
    return true;
}

/*
 * Buffer a possible refusal until weir knows whether the reply is a refusal. Any other reply is
 * then taken as if that reply had just arrived.
 */
static const char *deliver_take_refusal(struct lane *lane, const char *p, const char *end)
{
    char text[NOT_RUN_ROOM];
    size_t before = lane->held.len, more = (size_t)(end - p);
    size_t n = more < sizeof text - before ? more : sizeof text - before;
    if (before > 0)
        memcpy(text, lane->held.at, before);
    memcpy(text + before, p, n);
    const struct not_run_look look =
        not_run_look(slice_of(text, before + n), lane->base->worker_lanes->upstream->is_cluster);
    if (look.sight == NOT_RUN_MORE) {
        lane->frame_bytes = before + n;
        if (bytes_add(&lane->held, slice_of(p, n), NOT_RUN_ROOM))
            return p + n;
        lane_fail(lane, END_LOST, "out of memory");
        return NULL;
    }
    lane->held.len = 0;
    lane->frame_bytes = 0;
    if (look.sight == NOT_RUN_YES && take_back(lane, look.row, slice_of(text, look.len)))
        return lane_is_closed(lane) ? NULL : p + (look.len - before);
    /* the call stays in the queue; clients never see redirects */
    if (look.sight == NOT_RUN_YES && look.row >= NOT_RUN_FIXED) {
        const struct slice moved = SLICE("-UPSTREAM moved\r\n");
        lane->framing = (uint8_t)framing_of(lane, moved);
        return take_framed(lane, moved.at, moved.at + moved.len) != NULL ? p + (look.len - before)
                                                                         : NULL;
    }
    lane->framing = (uint8_t)framing_of(lane, slice_of(text, before + n));
    if (before > 0 && take_framed(lane, text, text + before) == NULL)
        return NULL;
    return take_framed(lane, p, end);
}

void deliver_end_run(struct lane *lane)
{
    if (lane->ends_run == RUN_ENDS_WITH_PUSHES && !lane_is_in_frame(lane) &&
        !lane_is_closed(lane) && tell_run_end(lane))
        wake_if_idle(lane->owner);
}

const char *deliver(struct lane *lane, const char *p, const char *end)
{
    const struct slice bytes = slice_of(p, (size_t)(end - p));
    if (lane->ends_run != RUN_GOES_ON && !unsolicited_begins(lane, oldest(lane), bytes)) {
        deliver_end_run(lane);
        if (lane_is_closed(lane))
            return NULL;
    }
    if (lane_is_passthrough(lane))
        return take_passthrough(lane, p, end);
    if (!lane_is_in_frame(lane))
        lane->framing =
            (uint8_t)(lane->keeps && may_be_refusal(lane, bytes) ? FRAMING_REFUSAL
                                                                 : framing_of(lane, bytes));
    return lane->framing == FRAMING_REFUSAL ? deliver_take_refusal(lane, p, end)
                                            : take_framed(lane, p, end);
}

struct link *deliver_passing(struct lane *lane, size_t *most)
{
    bool is_plain_reply = lane_is_in_frame(lane) && lane->framing == FRAMING_PLAIN;
    struct lane_user *lane_user = is_plain_reply ? calls_oldest(&lane->calls)->lane_user : NULL;
    *most = lane->scan.bulk_left;
    return lane_user != NULL && lane_user->ops->on_passing != NULL
               ? lane_user->ops->on_passing(lane_user)
               : NULL;
}

void deliver_passed(struct lane *lane, size_t n)
{
    struct lane_user *lane_user = calls_oldest(&lane->calls)->lane_user;
    lane->scan.bulk_left -= n;
    note_progress(lane, SCAN_MORE, n);
    lane_charge_bytes(lane, lane_user, n);
    lane_user->ops->on_passed(lane_user, n);
    if (!lane_is_closed(lane))
        slow_reader_look(lane, lane_user);
}

bool deliver_is_in_frame_of(const struct lane *lane, const struct lane_user *lane_user)
{
    if (!lane_is_in_frame(lane) || lane->framing > FRAMING_UNSOLICITED ||
        lane->framing == FRAMING_MUTED)
        return false;
    return lane->owner != NULL ? lane->owner == lane_user
                               : calls_oldest(&lane->calls)->lane_user == lane_user;
}
