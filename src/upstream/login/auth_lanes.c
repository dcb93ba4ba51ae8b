#include "upstream/login/auth_lanes.h"

#include <stdlib.h>
#include <string.h>

#include "limit/command/command.h"

static struct auth_lane *auth_lane_of(struct lane_user *lane_user)
{
    return container_of(lane_user, struct auth_lane, base.lane_user);
}

static struct question *question_of(struct list *in_auth_lanes)
{
    return container_of(in_auth_lanes, struct question, in_auth_lanes);
}

/* The work is done later in the iteration: no callback runs inside a call of its receiver. */
static void auth_lanes_wake(struct auth_lane *auth_lane)
{
    link_wake(&auth_lane->base.hollow);
}

static void auth_lanes_judge(struct auth_lane *auth_lane, enum judgement judgement,
                             struct slice reply)
{
    struct question *question = auth_lane->asked;
    auth_lane->asked = NULL;
    auth_lane->is_busy = false;
    if (question == NULL)
        return;
    question->auth_lane = NULL;
    if (judgement == JUDGED_TRUE)
        auth_user_note(question->proof.user, question->login);
    question->on_judged(question, judgement, reply);
}

/* ---- answers ---- */

/* Collect the whole error, up to AUTH_LANES_REPLY_MAX: the client gets Redis' own text. */
static void auth_lanes_on_bytes(struct lane_user *lane_user, const char *data, size_t n)
{
    struct bytes *reply = &lane_user->lane->held;
    if (!bytes_add(reply, slice_of(data, n), AUTH_LANES_REPLY_MAX))
        lane_fail(lane_user->lane, END_NONSENSE, "its reply to a login is too long");
}

static void auth_lanes_on_answer(struct lane_user *lane_user, const struct call *call,
                                 const struct glimpse *glimpse)
{
    struct auth_lane *auth_lane = auth_lane_of(lane_user);
    struct lane *lane = lane_user->lane;
    struct slice reply = bytes_slice(&lane->held);
    (void)call;
    auth_lane->auth_lanes->is_refused = false;
    lane->answer_by_ns = 0;
    lane->held.len = 0; /* the bytes stay until the next answer */
    if (glimpse_is(glimpse, SLICE("+OK\r\n")))
        auth_lanes_judge(auth_lane, JUDGED_TRUE, reply);
    else if (glimpse_type(glimpse) == '-')
        auth_lanes_judge(auth_lane, JUDGED_FALSE, reply);
    else
        lane_fail(lane, END_NONSENSE, "its reply to a login is neither OK nor an error");
    auth_lanes_wake(auth_lane);
}

static void auth_lanes_on_lost(struct lane_user *lane_user, const struct lane *lane)
{
    (void)lane;
    struct auth_lane *auth_lane = auth_lane_of(lane_user);
    struct question *question = auth_lane->asked;
    auth_lane->auth_lanes->is_refused = false;
    weir_lane_lost(&auth_lane->base);
    if (question != NULL && !question->is_again) {
        /*
         * Retry the question: Redis closes an auth lane when the user of the lane's last AUTH is
         * deleted. The user of this question is not concerned.
         */
        auth_lane->asked = NULL;
        question->auth_lane = NULL;
        auth_lane->is_busy = false;
        question->is_again = true;
        list_push(&auth_lane->auth_lanes->waiting, &question->in_auth_lanes);
    } else {
        auth_lanes_judge(auth_lane, JUDGED_LOST, SLICE(""));
    }
    auth_lanes_wake(auth_lane);
}

/* ---- asking ---- */

/* Judge a question that is not sent, or not sent again. */
static void give_up(struct question *question)
{
    question->on_judged(question, question->is_again ? JUDGED_LOST : JUDGED_NOT, SLICE(""));
}

static void judge_all(struct auth_lanes *auth_lanes)
{
    struct list now;
    list_take_all(&now, &auth_lanes->waiting);
    while (!list_is_empty(&now)) {
        struct question *question = question_of(now.next);
        list_take(&question->in_auth_lanes);
        give_up(question);
    }
}

/*
 * If no auth lane is open, all questions are given up; otherwise the questions wait for an open
 * auth lane.
 */
static void auth_lanes_on_refused(struct lane_user *lane_user, enum lane_end end,
                                  struct slice reply)
{
    struct auth_lane *auth_lane = auth_lane_of(lane_user);
    struct auth_lanes *auth_lanes = auth_lane->auth_lanes;
    (void)end;
    (void)reply;
    weir_lane_lost(&auth_lane->base);
    auth_lanes->is_refused = true;
    for (unsigned i = 0; i < AUTH_LANES_MAX; i++)
        if (auth_lanes->auth_lanes[i].base.is_open)
            return;
    judge_all(auth_lanes);
}

/*
 * The proof is of the auth generation before AUTH is sent: an answer after the end of that
 * generation proves nothing. False: out of memory.
 */
static bool auth_lanes_begin_proof(struct lane *lane, struct question *question)
{
    struct auth_user *user = auth_users_get(&lane->base->users, login_user(question->login));
    auth_proof_take(&question->proof, user);
    auth_user_put(user);
    return user != NULL;
}

