/*
 * The arguments of the gate (the charge target, the amount of each unit, the time) and its verdict.
 */
#ifndef WEIR_LIMIT_GATE_REQUEST_H
#define WEIR_LIMIT_GATE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "limit/command/command.h"
#include "limit/policy/policy.h"
#include "limit/queue.h"
#include "limit/subject.h"

#define GATE_NEVER INT64_MAX

/*
 * The charge target: the holders of the funnels that a decision charges, by scope. NULL: the policy
 * has no limit of that scope, or the connection has closed. Charges after the close skip limits
 * `per connection`.
 */
struct charge_target {
    const struct policy *policy;
    struct subject *holders[SCOPE_COUNT];
};

/*
 * Which limits a decision checks. PART_ALL: all limits. PART_CONNECTION: the limits on calls in
 * flight and bytes of the connection. PART_COMMAND: the remaining limits. PART_CONNECTION and
 * PART_COMMAND are checked apart if a key of the command names a subject other than the
 * connection's.
 */
enum part { PART_ALL, PART_CONNECTION, PART_COMMAND };

/* in further queues a command keeps no position, and passes when the limit has room */
#define QUEUE_POSITIONS_MAX 4

/* The positions of one command in the queues of limits that delay: at most one for each limit. */
struct queue_positions {
    unsigned n;
    struct kept_position kept[QUEUE_POSITIONS_MAX];
};

#define ONE_OF_EACH                                                                                \
    {                                                                                              \
        [0 ... UNIT_COUNT - 1] = 1                                                                 \
    }

/*
 * Amounts of 1 of each unit, for gate_request.amount. Also for bytes: one byte must fit, and the
 * remaining bytes are charged once they have passed.
 */
static inline const uint64_t *one_of_each(void)
{
    static const uint64_t ones[UNIT_COUNT] = ONE_OF_EACH;
    return ones;
}

/* A decision request: a command that asks to pass. */
struct gate_request {
    const struct command *command;
    enum part part;
    const uint64_t *amount; /* units of each kind that the command costs: UNIT_COUNT numbers */
    uint64_t now_ns;
    uint64_t headed_ns; /* when the command became first in its connection's queue */
    /* the connection can wait; false: a limit that delays refuses the command */
    bool may_wait;
    /* asked again: 1 + id of the limit that made the command wait; 0: first time */
    uint32_t waited_for;
    /* asked again: the positions of the last verdict; NULL: none */
    const struct queue_positions *positions;
    /*
     * The virtual clock of the connection: when its last command would have gone if limits in
     * shadow mode delayed. Limits in shadow mode are checked at the later of virtual_ns and now_ns.
     * 0: no command of the connection would have waited.
     */
    uint64_t virtual_ns;
    bool blocks; /* the call may block in Redis (XREAD BLOCK): not counted as in flight */
    bool is_dry; /* decides only: charges and counts nothing */
};

enum gate { GATE_PASS, GATE_WAIT, GATE_REFUSE, GATE_CLOSE, GATE_DENY };

/* What the gate has counted for a call; passed back in gate_calls_end and gate_owe_bytes. */
enum {
    COUNTED = 1 << 0,        /* in flight, by enforced limits */
    COUNTED_SHADOW = 1 << 1, /* in flight, by limits in shadow mode */
    /* the call's bytes are of a handshake, which no debt delays: charged up to one burst of debt */
    GREETING = 1 << 3,
    /* limits in shadow mode would have refused the call, and are not charged its bytes */
    SHADOW_REFUSED = 1 << 2,
};

struct verdict {
    /*
     * The limit that delays the command. Otherwise the limit with the longest wait among the limits
     * that refuse, or would refuse in shadow mode.
     */
    const struct limit *limit;
    /* GATE_WAIT: the command's positions; queues of limits on bytes have none */
    struct queue_positions positions;
    /*
     * GATE_WAIT: ns until the command may go. Refused: ns until an equal command would pass, or
     * GATE_NEVER.
     */
    int64_t wait_ns;
    uint8_t counted;  /* GATE_PASS: COUNTED* */
    bool is_shadowed; /* GATE_PASS, but a limit in shadow mode would have stopped the command */
    /*
     * GATE_PASS: the result if limits in shadow mode were enforced. In this field GATE_WAIT means:
     * delayed, then passed.
     */
    enum gate would;
    int64_t would_wait_ns; /* wait_ns if limits in shadow mode were enforced */
    uint64_t virtual_ns;   /* new virtual clock of the connection; 0: unchanged */
};

#endif
