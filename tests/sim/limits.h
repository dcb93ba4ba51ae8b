/*
 * The limits that weir enforces in a run, and their laws. In every window of w seconds at most
 * burst + rate * w commands of a subject pass. A refusal names a limit of the subject that had no
 * room. The retry time of a refusal is no longer than the limit needs.
 *
 * The time of weir's decision is known only to lie between the read of the command and its reply.
 * So a window counts only commands that lie in it for every possible time. A refusal is judged with
 * all commands that may have been charged by then. A limit that delays obeys the law of
 * limit/queue.h at the time of sending.
 */
#ifndef WEIR_SIM_LIMITS_H
#define WEIR_SIM_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "tests/sim/random.h"
#include "tests/sim/world.h"

#define WINDOW_KEPT 512 /* number of commands kept for the check */

/* The earliest possible decision times of the last commands that passed: sorted. */
struct window {
    uint64_t from_ns[WINDOW_KEPT];
    unsigned n;
};

/* In any `period_ns` at most `count` pass, plus `burst` at once. */
struct window_law {
    uint64_t period_ns;
    uint32_t count, burst;
    /* a part of the period admits a part of the count; else only a whole period admits */
    bool is_even;
    uint64_t slack_ns; /* if is_even: by how much the rate may be ahead */
};

/* Counts one more command, decided between these moments. False: the law is broken. */
bool window_admits(struct window *window, const struct window_law *law, uint64_t from_ns,
                   uint64_t to_ns);

#define LIMITS_MAX 4
#define LIMIT_SUBJECTS 16 /* more than the largest subject: USERS + ADDRESS_BALANCER */

/* The classes of a command, as bits. */
enum limit_class { LIMIT_READ = 1, LIMIT_WRITE = 2, LIMIT_GET = 4, LIMIT_SET = 8, LIMIT_ANY = 16 };

struct planned_limit {
    enum limit_class class;
    uint32_t count;
    uint32_t period_ms;
    uint32_t burst;
    uint32_t delay_ms; /* longest delay; 0: the limit refuses */
};

struct planned_limits {
    struct planned_limit all[LIMITS_MAX];
    unsigned n;
    bool is_shadow; /* shadow mode: the limits only count */
};

/* Draws limits, and writes their lines behind "[policy default]". */
void limits_plan(struct planned_limits *limits, struct random *chance, char *out, size_t room);
void limits_write(const struct planned_limits *limits, char *out, size_t room);

/*
 * Sets the limits in force from the start of the run. `are_loose`: other limits may come, or
 * subjects may share funnels for lack of room. Then refusals are not judged.
 */
void limits_use(const struct planned_limits *limits, bool are_loose);

/*
 * changing: until limits_changed, the old or the new limits may bind a command; NULL: the new
 * limits are unknown. changed: from now on only the new limits bind.
 */
void limits_changing(const struct planned_limits *to);
void limits_changed(void);

/* The name of the class in the configuration: "cmd.get". */
const char *limits_class_name(enum limit_class class);

/*
 * A command of these classes has passed, decided between these moments. NULL: allowed; else the
 * error.
 */
const char *limits_passed(unsigned subject, unsigned classes, uint64_t from_ns, uint64_t to_ns);

/* A command of these classes was answered and may have been charged by now. */
void limits_charged(unsigned subject, unsigned classes);

/* A refusal. */
struct refused {
    unsigned subject;
    unsigned classes;
    struct slice words;
    uint64_t from_ns; /* the earliest time of the decision */
};

/*
 * NULL: allowed; else the error. `under_way` returns how many other commands of this subject and
 * these classes may be charged and are not answered yet; LIMITS_UNKNOWN: any number.
 */
#define LIMITS_UNKNOWN UINT32_MAX
extern const char limits_strange[]; /* the error for a limit that is not in force */
const char *limits_refused(const struct refused *refused,
                           unsigned (*under_way)(unsigned subject, unsigned classes));

/*
 * A client disconnects before all its requests are answered. `subjects` has a bit for each subject
 * that the client may be. With one bit, limits_leaves adds each command that may still be charged.
 * With several bits, the number of such commands is unknown. The bell must be rung once weir has
 * closed its side as well.
 */
struct bell *limits_leave(unsigned subjects);
void limits_leaves(struct bell *bell, unsigned classes);

#endif
