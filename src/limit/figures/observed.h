/*
 * The observations of the peak rates of a policy's subjects (limit/figures/peak_rates.h): the
 * classes, the start time, and the peaks of dropped subjects. A reload leaves the classes, the
 * start time and the peaks unchanged.
 *
 * Classes are added on one thread, and never removed. Functions for workers take the object's own
 * lock, inside the lock of a shard of subjects.
 */
#ifndef WEIR_LIMIT_OBSERVED_H
#define WEIR_LIMIT_OBSERVED_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/command/class.h"
#include "limit/command/command_row.h"
#include "limit/figures/peak_rates.h"
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
    struct distribution distribution; /* freed with distribution_fini */
    struct observed_name most[OBSERVED_NAMES];
    size_t n_most;
};

/*
 * Makes an object with the classes of enum peak_class_builtin. Aborts the process if memory is out.
 */
struct observed *observed_new(void);
void observed_free(struct observed *observed);

/*
 * Index of the class of that name, added if missing. PEAK_CLASSES_MAX: no room for another class.
 */
unsigned observed_class(struct observed *observed, struct slice name);

unsigned observed_count(const struct observed *observed);
struct slice observed_name(const struct observed *observed, unsigned class_index);

/* Whole seconds since counting began; 0: not begun. Any thread. */
uint64_t observed_seconds(const struct observed *observed, uint64_t now_ns);

/* Adds the peaks of a dropped subject. Any thread. */
void observed_forget(struct observed *observed, struct slice name, struct peak_rates *peak_rates);

/* Copies the dropped subjects of that class. */
void observed_copy_forgotten(struct observed *observed, unsigned class_index,
                             struct observed_forgotten *out);

/*
 * ---- plans ----
 *
 * Which classes of commands are observed of a policy's subjects, and the classes of each command.
 * The observed classes are all, read, write, the classes of the policy's limits, and the operator's
 * own classes. Commands of class control, which no limit refuses, are in no observed class. A class
 * that has only commands of class control is left out, and so is every class beyond
 * PEAK_CLASSES_MAX.
 *
 * Commands in the same classes form a group. Groups are few. A command is counted in the one word
 * of its group. After each read of a client the words of all groups are added to the subject
 * (struct peak_rates_pending).
 */

#define PEAK_PLAN_GROUPS 64 /* a set of groups is one word */

/*
 * The plan of one policy, bound to one command table; then immutable. Zeroed before
 * peak_plan_make.
 */
struct peak_plan {
    /* by command id: the command's group. A command of a newer table counts as unknown: row 0 */
    uint8_t *groups;
    size_t n_commands;
    unsigned n_groups;
    /*
     * by group: the group's classes, one bit for each index of observed_class, for peak_rates_add
     */
    uint16_t masks[PEAK_PLAN_GROUPS];
    /* by group: the group's only class, if in the first block; otherwise PEAK_RATES_BLOCK */
    uint8_t alone[PEAK_PLAN_GROUPS];
};

/*
 * Makes the plan for the subjects of this policy state and these limits. Aborts the process if
 * memory is out.
 */
void peak_plan_make(struct peak_plan *plan, struct members *members,
                    const struct policy_state *policy_state, const struct limit *limits,
                    size_t n_limits);
void peak_plan_fini(struct peak_plan *plan);

/*
 * Commands of one client that are not yet added to the client's subject: one object for each
 * worker. Zeroed at the start.
 */
struct peak_rates_pending {
    const struct peak_plan *plan;
    struct subject *subject;
    uint64_t touched; /* groups with a count other than 0 */
    uint32_t counts[PEAK_PLAN_GROUPS];
};

/* Adds the pending commands, at least one, to the subject. The subject must still be referenced. */
void peak_rates_flush(struct peak_rates_pending *pending, uint64_t now_ns);

/* Discards pending commands. */
void peak_rates_drop(struct peak_rates_pending *pending);

/* Commands noted from now on belong to this subject. The plan is of the subject's policy. */
static inline void peak_rates_begin(struct peak_rates_pending *pending, struct subject *subject,
                                    const struct peak_plan *plan, uint64_t now_ns)
{
    if (pending->touched != 0 && pending->subject != subject)
        peak_rates_flush(pending, now_ns);
    pending->subject = subject;
    pending->plan = plan;
}

static inline unsigned peak_plan_group(const struct peak_plan *plan, const struct command *command)
{
    return plan->groups[command->id < plan->n_commands ? command->id : 0];
}

/* Notes n requests for this command. */
static inline void peak_rates_note(struct peak_rates_pending *pending,
                                   const struct command *command, uint32_t n)
{
    unsigned group = peak_plan_group(pending->plan, command);
    pending->counts[group] += n;
    pending->touched |= UINT64_C(1) << group;
}

/* Adds a command at once, for a subject other than the one in `pending`. */
void peak_rates_tell(struct subject *subject, const struct peak_plan *plan,
                     const struct command *command, uint64_t now_ns);

#endif
