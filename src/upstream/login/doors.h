/*
 * Doors: lanes on which a node is asked whether a user's password is right, by `AUTH user password`, one at a time on
 * each, and which carry nothing else.
 *
 * The exact +OK is the only yes; what other clients have in flight, or let a script answer, is on other lanes. From
 * Redis 7.2 on a failed AUTH behind replies that are not yet sent has no answer at all, and the next one's would be
 * taken for it: so a door asks nothing before its last question is answered. Several doors make up for that; each
 * question has an end in time. The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_DOORS_H
#define WEIR_UPSTREAM_DOORS_H

#include <stdbool.h>

#include "base/list.h"
#include "upstream/lane/lanes.h"

#define DOORS_MAX 4          /* of a worker to a node: some thousands of logins a second each */
#define DOORS_REPLY_MAX 4096 /* bytes of one answer */
#define DOORS_PATIENCE_NS                                                                                              \
    (10 * NS_PER_S) /* for one answer, without an upstream-timeout: CLIENT PAUSE holds it back too */

enum judgement {
    JUDGED_TRUE,  /* +OK: the password is right */
    JUDGED_FALSE, /* Redis says why not: `reply` is its whole error */
    JUDGED_LOST,  /* it was asked, and the answer is lost: the lane has gone, or upstream timeout */
    JUDGED_NOT,   /* it was not asked: lanes_why_none */
};

/* A login to be judged. Embedded in whatever waits for the judgement. */
struct question {
    struct list in_doors; /* in doors.waiting, while it waits for its turn */
    struct door *door;    /* where it is being asked; NULL: nowhere */
    struct login *login;  /* the asker's reference, which stays until the judgement or doors_forget */
    struct proof proof;   /* what +OK proves: of the generation in which it was sent; the asker drops it */
    bool is_again;        /* its lane was lost once: AUTH changes nothing there, so it may be asked twice */
    bool is_short;        /* sent without a user: AUTH password */
    /* Not from within doors_ask. The reply is good for this call only; empty without one. */
    void (*on_judged)(struct question *question, enum judgement judgement, struct slice reply);
};

struct door {
    struct doors *doors;
    struct weir_lane base;
    struct question *asked; /* in flight there; NULL: none, or forgotten */
    bool is_busy;           /* an answer is on its way */
};

struct doors {
    struct list waiting; /* struct question, the oldest first */
    struct door doors[DOORS_MAX];
    bool is_refused; /* the last that was to be opened was; another is tried when somebody asks, or one has answered */
};

void doors_init(struct doors *doors, struct lanes *lanes);
void doors_fini(struct doors *doors); /* questions in flight are judged JUDGED_LOST */

/*
 * Its node is not in the topology any more: what waits is asked at `heir`, or is judged JUDGED_NOT where there is none;
 * what has been asked is answered, and then the lanes are closed.
 */
void doors_retire(struct doors *doors, struct doors *heir);

/* on_judged follows, later, unless doors_forget comes first. */
void doors_ask(struct doors *doors, struct question *question);

/* True if the node has been asked, and has not answered. */
static inline bool question_is_in_flight(const struct question *question)
{
    return question->door != NULL;
}

/* True if the node was asked, its answer was lost, and it is to be asked again. */
static inline bool question_was_lost(const struct question *question)
{
    return question->is_again && question->door == NULL;
}

/* Of a question in flight: if its lane is lost, on_judged follows with JUDGED_LOST, and it is not asked again. */
void doors_ask_once(struct question *question);

/* The asker does not wait any more: on_judged will not be called. Safe on one that is not being asked. */
void doors_forget(struct question *question);

/* Of a question that waits for an auth lane: it waits no longer, and on_judged is called at once. */
void doors_give_up(struct question *question);

#endif
