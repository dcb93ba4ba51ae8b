#include "front/client/login.h"

#include <stdlib.h>
#include <string.h>

#include "front/client/binding.h"
#include "front/client/session.h"
#include "front/front.h"
#include "front/route/lane_choice.h"
#include "front/route/outage.h"
#include "limit/gate.h"
#include "limit/policy/identity.h"
#include "upstream/lane/lend.h"
#include "upstream/lane/own_words.h"
#include "upstream/node/not_run.h"

/* ---- login attempts, as `auth-failures` counts them ---- */

/*
 * One login attempt of an address, from before weir asks Redis until Redis has answered. The policy
 * is the one for new connections from that address, whatever user the client has by now. A failure
 * is charged even if the client is closed before the reply. A zeroed attempt has not begun.
 */
struct login_attempt {
    struct attempt base;
    /* policies in force when the attempt began; one reference; NULL: no limit counts the attempt */
    struct policies *policies;
    struct charge_target target; /* the address under `policies`; with a reference on the subject */
};

/* True if a failure of the attempt is charged. A counted attempt outlives its client. */
static bool attempt_is_counted(const struct login_attempt *attempt)
{
    return attempt->policies != NULL;
}

/*
 * The charge target for failures: the address, under the policy that bound the connection at
 * accept. The policy of another user might have no limit on failures, and a client of that user
 * could guess passwords.
 */
static struct charge_target target_of_address(struct client *client)
{
    const struct facts facts = facts_on_arrival(client);
    const struct policy *policy = client_listen_address(client)->is_admin
                                      ? NULL
                                      : policies_match(client->front->rules->policies, &facts);
    char name[SUBJECT_NAME_MAX];
    if (policy == NULL || policy->of_unit[UNIT_AUTH_FAILURES] == 0)
        return (struct charge_target){0};
    size_t len = identity_address(&facts, name);
    struct subject *subject = subject_get(client->front->settings->subjects, policy->policy_state,
                                          slice_of(name, len), client->front->loop->now_ns);
    return (struct charge_target){policy, {subject, NULL, NULL}};
}

static void note_barred(struct front *front, const struct charge_target *target)
{
    unsigned first = (unsigned)__builtin_ctzll(target->policy->of_unit[UNIT_AUTH_FAILURES]);
    front_note_stopped(front, target, &target->policy->limits[first], OFFENDER_REFUSED);
}

bool login_may(struct client *client)
{
    struct front *front = client->front;
    const struct charge_target target = target_of_address(client);
    if (target.policy == NULL)
        return true;
    bool may = gate_may_login(&target, front->loop->now_ns, front->limit_counters);
    if (!may)
        note_barred(front, &target);
    subject_put(front->settings->subjects, target.holders[PER_SUBJECT]);
    return may;
}

/* As attempts_begin. Returns ATTEMPT_UNDER_WAY if no policy limits failures. */
static enum attempt_state attempt_begin(struct client *client, struct login_attempt *attempt)
{
    struct front *front = client->front;
    attempt->target = target_of_address(client);
    if (attempt->target.policy == NULL)
        return ATTEMPT_UNDER_WAY;
    attempt->policies = policies_get(front->rules->policies);
    return attempts_begin(front->settings->attempts, &attempt->base, &attempt->target, front->index,
                          front->loop->now_ns);
}

/* The attempt was barred while it waited: counts the refusal, and notes the address for the log. */
static void attempt_note_barred(struct front *front, const struct login_attempt *attempt)
{
    if (!gate_may_login(&attempt->target, front->loop->now_ns, front->limit_counters))
        note_barred(front, &attempt->target);
}

/*
 * The attempt's charge target under the present rules. The present policy may have another rate, or
 * no limit on failures.
 */
static struct charge_target target_now(const struct front *front,
                                       const struct login_attempt *attempt)
{
    struct charge_target target = attempt->target;
    if (attempt->policies == front->rules->policies)
        return target;
    struct subject *subject = target.holders[PER_SUBJECT];
    target.policy = policies_find(front->rules->policies, slice_str(subject->policy_state->name));
    if (target.policy != NULL && !subject_grow(subject))
        target.policy = NULL; /* out of memory: the funnel may be missing */
    return target;
}

/* Ends the attempt in any state. Safe on an attempt that has not begun. */
static void attempt_end(struct front *front, struct login_attempt *attempt, bool is_failure)
{
    if (!attempt_is_counted(attempt))
        return;
    const struct charge_target target = target_now(front, attempt);
    attempts_end(front->settings->attempts, &attempt->base, &target, is_failure,
                 front->loop->now_ns, front->limit_counters);
    subject_put(front->settings->subjects, attempt->target.holders[PER_SUBJECT]);
    policies_put(attempt->policies);
    attempt->policies = NULL;
}