static bool auth_lanes_send_question(struct auth_lane *auth_lane, struct question *question)
{
    struct lane *lane = auth_lane->base.lane_user.lane;
    char *request =
        auth_lanes_begin_proof(lane, question) ? malloc(login_room(question->login)) : NULL;
    struct call *call =
        request != NULL ? lane_call_flow(lane, &auth_lane->base.lane_user, FLOW_ONE, 1, 0) : NULL;
    if (call == NULL) {
        free(request);
        return false;
    }
    const struct upstream *upstream = lane->base->worker_lanes->upstream;
    uint64_t within_ns = upstream->timeout_ns > 0 ? upstream->timeout_ns
                                                  : upstream_time(upstream, AUTH_LANES_TIMEOUT_NS);
    call->flags = CALL_LOOK;
    size_t n = login_emit(question->login, SLICE("AUTH"), question->is_short, request);
    lane_send(lane, &auth_lane->base.lane_user, request, n);
    explicit_bzero(request, n);
    free(request);
    lane_must_answer(lane, within_ns);
    question->auth_lane = auth_lane;
    auth_lane->asked = question;
    auth_lane->is_busy = true;
    return true;
}

static void ask_next(struct auth_lane *auth_lane)
{
    struct auth_lanes *auth_lanes = auth_lane->auth_lanes;
    while (!list_is_empty(&auth_lanes->waiting) && !auth_lane->is_busy) {
        struct question *question = question_of(auth_lanes->waiting.next);
        list_take(&question->in_auth_lanes);
        if (!auth_lanes_send_question(auth_lane, question))
            give_up(question);
    }
}

static bool open_auth_lane(struct auth_lane *auth_lane)
{
    if (!weir_lane_open(&auth_lane->base, NULL, LANE_AUTH))
        return false;
    lane_wait(auth_lane->base.lane_user.lane, &auth_lane->base.lane_user);
    return true;
}

static void close_free(struct auth_lanes *auth_lanes)
{
    for (unsigned i = 0; i < AUTH_LANES_MAX; i++)
        if (auth_lanes->auth_lanes[i].base.is_open && !auth_lanes->auth_lanes[i].is_busy)
            weir_lane_close(&auth_lanes->auth_lanes[i].base);
}

/*
 * Send waiting questions on free auth lanes. While a question must wait, open another lane, one
 * lane at a time.
 */
static void pump(struct auth_lanes *auth_lanes)
{
    struct auth_lane *closed = NULL;
    bool is_opening = false;
    bool is_any = false;
    if (auth_lanes->auth_lanes[0].base.lanes->is_retired) {
        judge_all(auth_lanes);
        close_free(auth_lanes);
        return;
    }
    for (unsigned i = 0; i < AUTH_LANES_MAX; i++) {
        struct auth_lane *auth_lane = &auth_lanes->auth_lanes[i];
        if (!auth_lane->base.is_open)
            closed = auth_lane;
        else if (lane_is_ready(auth_lane->base.lane_user.lane))
            ask_next(auth_lane);
        else
            is_opening = true;
        is_any |= auth_lane->base.is_open;
    }
    if (list_is_empty(&auth_lanes->waiting) || is_opening || auth_lanes->is_refused)
        return;
    if (closed != NULL && !open_auth_lane(closed) && !is_any)
        judge_all(auth_lanes);
}

static void auth_lanes_on_wake(struct link *link)
{
    pump(container_of(link, struct auth_lane, base.hollow)->auth_lanes);
}

static const struct link_ops link_ops = {.on_wake = auth_lanes_on_wake};

static const struct lane_user_ops lane_user_ops = {
    .on_bytes = auth_lanes_on_bytes,
    .on_answer = auth_lanes_on_answer,
    .on_refused = auth_lanes_on_refused,
    .on_lost = auth_lanes_on_lost,
    .to_link = WEIR_LANE_TO_LINK,
};

void auth_lanes_ask(struct auth_lanes *auth_lanes, struct question *question)
{
    question->auth_lane = NULL;
    auth_lanes->is_refused = false;
    list_push(&auth_lanes->waiting, &question->in_auth_lanes);
    auth_lanes_wake(&auth_lanes->auth_lanes[0]);
}

void auth_lanes_retire(struct auth_lanes *auth_lanes, struct auth_lanes *heir)
{
    close_free(auth_lanes);
    if (heir == NULL) {
        judge_all(auth_lanes);
        return;
    }
    while (!list_is_empty(&auth_lanes->waiting)) {
        struct question *question = question_of(auth_lanes->waiting.next);
        list_take(&question->in_auth_lanes);
        list_push(&heir->waiting, &question->in_auth_lanes);
    }
    auth_lanes_wake(&heir->auth_lanes[0]);
}

void auth_lanes_ask_once(struct question *question)
{
    question->is_again = true;
}

void auth_lanes_forget(struct question *question)
{
    list_take(&question->in_auth_lanes);
    if (question->auth_lane != NULL)
        question->auth_lane->asked = NULL;
    question->auth_lane = NULL;
}

void auth_lanes_give_up(struct question *question)
{
    list_take(&question->in_auth_lanes);
    give_up(question);
}

void auth_lanes_init(struct auth_lanes *auth_lanes, struct lanes *lanes)
{
    *auth_lanes = (struct auth_lanes){0};
    list_init(&auth_lanes->waiting);
    for (unsigned i = 0; i < AUTH_LANES_MAX; i++) {
        auth_lanes->auth_lanes[i].auth_lanes = auth_lanes;
        weir_lane_init(&auth_lanes->auth_lanes[i].base, lanes, &lane_user_ops, &link_ops);
    }
}

void auth_lanes_fini(struct auth_lanes *auth_lanes)
{
    for (unsigned i = 0; i < AUTH_LANES_MAX; i++) {
        auth_lanes_judge(&auth_lanes->auth_lanes[i], JUDGED_LOST, SLICE(""));
        weir_lane_fini(&auth_lanes->auth_lanes[i].base);
    }
}
