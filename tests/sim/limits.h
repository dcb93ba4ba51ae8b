/*
 * The limits that weir enforces in a run, and the law they keep: in every window of w seconds at most burst + rate * w
 * commands of a subject pass; who is refused is told by which of its limits, and there was no room; and not to wait any
 * longer than there will be.
 *
 * A client does not know when weir has decided, only that it was after weir had read the command and before the answer
 * came: what must lie within a window whatever the moment was is counted, nothing else; and for who is refused all that
 * can have been charged by then. What a limit delays obeys the law of limit/queue.h when it goes.
 */
#ifndef WEIR_SIM_LIMITS_H
#define WEIR_SIM_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "tests/sim/random.h"
#include "tests/sim/world.h"

#define WINDOW_KEPT 512 /* of what has passed, the last so many are looked back at */

/* When each of the last that passed can have been decided at the earliest: sorted. */
struct window {
    uint64_t from_ns[WINDOW_KEPT];
    unsigned n;
};

/* In any `period_ns` at most `count` pass, and `burst` at once besides. */
struct window_law {
    uint64_t period_ns;
    uint32_t count, burst;
    bool is_even;      /* a part of the period lets a part of the count pass; else only a whole one */
    uint64_t slack_ns; /* of an even one: the rate may be so far ahead */
};

/* One more has passed, decided between these moments. False: that is too many. */
bool window_admits(struct window *window, const struct window_law *law, uint64_t from_ns, uint64_t to_ns);

#define LIMITS_MAX 4
#define LIMIT_SUBJECTS 16 /* three users, eight addresses */

/* What a command is, for limits. */
enum limit_class { LIMIT_READ = 1, LIMIT_WRITE = 2, LIMIT_GET = 4, LIMIT_SET = 8, LIMIT_ANY = 16 };

struct planned_limit {
    enum limit_class class;
    uint32_t count;
    uint32_t period_ms;
    uint32_t burst;
    uint32_t delay_ms; /* it makes commands wait, at most so long; 0: it refuses them */
};

struct planned_limits {
    struct planned_limit all[LIMITS_MAX];
    unsigned n;
    bool is_shadow; /* they only count */
};

/* Draw them, and write their lines behind "[policy default]". */
void limits_plan(struct planned_limits *limits, struct random *chance, char *out, size_t room);
void limits_write(const struct planned_limits *limits, char *out, size_t room);

/*
 * Those that bind in this run, from its beginning. `are_loose`: others may come, or there is not room for every subject and
 * some share funnels: then nobody knows for sure who must not be refused.
 */
void limits_use(const struct planned_limits *limits, bool are_loose);

/* From now on those or these may bind a command, until limits_changed: from then on only these. NULL: or any others. */
void limits_changing(const struct planned_limits *to);
void limits_changed(void);

/* In weir's words: "cmd.get". */
const char *limits_class_name(enum limit_class class);

/* A command of these classes has passed, and was decided between these moments. NULL: that may be. */
const char *limits_passed(unsigned subject, unsigned classes, uint64_t from_ns, uint64_t to_ns);

/* A command of these classes was answered and may have been charged by now. */
void limits_charged(unsigned subject, unsigned classes);

/* A refusal. */
struct refused {
    unsigned subject;
    unsigned classes;
    struct slice words;
    uint64_t from_ns; /* decided then, or later */
};

/*
 * NULL: that may be. `under_way` tells how many other commands of this subject and these classes may have been charged
 * and are not answered yet; LIMITS_UNKNOWN: nobody knows.
 */
#define LIMITS_UNKNOWN UINT32_MAX
extern const char limits_strange[]; /* the answer for limits that are not among them */
const char *limits_refused(const struct refused *refused, unsigned (*under_way)(unsigned subject, unsigned classes));

/*
 * Somebody leaves before all is answered. It may be any of these subjects, a bit each: of one, limits_leaves tells what
 * may still be charged; of several, nobody knows. The bell is to be rung when weir has closed its side as well.
 */
struct bell *limits_leave(unsigned subjects);
void limits_leaves(struct bell *bell, unsigned classes);

#endif
