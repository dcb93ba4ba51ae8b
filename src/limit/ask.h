/*
 * The arguments of the gate (whose funnels, how much of each unit, when), and its result.
 */
#ifndef WEIR_LIMIT_ASK_H
#define WEIR_LIMIT_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "limit/command/command.h"
#include "limit/policy/policy.h"
#include "limit/queue.h"
#include "limit/subject.h"

#define GATE_NEVER INT64_MAX

/*
 * The holders of the funnels that a decision charges, by scope; NULL where the policy has no limit
 * of that scope, or the connection has gone: then what is charged afterwards is not charged to
 * limits `per connection`.
 */
struct account {
    const struct policy *policy;
    struct subject *holders[SCOPE_COUNT];
};

/*
 * Which limits are asked: all; those on calls in flight and bytes of the connection; or the others. The latter two are
 * asked apart where a command's key names another subject than the connection's.
 */
enum part { PART_ALL, PART_CONNECTION, PART_COMMAND };

#define TURN_PLACES 4 /* in further queues a command keeps no place: it passes there when there is room */

/* The places of one command in the queues of the limits that delay it: at most one for each limit. */
struct turn {
    unsigned n;
    struct kept_place places[TURN_PLACES];
};

#define ONE_OF_EACH                                                                                                    \
    {                                                                                                                  \
        [0 ... UNIT_COUNT - 1] = 1                                                                                     \
    }

/* For ask.amount: 1 of each unit. Of bytes too: one must fit, and the rest is charged when it has passed. */
static inline const uint64_t *one_of_each(void)
{
    static const uint64_t ones[UNIT_COUNT] = ONE_OF_EACH;
    return ones;
}

/* A command that wants to pass. */
struct ask {
    const struct command *command;
    enum part part;
    const uint64_t *amount; /* how much of each unit it takes: UNIT_COUNT numbers */
    uint64_t now_ns;
    uint64_t headed_ns;      /* since when it is the next of its connection */
    bool may_wait;           /* its connection can be held; else a limit that delays refuses it */
    uint32_t waited_for;     /* asked again: 1 + the id of the limit whose queue it has waited in; 0: first time */
    const struct turn *turn; /* asked again: the turn of the last verdict; NULL: none */
    /*
     * Where limits in shadow mode would delay: the connection's virtual clock, when its last command would have gone. They
     * are asked at the later of this and now_ns. 0: no command of the connection would have waited.
     */
    uint64_t virtual_ns;
    bool blocks; /* this call may block in Redis (XREAD BLOCK): not counted as in flight */
    bool is_dry; /* only decide: charge and count nothing */
};

enum gate { GATE_PASS, GATE_WAIT, GATE_REFUSE, GATE_CLOSE, GATE_DENY };

/* What the gate has counted for a call, to be given back to it (gate_calls_end, gate_owe_bytes). */
enum {
    COUNTED = 1 << 0,        /* in flight, by limits that are enforced */
    COUNTED_SHADOW = 1 << 1, /* in flight, by limits in shadow mode */
    GREETING = 1 << 3,       /* its bytes are of a handshake, which no debt holds up: they are owed up to one burst */
    SHADOW_REFUSED = 1 << 2, /* limits in shadow mode would have refused it: its bytes are not charged to them */
};

struct verdict {
    /* That delays it, or of those that refuse it, or in shadow mode would have, the one with the longest wait. */
    const struct limit *limit;
    struct turn turn; /* GATE_WAIT: its places; queues of limits on bytes have none */
    int64_t wait_ns;  /* GATE_WAIT: until it may go. Refused: until the same would pass, or GATE_NEVER */
    uint8_t counted;  /* GATE_PASS: COUNTED* */
    bool is_shadowed; /* GATE_PASS, but a limit in shadow mode would have stopped it */
    /* GATE_PASS: what it would have been without shadow mode; GATE_WAIT: it would have been delayed, and then passed. */
    enum gate would;
    int64_t would_wait_ns; /* as wait_ns, for what it would have been */
    uint64_t virtual_ns;   /* the connection's virtual clock from now on; 0: as before */
};

#endif