/* ---- the steps of a login ---- */

enum stage {
    STAGE_WAITS,   /* other logins of the address are in flight */
    STAGE_BARRED,  /* too many logins of the address have failed */
    STAGE_ASKED,   /* the auth lane has not answered yet */
    STAGE_JUDGED,  /* the auth lane has answered */
    STAGE_AWAY,    /* no auth lane can be had; weir asks again later */
    STAGE_ON_LANE, /* the private lane is being logged in */
    STAGE_PASSED,
};

struct login_step {
    struct question question;
    struct login_attempt attempt;
    /*
     * fires after handshake-timeout in STAGE_WAITS; on_due is set once the heap has room for the
     * alarm
     */
    struct alarm late;
    struct front *front;
    struct client *client; /* NULL: the client is closed, and the reply only decides a charge */
    enum stage stage;
    enum judgement judgement;
    bool is_proof;      /* weir asks again about credentials that Redis has accepted before */
    bool is_waited_for; /* with is_proof: a request waits for the proof */
    char *reply;        /* Redis' error; heap; NULL: none */
};

static struct login_step *login_step_of(struct question *question)
{
    return container_of(question, struct login_step, question);
}

bool login_has_begun(const struct client *client)
{
    const struct login_step *step = client_extra(client)->login;
    return step != NULL && !step->is_proof;
}

static void free_step(struct login_step *step)
{
    struct alarms *alarms = &step->front->timeouts.alarms;
    if (step->late.on_due != NULL) {
        alarm_stop(alarms, &step->late);
        alarms_release(alarms, 1);
    }
    login_put(step->question.login);
    auth_proof_drop(&step->question.proof);
    free(step->reply);
    free(step);
}

/* If a failure may be charged, the question in flight outlives the client until Redis answers. */
void login_end(struct client *client)
{
    struct login_step *step = client_extra(client)->login;
    if (step == NULL)
        return;
    client->extra->login = NULL;
    step->client = NULL;
    if (attempt_is_counted(&step->attempt) && question_is_in_flight(&step->question)) {
        auth_lanes_ask_once(&step->question);
        return;
    }
    auth_lanes_forget(&step->question);
    attempt_end(step->front, &step->attempt, question_was_lost(&step->question));
    free_step(step);
}

/* ---- on an auth lane ---- */

/*
 * True if Redis has accepted these credentials before. The client then has the user already, and an
 * error reply would leave the client with that user.
 */
static bool is_renewal(const struct login_step *step)
{
    return step->is_proof || session_login(step->client) == step->question.login;
}

static void end_check(struct login_step *step)
{
    struct client *client = step->client;
    if (step->judgement == JUDGED_TRUE)
        session_prove(client, &step->question.proof);
    login_end(client);
}

static void login_refuse_lane(struct client *client, const char *why)
{
    session_log_closed(client, LOG_SITE_CLIENT_CLOSED, why);
    login_end(client);
    lane_choice_abandon(client);
    client_leave_for(client, CLOSED_UPSTREAM);
}

/*
 * Ends a client after Redis has refused its credentials. Replies in flight still reach the client,
 * unless a call of the client may block.
 */
static void refuse_proof(struct client *client)
{
    const struct lane_user *lane_user = &client->lane_user;
    static const char why[] = "Redis no longer accepts its login";
    if (lane_user->in_flight == 0 || lane_user->lane == NULL || lane_may_wait(lane_user->lane)) {
        login_refuse_lane(client, why);
        return;
    }
    session_log_closed(client, LOG_SITE_CLIENT_CLOSED, why);
    login_end(client);
    client_leave_for(client, CLOSED_UPSTREAM);
}

/*
 * True if another node of a cluster than the default node refuses the credentials, and the client
 * has no private lane. The refusal is then the reply to the command, and the client stays.
 */
static bool is_refused_elsewhere(const struct client *client)
{
    return client_is_on_cluster(client) && !client_has_own_lane(client) &&
           session_row(client) != front_default_row(client->front);
}

