/*
 * An input as a session: a head with the settings of the world, and a list of steps. Any bytes are
 * a valid list.
 *
 *   head   SESSION_HEAD bytes
 *   step   kind with flags, two numbers, a length, and so many bytes
 */
#ifndef WEIR_FUZZ_SESSION_STEPS_H
#define WEIR_FUZZ_SESSION_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define SESSION_HEAD 4
#define STEPS_MAX 80
#define STEP_SIZE 4 /* bytes, without the step's own */

enum step_kind {
    /* the client sends row `a` of the table; `b` chooses its values, the bytes are a value */
    STEP_SAY,
    STEP_SAY_RAW, /* the client sends these bytes */
    /* the client keeps back the last `a` bytes of its next request until it sends more */
    STEP_CUT,
    STEP_SHUT,   /* the client half-closes */
    STEP_LEAVE,  /* the client closes, with a reset if `a` is odd, and connects again */
    STEP_BLIND,  /* the client stops reading, or reads again */
    STEP_ANSWER, /* the upstream answers the oldest request of lane `a` as `b` says */
    /* the upstream answers all requests of clients as `b` says, the oldest first */
    STEP_ANSWER_ALL,
    STEP_HOLD,   /* the upstream keeps back the last `a` bytes of its next answer on the lane */
    STEP_PUSH,   /* the upstream sends an unsolicited message of kind `b` on lane `a` */
    STEP_FORGE,  /* the upstream sends these bytes on lane `a` */
    STEP_DROP,   /* the upstream closes lane `a`, with a reset if `b` is odd */
    STEP_AWAY,   /* the upstream refuses connections, or accepts them again */
    STEP_OWN,    /* the next `a` of weir's own requests wait for an answering step */
    STEP_WAIT,   /* time passes: row `a` of a table */
    STEP_RELOAD, /* the configuration becomes variant `a` */
    STEP_KINDS
};

struct step {
    enum step_kind kind;
    bool is_b;       /* a step of client B */
    bool is_at_once; /* the next step is played before any party runs */
    uint8_t a, b;
    struct slice bytes;
};

struct session {
    uint8_t head[SESSION_HEAD];
    struct step steps[STEPS_MAX];
    size_t n;
};

/* The steps point into the input's bytes. */
void session_decode(struct session *session, const uint8_t *data, size_t n);

#endif
