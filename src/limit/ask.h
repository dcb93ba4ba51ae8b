/*
 * What is asked at the gate (whose funnels, how much of each unit, since when), and what becomes of it.
 */
#ifndef WEIR_LIMIT_ASK_H
#define WEIR_LIMIT_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "limit/command.h"
#include "limit/policy.h"
#include "limit/queue.h"
#include "limit/subject.h"

#define GATE_NEVER INT64_MAX

/* Whose funnels a decision is about: one holder for each scope, NULL where the policy has no limit of that scope. */
struct account {
    const struct policy *policy;
    struct subject *holders[SCOPE_COUNT];
};

/*
 * Which limits are asked: all; those on the calls and bytes of a connection; or the others. The two apart, where the
 * key of a command says that it is for somebody else than its connection's subject.
 */
enum part { PART_ALL, PART_CONNECTION, PART_COMMAND };

#define TURN_PLACES 4 /* of more queues at once a command keeps no place: there it goes when there is room */

/* The places that a command has, in the queues of the limits that delay it; of each limit one. */
struct turn {
    unsigned n;
    struct kept_place places[TURN_PLACES];
};

#define ONE_OF_EACH                                                                                                    \
    {                                                                                                                  \
        [0 ... UNIT_COUNT - 1] = 1                                                                                     \
    }

/* For ask.amount: 1 of each unit. Of bytes too: one must fit, the rest is owed when it has passed. */
static inline const uint64_t *one_of_each(void)
{
    static const uint64_t ones[UNIT_COUNT] = ONE_OF_EACH;
    return ones;
}

/* What wants to pass. */
struct ask {
    const struct command *command;
    enum part part;
    const uint64_t *amount; /* how much of each unit it takes: UNIT_COUNT of them */
    uint64_t now_ns;
    uint64_t headed_ns;  /* since when it is the next of its connection */
    bool may_wait;       /* its connection can be held; else a limit that delays refuses */
    uint32_t waited_for; /* 1 + the id of the limit that has delayed it, when its place there has come; 0: none has */
    const struct turn *turn; /* the places that it has had; NULL: none is known */
    bool blocks;             /* it may wait in Redis, though not all of its name do: then it is not in flight */
    bool is_dry;             /* decide; charge and count nothing */
};

enum gate { GATE_PASS, GATE_WAIT, GATE_REFUSE, GATE_CLOSE, GATE_DENY };

/* Which calls in flight are counted, so that gate_calls_end can take them away again; and what is not owed. */
enum {
    COUNTED = 1 << 0,
    COUNTED_SHADOW = 1 << 1,
    SHADOW_REFUSED = 1 << 2, /* limits that are only counted would have refused it: they owe nothing for its bytes */
};

struct verdict {
    const struct limit *limit; /* that made it wait, or refused with the longest wait */
    struct turn turn;          /* GATE_WAIT: its places; in the queues of bytes, which are not known yet, it has none */
    int64_t wait_ns;  /* GATE_WAIT: until it may go, or could have gone. Else until the same would pass; GATE_NEVER */
    uint8_t counted;  /* GATE_PASS: COUNTED* */
    bool is_shadowed; /* GATE_PASS, but limits that are only counted would not have let it */
};

#endif