static void login_on_judged(struct question *question, enum judgement judgement, struct slice reply)
{
    struct login_step *step = login_step_of(question);
    attempt_end(step->front, &step->attempt, judgement == JUDGED_FALSE || judgement == JUDGED_LOST);
    if (step->client == NULL) {
        free_step(step);
        return;
    }
    step->stage = STAGE_JUDGED;
    step->judgement = judgement;
    if (is_renewal(step) && judgement == JUDGED_FALSE && !is_refused_elsewhere(step->client)) {
        refuse_proof(step->client);
        return;
    }
    if (step->is_proof && !step->is_waited_for) {
        end_check(step);
        return;
    }
    if (step->client->front->nodes.worker_lanes.upstream->is_cluster && redirect_is(reply))
        /* AUTH has no cluster slot, so a redirect is wrong, and no client may see the redirect */
        reply = SLICE("-UPSTREAM moved\r\n");
    /* without `reply` the client gets weir's own error */
    if (judgement == JUDGED_FALSE && memchr(reply.at, '\0', reply.len) == NULL)
        step->reply = strndup(reply.at, reply.len);
    client_resume(step->client, WAIT_LOGIN);
}

/*
 * Makes the client's login step; takes over a reference on the login. NULL: out of memory, and the
 * client is closed.
 */
static struct login_step *make_question(struct client *client, struct login *login, bool is_short)
{
    login_end(client); /* a check that no request waits for may be in flight */
    struct extra *extra = client_need_extra(client);
    struct login_step *step = extra != NULL ? calloc(1, sizeof *step) : NULL;
    if (step == NULL) {
        client_close_starved(client);
        login_put(login);
        return NULL;
    }
    step->front = client->front;
    step->client = client;
    step->question.login = login;
    step->question.is_short = is_short;
    step->question.on_judged = login_on_judged;
    list_init(&step->question.in_auth_lanes);
    extra->login = step;
    return step;
}

static void ask_auth_lane(struct login_step *step)
{
    step->stage = STAGE_ASKED;
    struct nodes_row *row =
        step->is_proof ? session_row(step->client) : front_default_row(step->front);
    auth_lanes_ask(&row->auth_lanes, &step->question);
}

/* ---- waiting for other logins of the address ---- */

static void login_on_late(struct alarm *alarm)
{
    struct client *client = container_of(alarm, struct login_step, late)->client;
    session_log_closed(
        client, LOG_SITE_CLIENT_CLOSED,
        "its login waited longer than handshake-timeout for other logins from its address");
    client_close_for(client, CLOSED_HANDSHAKE);
}

static void login_wait(struct login_step *step)
{
    struct front *front = step->front;
    struct alarms *alarms = &front->timeouts.alarms;
    step->stage = STAGE_WAITS;
    if (front->rules->handshake_timeout_ns == 0)
        return;
    if (step->late.on_due == NULL && !alarms_reserve(alarms, 1)) {
        client_close_starved(step->client);
        return;
    }
    step->late.on_due = login_on_late;
    alarm_set(alarms, &step->late, front->loop->now_ns + front->rules->handshake_timeout_ns);
}

static void be_barred(struct login_step *step)
{
    attempt_note_barred(step->front, &step->attempt);
    step->stage = STAGE_BARRED;
}

static void proceed(struct login_step *step, enum attempt_state state)
{
    switch (state) {
    case ATTEMPT_UNDER_WAY:
        ask_auth_lane(step);
        break;
    case ATTEMPT_WAITS:
        login_wait(step);
        break;
    case ATTEMPT_BARRED:
        be_barred(step);
        break;
    case ATTEMPT_NONE:
    case ATTEMPT_STARVED:
        client_close_starved(step->client);
        break;
    }
}

static void login_begin(struct login_step *step)
{
    proceed(step, attempt_begin(step->client, &step->attempt));
}

void login_look(struct front *front)
{
    struct attempt *attempt;
    while ((attempt = attempts_news(front->settings->attempts, front->index)) != NULL) {
        struct login_step *step = container_of(attempt, struct login_step, attempt.base);
        if (step->late.on_due != NULL)
            alarm_stop(&front->timeouts.alarms, &step->late);
        client_resume(step->client, WAIT_LOGIN);
        proceed(step, attempt->state);
    }
}

/* ---- login of the private lane ---- */

/* Adds a call to the private lane; only weir sees the reply. NULL: out of memory. */
static struct call *call_lane(struct client *client, enum effect effect)
{
    struct call *call = lane_call_flow(client->lane_user.lane, &client->lane_user, FLOW_ONE, 1, 0);
    if (call == NULL)
        return NULL;
    call->flags = CALL_MUTE | CALL_LOOK;
    call->effect = (uint8_t)effect;
    call->arrived_ns = 0;
    return call;
}

/*
 * Asks for the lane's client id if the id is unknown, since Redis tells the id only after a login.
 * Other clients may name the client by this id. False: out of memory.
 */
