/*
 * What is observed of the demand of a policy's subjects (limit/figures/demand.h): which classes,
 * since when, and how much the subjects asked for at most that the table has forgotten. A reload
 * changes none of it.
 *
 * Classes are added on one thread, and never taken away. What workers call has a lock of its own, which is taken inside
 * that of a shard of subjects.
 */
#ifndef WEIR_LIMIT_OBSERVED_H
#define WEIR_LIMIT_OBSERVED_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/command/class.h"
#include "limit/command/command_row.h"
#include "limit/figures/demand.h"
#include "limit/figures/suggestion.h"
#include "limit/policy/limit.h"
#include "limit/subject.h"

#define OBSERVED_NAMES 3     /* of the forgotten subjects that asked for most */
#define OBSERVED_NAME_MAX 64 /* longer ones are cut */

struct observed;

struct observed_name {
    char text[OBSERVED_NAME_MAX];
    size_t len;
    struct peaks peaks;
};

/* Those of one class that have been forgotten: a copy. */
struct observed_forgotten {
    struct population population; /* to be freed with population_fini */
    struct observed_name most[OBSERVED_NAMES];
    size_t n_most;
};

/* With the classes of enum demand_builtin. Never fails: out of memory ends the process. */
struct observed *observed_new(void);
void observed_free(struct observed *observed);

/* The index of the class of that name, entered if need be; DEMAND_CLASSES: there are so many already. */
unsigned observed_class(struct observed *observed, struct slice name);

unsigned observed_count(const struct observed *observed);
struct slice observed_name(const struct observed *observed, unsigned class_index);

/* For how many whole seconds something has been counted; 0: nothing yet. Any thread. */
uint64_t observed_seconds(const struct observed *observed, uint64_t now_ns);

/* A subject of that name with that demand is forgotten. Any thread. */
void observed_forget(struct observed *observed, struct slice name, struct demand *demand);

/* Those of that class that have been forgotten. */
void observed_copy_forgotten(struct observed *observed, unsigned class_index, struct observed_forgotten *out);

/*
 * ---- plans ----
 *
 * Which classes of commands are observed of a policy's subjects, and to which of them each command belongs: all, read
 * and write, those that its limits name, and the operator's own. Commands of class control, which no limit refuses,
 * belong to none; classes that hold nothing else are left out, and so are more than DEMAND_CLASSES.
 *
 * Commands that belong to the same classes are a group. There are few, so a command is counted in one word, that of its
 * group, and what is in those words goes to its subject once for each read (struct demand_pending).
 */

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
