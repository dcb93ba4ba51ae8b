#include "upstream/login/doors.h"

#include <stdlib.h>
#include <string.h>

#include "limit/command/command.h"

static struct door *door_of(struct lane_user *lane_user)
{
    return container_of(lane_user, struct door, base.lane_user);
}

static struct question *question_of(struct list *in_doors)
{
    return container_of(in_doors, struct question, in_doors);
}

/* The work is done later in the iteration: no callback runs inside a call of its receiver. */
static void wake(struct door *door)
{
    link_wake(&door->base.hollow);
}

static void judge(struct door *door, enum judgement judgement, struct slice reply)
{
    struct question *question = door->asked;
    door->asked = NULL;
    door->is_busy = false;
    if (question == NULL)
        return;
    question->door = NULL;
    if (judgement == JUDGED_TRUE)
        auth_user_note(question->proof.user, question->login);
    question->on_judged(question, judgement, reply);
}

/* ---- answers ---- */

/* Collect the whole error, up to DOORS_REPLY_MAX: the client gets Redis' own text. */
static void on_bytes(struct lane_user *lane_user, const char *data, size_t n)
{
    struct bytes *reply = &lane_user->lane->held;
    if (!bytes_add(reply, slice_of(data, n), DOORS_REPLY_MAX))
        lane_fail(lane_user->lane, END_NONSENSE, "its answer to a login is too long");
}

static void on_answer(struct lane_user *lane_user, const struct call *call, const struct glimpse *glimpse)
{
    struct door *door = door_of(lane_user);
    struct lane *lane = lane_user->lane;
    struct slice reply = bytes_slice(&lane->held);
    (void)call;
    door->doors->is_refused = false;
    lane->answer_by_ns = 0;
    lane->held.len = 0; /* the bytes stay until the next answer */
    if (glimpse_is(glimpse, SLICE("+OK\r\n")))
        judge(door, JUDGED_TRUE, reply);
    else if (glimpse_type(glimpse) == '-')
        judge(door, JUDGED_FALSE, reply);
    else
        lane_fail(lane, END_NONSENSE, "it answers a login with neither yes nor no");
    wake(door);
}

static void on_lost(struct lane_user *lane_user, const struct lane *lane)
{
    (void)lane;
    struct door *door = door_of(lane_user);
    struct question *question = door->asked;
    door->doors->is_refused = false;
    weir_lane_lost(&door->base);
    if (question != NULL && !question->is_again) {
        /*
         * A retry: Redis closes an auth lane when the user of its last AUTH is deleted, which is
         * not this user's fault.
         */
        door->asked = NULL;
        question->door = NULL;
        door->is_busy = false;
        question->is_again = true;
        list_push(&door->doors->waiting, &question->in_doors);
    } else {
        judge(door, JUDGED_LOST, SLICE(""));
    }
    wake(door);
}

/* ---- asking ---- */

/* Judge a question that is not sent, or not sent again. */
static void give_up(struct question *question)
{
    question->on_judged(question, question->is_again ? JUDGED_LOST : JUDGED_NOT, SLICE(""));
}

static void judge_all(struct doors *doors)
{
    struct list now;
    list_take_all(&now, &doors->waiting);
    while (!list_is_empty(&now)) {
        struct question *question = question_of(now.next);
        list_take(&question->in_doors);
        give_up(question);
    }
}

/* If no auth lane is open, all questions are given up; else they wait for an open one. */
static void on_refused(struct lane_user *lane_user, enum lane_end end, struct slice reply)
{
    struct door *door = door_of(lane_user);
    struct doors *doors = door->doors;
    (void)end;
    (void)reply;
    weir_lane_lost(&door->base);
    doors->is_refused = true;
    for (unsigned i = 0; i < DOORS_MAX; i++)
        if (doors->doors[i].base.is_open)
            return;
    judge_all(doors);
}

/*
 * The proof is of the auth generation before AUTH is sent: an answer after its end proves nothing.
 * False: out of memory.
 */
static bool begin_proof(struct lane *lane, struct question *question)
{
    struct auth_user *user = auth_users_get(&lane->base->users, login_user(question->login));
    proof_take(&question->proof, user);
    auth_user_put(user);
    return user != NULL;
}

