/*
 * What is observed of the peak rates of a policy's subjects (limit/figures/demand.h): the classes,
 * the start time, and the peaks of dropped subjects. A reload changes none of these.
 *
 * Classes are added on one thread, and never removed. Functions for workers take a lock of their
 * own, inside that of a shard of subjects.
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

#define OBSERVED_NAMES 3     /* dropped subjects with the largest peaks */
#define OBSERVED_NAME_MAX 64 /* longer names are cut */

struct observed;

struct observed_name {
    char text[OBSERVED_NAME_MAX];
    size_t len;
    struct peaks peaks;
};

/* The dropped subjects of one class: a copy. */
struct observed_forgotten {
    struct population population; /* freed with population_fini */
    struct observed_name most[OBSERVED_NAMES];
    size_t n_most;
};

/* Makes an object with the classes of enum demand_builtin. Aborts the process if memory is out. */
struct observed *observed_new(void);
void observed_free(struct observed *observed);

/* Index of the class of that name, added if missing. DEMAND_CLASSES: no room for another class. */
unsigned observed_class(struct observed *observed, struct slice name);

unsigned observed_count(const struct observed *observed);
struct slice observed_name(const struct observed *observed, unsigned class_index);

/* Whole seconds since counting began; 0: not begun. Any thread. */
uint64_t observed_seconds(const struct observed *observed, uint64_t now_ns);

/* Adds the peaks of a dropped subject. Any thread. */
void observed_forget(struct observed *observed, struct slice name, struct demand *demand);

/* Copies the dropped subjects of that class. */
void observed_copy_forgotten(struct observed *observed, unsigned class_index, struct observed_forgotten *out);

/*
 * ---- plans ----
 *
 * Which classes of commands are observed of a policy's subjects, and the classes of each command.
 * Observed are all, read, write, the classes of its limits, and the operator's own classes.
 * Commands of class control, which no limit refuses, are in none of them. A class with only such
 * commands is left out. So is every class beyond DEMAND_CLASSES.
 *
 * Commands in the same classes form a group. Groups are few. A command is counted in the one word
 * of its group, and these words are added to the subject once a read (struct demand_pending).
 */

#define DEMAND_GROUPS 64 /* a set of groups is one word */

/*
 * The plan of one policy, bound to one command table; then immutable. Zeroed before
 * demand_plan_make.
 */
struct demand_plan {
    /* by command id: its group. A command of a newer table counts as unknown: row 0 */
    uint8_t *groups;
    size_t n_commands;
    unsigned n_groups;
    /* by group: its classes, as indexes in limit/figures/observed.h, for demand_add */
    uint16_t masks[DEMAND_GROUPS];
    /* by group: its only class, if that is in the first block; otherwise DEMAND_BLOCK */
    uint8_t alone[DEMAND_GROUPS];
};

/*
 * Makes the plan for the subjects with these counters and limits. Aborts the process if memory is
 * out.
 */
void demand_plan_make(struct demand_plan *plan, struct members *members, const struct record *record,
                      const struct limit *limits, size_t n_limits);
void demand_plan_fini(struct demand_plan *plan);

/*
 * Commands of one client that are not yet added to its subject: one object for each worker. Zeroed
 * at the start.
 */
struct demand_pending {
    const struct demand_plan *plan;
    struct subject *subject;
    uint64_t touched; /* groups with a count other than 0 */
    uint32_t counts[DEMAND_GROUPS];
};

/* Adds pending commands to the subject. There are some, and the subject is still referenced. */
void demand_flush(struct demand_pending *pending, uint64_t now_ns);

/* Discards pending commands. */
void demand_drop(struct demand_pending *pending);

/* Commands noted from now on belong to this subject, which has the counters of the plan. */
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

/* Notes n requests for this command. */
static inline void demand_note(struct demand_pending *pending, const struct command *command, uint32_t n)
{
    unsigned group = demand_group(pending->plan, command);
    pending->counts[group] += n;
    pending->touched |= UINT64_C(1) << group;
}

/* Adds a command at once, for a subject other than the one in `pending`. */
void demand_tell(struct subject *subject, const struct demand_plan *plan, const struct command *command,
                 uint64_t now_ns);

#endif
