/*
 * The gate: the one function that decides whether a command goes now or is refused, and by which limit.
 *
 * Where only one limit binds in the whole policy the funnel's word decides alone; where several can bind together,
 * every decision for that subject is made under its lock: all are asked, then all are charged.
 */
#ifndef WEIR_LIMIT_GATE_H
#define WEIR_LIMIT_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "limit/command.h"
#include "limit/policy.h"
#include "limit/subject.h"

#define GATE_NEVER INT64_MAX

struct verdict {
    const struct limit *limit; /* the limit that refused with the longest wait */
    int64_t wait_ns;           /* until the same command would pass that limit; GATE_NEVER */
};

/*
 * May `command` at `cost` units go at `now_ns`? True: it was charged to every limit that binds it. False: nothing was
 * charged, and *verdict tells why. Any thread.
 */
__attribute__((warn_unused_result)) bool gate_pass(const struct policy *policy, struct subject *subject,
                                                   const struct command *command, uint64_t cost, uint64_t now_ns,
                                                   struct verdict *verdict);

/* "-PREFIX retry_in_ms=37 limit=free/write\r\n" into out; milliseconds rounded up, -1 for never. Returns its length. */
#define GATE_REFUSAL_ROOM 192
size_t gate_refusal(char *out, struct slice prefix, const struct verdict *verdict);

#endif
