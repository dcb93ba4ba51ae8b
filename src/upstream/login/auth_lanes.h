/*
 * Auth lanes: lanes on which a node checks a user's password, by `AUTH user password`. Each auth
 * lane carries one AUTH at a time, and nothing else.
 *
 * Only the exact reply +OK confirms a password. Requests of clients, and scripts that could forge
 * replies, are on other lanes. From Redis 7.2 on a failed AUTH behind unsent replies gets no
 * answer, and the next reply would be taken for the answer to AUTH. An auth lane therefore sends
 * one request at a time. Several auth lanes check several logins at once. Each request has a
 * time-out. The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_AUTH_LANES_H
#define WEIR_UPSTREAM_AUTH_LANES_H

#include <stdbool.h>

#include "base/list.h"
#include "upstream/lane/lanes.h"

/* auth lanes of a worker to a node; each checks some thousands of logins a second */
#define AUTH_LANES_MAX 4
#define AUTH_LANES_REPLY_MAX 4096 /* bytes of one answer */
/* chosen: time-out of one answer without an upstream-timeout; CLIENT PAUSE may delay the answer */
#define AUTH_LANES_TIMEOUT_NS (10 * NS_PER_S)

enum judgement {
    JUDGED_TRUE,  /* +OK: the password is right */
    JUDGED_FALSE, /* Redis refused the login: `reply` is the whole error */
    JUDGED_LOST,  /* sent, but the answer is lost: the lane closed, or upstream-timeout */
    JUDGED_NOT,   /* not sent: see lanes_why_none */
};

/* A login to check. Embedded in the struct that waits for the judgement. */
struct question {
    struct list in_auth_lanes;   /* in auth_lanes.waiting, until the question is sent */
    struct auth_lane *auth_lane; /* the auth lane of the sent question; NULL: not in flight */
    /* the asker's reference, which stays until the judgement or auth_lanes_forget */
    struct login *login;
    /*
     * the proof that +OK gives, in the auth generation at the time of sending; dropped by the asker
     */
    struct auth_proof proof;
    /*
     * the question's lane was lost once; AUTH changes nothing on an auth lane, so a second try is
     * safe
     */
    bool is_again;
    bool is_short; /* sent without a user: AUTH password */
    /*
     * Never called from within auth_lanes_ask. `reply` is valid during the call, and empty without
     * a reply.
     */
    void (*on_judged)(struct question *question, enum judgement judgement, struct slice reply);
};

struct auth_lane {
    struct auth_lanes *auth_lanes;
    struct weir_lane base;
    struct question *asked; /* the question in flight on this lane; NULL: none, or forgotten */
    bool is_busy;           /* an answer is pending */
};

struct auth_lanes {
    struct list waiting; /* struct question, the oldest first */
    struct auth_lane auth_lanes[AUTH_LANES_MAX];
    /*
     * the last lane to open was refused; another lane is tried at the next question, or after an
     * answer
     */
    bool is_refused;
};

void auth_lanes_init(struct auth_lanes *auth_lanes, struct lanes *lanes);
/* questions in flight are judged JUDGED_LOST */
void auth_lanes_fini(struct auth_lanes *auth_lanes);

/*
 * The node has left the topology. Waiting questions move to `heir`, or are judged JUDGED_NOT if
 * `heir` is NULL. Questions in flight are answered, and then the lanes are closed.
 */
void auth_lanes_retire(struct auth_lanes *auth_lanes, struct auth_lanes *heir);

/* Queue the question. on_judged follows later, unless auth_lanes_forget comes first. */
void auth_lanes_ask(struct auth_lanes *auth_lanes, struct question *question);

/* True if AUTH was sent, and not answered. */
static inline bool question_is_in_flight(const struct question *question)
{
    return question->auth_lane != NULL;
}

/* True if AUTH was sent, the answer was lost, and AUTH will be sent again. */
static inline bool question_was_lost(const struct question *question)
{
    return question->is_again && question->auth_lane == NULL;
}

/*
 * For a question in flight: if the question's lane is lost, on_judged follows with JUDGED_LOST,
 * without a second try.
 */
void auth_lanes_ask_once(struct question *question);

/* Cancel: on_judged will not be called. Harmless on a question that is not queued. */
void auth_lanes_forget(struct question *question);

/* For a question that waits for an auth lane: stop waiting, and call on_judged at once. */
void auth_lanes_give_up(struct question *question);

#endif
