/*
 * Asks one node who somebody is: `AUTH user password`, on lanes that carry nothing else, and one at a time on each.
 *
 * The exact +OK is the only yes; what anybody else has on its way, or lets a script answer, is on other lanes. From 7.2
 * on a failed AUTH behind replies that are not yet sent has no answer at all, and the next one's would be taken for it:
 * so nothing is asked before the answer to the question before it is here. Several doors make up for that; each
 * question has an end in time.
 */
#ifndef WEIR_UPSTREAM_DOORS_H
#define WEIR_UPSTREAM_DOORS_H

#include <stdbool.h>

#include "base/list.h"
#include "upstream/weir_lane.h"

#define DOORS_MAX 4          /* of a worker: some thousands of logins a second each */
#define DOORS_REPLY_MAX 4096 /* of one answer */
#define DOORS_PATIENCE_NS                                                                                              \
    (10 * NS_PER_S) /* for one answer, without an upstream-timeout: CLIENT PAUSE holds it back too */

enum judgement {
    JUDGED_TRUE,  /* +OK: Redis takes whoever says this for that user */
    JUDGED_FALSE, /* Redis says why not: `reply` is its whole error */
    JUDGED_NOT,   /* there is no answer: lanes_why_none, or upstream timeout */
    JUDGED_BARRED /* may_ask has said no */
};

/* Somebody who says who he is. Embedded in whatever waits for the answer. */
struct question {
    struct list in_doors; /* while it waits for its turn */
    struct door *door;    /* that it is being asked at; NULL: none */
    struct login *login;  /* counted by whoever asks; stays until the judgement or doors_forget */
    bool is_again;        /* the door that it was asked at is gone; it changes nothing, so it may be asked twice */
    bool is_short;        /* said without a user: AUTH password */
    /* Asked once more at the last moment. */
    bool (*may_ask)(struct question *question);
    /* Not from within doors_ask. The reply is good for this call only; empty without one. */
    void (*on_judged)(struct question *question, enum judgement judgement, struct slice reply);
};

struct door {
    struct doors *doors;
    struct weir_lane base;
    struct question *asked; /* NULL: none, or nobody waits for it any more */
    bool is_busy;           /* an answer is on its way */
};

struct doors {
    struct list waiting; /* struct question, the oldest first */
    struct door doors[DOORS_MAX];
    bool is_refused; /* the last that was to be opened was; another is tried when somebody asks, or one has answered */
};

void doors_init(struct doors *doors, struct lanes *lanes);
void doors_fini(struct doors *doors);

/* on_judged follows, later, unless doors_forget comes first. */
void doors_ask(struct doors *doors, struct question *question);

/* Nobody waits for it any more. Safe on one that is not being asked. */
void doors_forget(struct question *question);

#endif