static bool send_question(struct door *door, struct question *question)
{
    struct lane *lane = door->base.lane_user.lane;
    char *request = begin_proof(lane, question) ? malloc(login_room(question->login)) : NULL;
    struct call *call = request != NULL ? lane_call_special(lane, &door->base.lane_user, FLOW_ONE, 1, 0) : NULL;
    if (call == NULL) {
        free(request);
        return false;
    }
    const struct upstream *upstream = lane->base->commons->upstream;
    uint64_t within_ns = upstream->timeout_ns > 0 ? upstream->timeout_ns : upstream_time(upstream, DOORS_PATIENCE_NS);
    call->flags = CALL_LOOK;
    size_t n = login_emit(question->login, SLICE("AUTH"), question->is_short, request);
    lane_send(lane, &door->base.lane_user, request, n);
    explicit_bzero(request, n);
    free(request);
    lane_must_answer(lane, within_ns);
    question->door = door;
    door->asked = question;
    door->is_busy = true;
    return true;
}

static void ask_next(struct door *door)
{
    struct doors *doors = door->doors;
    while (!list_is_empty(&doors->waiting) && !door->is_busy) {
        struct question *question = question_of(doors->waiting.next);
        list_take(&question->in_doors);
        if (!send_question(door, question))
            give_up(question);
    }
}

static bool open_door(struct door *door)
{
    if (!weir_lane_open(&door->base, NULL, LANE_DOOR))
        return false;
    lane_wait(door->base.lane_user.lane, &door->base.lane_user);
    return true;
}

static void close_free(struct doors *doors)
{
    for (unsigned i = 0; i < DOORS_MAX; i++)
        if (doors->doors[i].base.is_open && !doors->doors[i].is_busy)
            weir_lane_close(&doors->doors[i].base);
}

/*
 * Send waiting questions on free auth lanes. While any must wait, open another lane, one at a time.
 */
static void pump(struct doors *doors)
{
    struct door *closed = NULL;
    bool is_opening = false;
    bool is_any = false;
    if (doors->doors[0].base.lanes->is_retired) {
        judge_all(doors);
        close_free(doors);
        return;
    }
    for (unsigned i = 0; i < DOORS_MAX; i++) {
        struct door *door = &doors->doors[i];
        if (!door->base.is_open)
            closed = door;
        else if (lane_is_ready(door->base.lane_user.lane))
            ask_next(door);
        else
            is_opening = true;
        is_any |= door->base.is_open;
    }
    if (list_is_empty(&doors->waiting) || is_opening || doors->is_refused)
        return;
    if (closed != NULL && !open_door(closed) && !is_any)
        judge_all(doors);
}

static void on_wake(struct link *link)
{
    pump(container_of(link, struct door, base.hollow)->doors);
}

static const struct link_ops link_ops = {.on_wake = on_wake};

static const struct lane_user_ops lane_user_ops = {
    .on_bytes = on_bytes,
    .on_answer = on_answer,
    .on_refused = on_refused,
    .on_lost = on_lost,
    .to_link = WEIR_LANE_TO_LINK,
};

void doors_ask(struct doors *doors, struct question *question)
{
    question->door = NULL;
    doors->is_refused = false;
    list_push(&doors->waiting, &question->in_doors);
    wake(&doors->doors[0]);
}

void doors_retire(struct doors *doors, struct doors *heir)
{
    close_free(doors);
    if (heir == NULL) {
        judge_all(doors);
        return;
    }
    while (!list_is_empty(&doors->waiting)) {
        struct question *question = question_of(doors->waiting.next);
        list_take(&question->in_doors);
        list_push(&heir->waiting, &question->in_doors);
    }
    wake(&heir->doors[0]);
}

void doors_ask_once(struct question *question)
{
    question->is_again = true;
}

void doors_forget(struct question *question)
{
    list_take(&question->in_doors);
    if (question->door != NULL)
        question->door->asked = NULL;
    question->door = NULL;
}

void doors_give_up(struct question *question)
{
    list_take(&question->in_doors);
    give_up(question);
}

void doors_init(struct doors *doors, struct lanes *lanes)
{
    *doors = (struct doors){0};
    list_init(&doors->waiting);
    for (unsigned i = 0; i < DOORS_MAX; i++) {
        doors->doors[i].doors = doors;
        weir_lane_init(&doors->doors[i].base, lanes, &lane_user_ops, &link_ops);
    }
}

void doors_fini(struct doors *doors)
{
    for (unsigned i = 0; i < DOORS_MAX; i++) {
        judge(&doors->doors[i], JUDGED_LOST, SLICE(""));
        weir_lane_fini(&doors->doors[i].base);
    }
}
