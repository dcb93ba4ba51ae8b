/*
 * An input as a session: a head that says how the world is, and a list of steps. Any bytes are such a list.
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
#define STEP_SIZE 4 /* without its bytes */

enum step_kind {
    STEP_SAY,        /* the client says row `a` of the table; `b` chooses among its values, the bytes are a value */
    STEP_SAY_RAW,    /* the client says these bytes */
    STEP_CUT,        /* the client keeps the last `a` bytes of what it says next until it says more */
    STEP_SHUT,       /* the client closes its side */
    STEP_LEAVE,      /* the client is gone, with a reset if `a` is odd, and comes again */
    STEP_BLIND,      /* the client stops reading, or reads again */
    STEP_ANSWER,     /* the upstream answers the oldest question of lane `a` as `b` says */
    STEP_ANSWER_ALL, /* the upstream answers all questions of clients as `b` says, the oldest first */
    STEP_HOLD,       /* the upstream keeps the last `a` bytes of its next answer on that lane until the one after */
    STEP_PUSH,       /* the upstream sends on lane `a` what nobody asked: kind `b` */
    STEP_FORGE,      /* the upstream sends these bytes on lane `a` */
    STEP_DROP,       /* the upstream closes lane `a`, with a reset if `b` is odd */
    STEP_AWAY,       /* the upstream refuses connections, or takes them again */
    STEP_OWN,        /* the next `a` questions that weir asks for itself wait for an answer's step, as others do */
    STEP_WAIT,       /* time passes: row `a` of a table */
    STEP_RELOAD,     /* the configuration is variant `a` now */
    STEP_KINDS
};

struct step {
    enum step_kind kind;
    bool is_b;       /* the second client's */
    bool is_at_once; /* the next step comes before anybody has had a turn */
    uint8_t a, b;
    struct slice bytes;
};

struct session {
    uint8_t head[SESSION_HEAD];
    struct step steps[STEPS_MAX];
    size_t n;
};

/* The bytes stay the input's. */
void session_decode(struct session *session, const uint8_t *data, size_t n);

#endif