static bool ask_id(struct client *client)
{
    static const char request[] = "*1\r\n$5\r\n" OWN_HELLO "\r\n"; /* HELLO needs no rights */
    if (client->lane_user.lane->id != 0)
        return true;
    if (call_lane(client, EFFECT_ID) == NULL)
        return false;
    lane_send(client->lane_user.lane, &client->lane_user, request, sizeof request - 1);
    return true;
}

/* Sends AUTH on the private lane. The client does not see the reply. False: out of memory. */
static bool tell_lane(struct client *client, struct login *login)
{
    struct lane *lane = client->lane_user.lane;
    if (!lane_vouch(lane, &client->lane_user))
        return false;
    char *request = malloc(login_room(login));
    bool is_sent = request != NULL && call_lane(client, EFFECT_LOGIN) != NULL;
    if (is_sent) {
        size_t n = login_emit(login, SLICE("AUTH"), false, request);
        lane_send(lane, &client->lane_user, request, n);
        explicit_bzero(request, n);
        lane_must_answer(
            lane, upstream_time(client->front->nodes.worker_lanes.upstream, AUTH_LANES_TIMEOUT_NS));
    }
    free(request);
    return is_sent && ask_id(client);
}

void login_lane_answered(struct client *client, const struct glimpse *reply)
{
    client->lane_user.lane->answer_by_ns = 0;
    if (!glimpse_is(reply, SLICE("+OK\r\n"))) {
        login_refuse_lane(client,
                          "its private connection rejects a login that Redis accepted before");
        return;
    }
    lend_note_login(client->lane_user.lane);
    lane_choice_note_login(client);
    client->extra->login->stage = STAGE_PASSED;
    client_resume(client, WAIT_LOGIN);
}

/* ---- a login request ---- */

/*
 * Gives the client its new user. False: the client is one connection too many and leaves, or memory
 * is out and the client is closed.
 */
static bool login_become(struct client *client, const struct question *question)
{
    if (session_log_in(client, question->login, &question->proof))
        return binding_bind(client);
    client_close_starved(client);
    return false;
}

static enum login_result login_pass(struct client *client, struct login_step *step)
{
    bool has_lane = client_has_own_lane(client) && client->lane_user.lane != NULL;
    step->stage = STAGE_PASSED;
    if (!login_become(client, &step->question))
        return LOGIN_GONE;
    if (!has_lane)
        return LOGIN_PASSED;
    step->stage = STAGE_ON_LANE;
    client_wait(client, WAIT_LOGIN);
    if (tell_lane(client, step->question.login))
        return LOGIN_WAITS;
    client_close_starved(client);
    return LOGIN_GONE;
}

/* No auth lane can be had, so Redis was not asked. */
static enum login_result login_go_without(struct client *client, struct login_step *step)
{
    const struct lanes *lanes = &front_default_row(client->front)->lanes;
    switch (outage_meet(client, lanes->down != ERR_NONE ? lanes->down : ERR_UPSTREAM_BUSY, true)) {
    case OUTAGE_WAITS:
        step->stage = STAGE_AWAY;
        return LOGIN_WAITS;
    case OUTAGE_ERROR:
        if (!is_renewal(step))
            return LOGIN_WRONG;
        outage_close(client);
        break;
    case OUTAGE_CLOSES:
        outage_close(client);
        break;
    case OUTAGE_STARVED:
        break;
    }
    return LOGIN_GONE;
}

/*
 * Redis was asked, and its reply was lost. An operator's connection stays, unless the login was a
 * renewal.
 */
static enum login_result login_lose(struct client *client, const struct login_step *step)
{
    if (client_is_operator(client) && !is_renewal(step))
        return LOGIN_WRONG;
    client_leave_for(client, CLOSED_UPSTREAM);
    return LOGIN_GONE;
}

static enum login_result judged(struct client *client, struct login_step *step)
{
    switch (step->judgement) {
    case JUDGED_TRUE:
        return login_pass(client, step);
    case JUDGED_FALSE:
        return LOGIN_WRONG;
    case JUDGED_LOST:
        return login_lose(client, step);
    case JUDGED_NOT:
        break;
    }
    return login_go_without(client, step);
}

/*
 * Limits the wait for an auth lane that is being opened to the time that a client may wait in an
 * outage. The wait of returned requests has another limit. False: out of memory, and the client is
 * closed.
 */
static bool watch_dial(struct client *client, struct login_step *step, bool is_handshake)
{
    struct nodes_row *row = step->is_proof ? session_row(client) : front_default_row(client->front);
    if (step->stage != STAGE_ASKED || question_is_in_flight(&step->question) ||
        lanes_is_taken(&row->lanes))
        return true;
    if (client->lane_user.is_returning) /* the outage belongs to the next request */
        return true;
    outage_watch(client, is_handshake);
    if (!client_is_closed(client) && outage_is_over(client, is_handshake))
        auth_lanes_give_up(&step->question);
    return !client_is_closed(client);
}

