/*
 * Which classes of commands are observed of a policy's subjects, and to which of them each command belongs: all, read
 * and write, those that its limits name, and the operator's own. Commands of class control, which no limit refuses,
 * belong to none; classes that hold nothing else are left out, and so are more than DEMAND_CLASSES.
 *
 * Commands that belong to the same classes are a group. There are few, so a command is counted in one word, that of its
 * group, and what is in those words goes to its subject once for each read (struct demand_pending).
 */
#ifndef WEIR_LIMIT_DEMAND_PLAN_H
#define WEIR_LIMIT_DEMAND_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "limit/command/class.h"
#include "limit/command/members.h"
#include "limit/command/command_row.h"
#include "limit/policy/limit.h"
#include "limit/subject.h"

#define DEMAND_GROUPS 64 /* a set of groups is one word */

/* Of one policy, bound to one command table; then immutable. Zeroed before it is made. */
struct demand_plan {
    uint8_t *groups; /* by command id: its group. A command of a newer table is as good as unknown: row 0 */
    size_t n_commands;
    unsigned n_groups;
    uint16_t masks
        [DEMAND_GROUPS]; /* the classes of each group, by their index in limit/figures/observed.h, for demand_add */
    uint8_t alone[DEMAND_GROUPS]; /* the one class of the first block that this is; DEMAND_BLOCK: it is not one */
};

/* Make the plan for the subjects of a record that have these limits. Never fails: out of memory ends the process. */
void demand_plan_make(struct demand_plan *plan, struct members *members, const struct record *record,
                      const struct limit *limits, size_t n_limits);
void demand_plan_fini(struct demand_plan *plan);

/* What one client has asked for since it was last told its subject: one for each worker. Zeroed at the start. */
struct demand_pending {
    const struct demand_plan *plan;
    struct subject *subject;
    uint64_t touched; /* groups whose count is not 0 */
    uint32_t counts[DEMAND_GROUPS];
};

/* Something is pending: tell the subject, which is still held. */
void demand_flush(struct demand_pending *pending, uint64_t now_ns);

/* Nothing of it is told. */
void demand_drop(struct demand_pending *pending);

/* What is noted from now on is asked by this subject, which has the plan's record. */
static inline void demand_begin(struct demand_pending *pending, struct subject *subject, const struct demand_plan *plan,
                                uint64_t now_ns)
{
    if (pending->touched != 0 && pending->subject != subject)
        demand_flush(pending, now_ns);
    pending->subject = subject;
    pending->plan = plan;
}

static inline unsigned demand_group(const struct demand_plan *plan, const struct command *command)
{
    return plan->groups[command->id < plan->n_commands ? command->id : 0];
}

/* It has asked for n of this command. */
static inline void demand_note(struct demand_pending *pending, const struct command *command, uint32_t n)
{
    unsigned group = demand_group(pending->plan, command);
    pending->counts[group] += n;
    pending->touched |= UINT64_C(1) << group;
}

/* The same at once, for another subject than the one whose requests are being taken. */
void demand_tell(struct subject *subject, const struct demand_plan *plan, const struct command *command,
                 uint64_t now_ns);

#endif