static enum login_result login_go_on(struct client *client, struct login_step *step)
{
    if (step->stage == STAGE_AWAY) {
        login_begin(step);
        if (client_is_closed(client))
            return LOGIN_GONE;
    }
    if (!watch_dial(client, step, true))
        return LOGIN_GONE;
    switch (step->stage) {
    case STAGE_BARRED:
        return LOGIN_BARRED;
    case STAGE_PASSED:
        return LOGIN_PASSED;
    case STAGE_JUDGED:
        return judged(client, step);
    case STAGE_AWAY:
    case STAGE_WAITS:
    case STAGE_ASKED:
    case STAGE_ON_LANE:
        break;
    }
    client_wait(client, WAIT_LOGIN);
    return LOGIN_WAITS;
}

/* As login_go_on, for a step that has just begun. `step` is NULL if the client was closed. */
static enum login_result begun(struct client *client, struct login_step *step)
{
    if (step == NULL)
        return LOGIN_GONE;
    login_begin(step);
    return client_is_closed(client) ? LOGIN_GONE : login_go_on(client, step);
}

enum login_result login_ask(struct client *client, const struct hello *hello)
{
    if (login_has_begun(client))
        return login_go_on(client, client->extra->login);
    struct login *login = login_new(hello->user, hello->password);
    if (login != NULL)
        return begun(client, make_question(client, login, hello->is_short));
    client_close_starved(client);
    return LOGIN_GONE;
}

/*
 * Asks Redis again about the client's credentials, in the step of an AUTH or HELLO that has begun,
 * or in a new step. NULL: the client is closed.
 */
static struct login_step *login_begin_proof(struct client *client)
{
    struct login_step *step = client_extra(client)->login;
    if (step != NULL && step->stage != STAGE_PASSED)
        return step;
    if (step == NULL) {
        step = make_question(client, login_get(session_login(client)), false);
        if (step == NULL)
            return NULL;
        step->is_proof = true;
    }
    ask_auth_lane(step);
    return step;
}

enum login_result login_prove(struct client *client, bool is_handshake)
{
    struct login_step *step = login_begin_proof(client);
    if (step == NULL)
        return LOGIN_GONE;
    step->is_waited_for |= step->stage != STAGE_JUDGED;
    if (!watch_dial(client, step, is_handshake))
        return LOGIN_GONE;
    if (step->stage != STAGE_JUDGED) {
        client_wait(client, WAIT_LOGIN);
        return LOGIN_WAITS;
    }
    if (step->judgement == JUDGED_TRUE) {
        session_prove(client, &step->question.proof);
        step->stage = STAGE_PASSED;
        return LOGIN_PASSED;
    }
    if (step->judgement != JUDGED_FALSE || is_refused_elsewhere(client))
        return LOGIN_WRONG;
    refuse_proof(client);
    return LOGIN_GONE;
}

enum login_result login_renew(struct client *client, bool is_handshake)
{
    if (!session_must_prove(client))
        return LOGIN_PASSED;
    if (session_is_proven(client))
        lane_choice_keep_user(client);
    do {
        enum login_result result = login_prove(client, is_handshake);
        if (result != LOGIN_PASSED)
            return result;
        if (!login_has_begun(client))
            login_end(client);
    } while (!session_is_proven(client));
    return LOGIN_PASSED;
}

void login_prove_again(struct client *client)
{
    struct login_step *step = client_extra(client)->login;
    if (step == NULL || step->stage != STAGE_JUDGED)
        return;
    if (step->is_proof)
        login_end(client);
    else
        step->stage = STAGE_PASSED;
}

bool login_is_refused(const struct client *client)
{
    const struct login_step *step = client_extra(client)->login;
    return step != NULL && step->stage == STAGE_JUDGED && step->judgement == JUDGED_FALSE;
}

bool login_is_unanswered(const struct client *client)
{
    const struct login_step *step = client_extra(client)->login;
    return step != NULL && step->stage == STAGE_JUDGED && step->judgement == JUDGED_LOST;
}

void login_check(struct client *client)
{
    (void)login_begin_proof(client);
}

struct slice login_reply(const struct client *client)
{
    const struct login_step *step = client_extra(client)->login;
    if (step->reply != NULL)
        return slice_str(step->reply);
    return err_text(lanes_why_away(&front_default_row(client->front)->lanes));
}
