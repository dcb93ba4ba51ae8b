/*
 * The limits that weir enforces in a run, and the law they keep: in every window of w seconds at most burst + rate * w
 * commands of a subject pass; who is refused is told by which of its limits.
 *
 * A client does not know when weir has decided, only that it was after weir had read the command and before the answer
 * came: what must lie within a window whatever the moment was is counted, nothing else.
 */
#ifndef WEIR_SIM_LIMITS_H
#define WEIR_SIM_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "tests/sim/random.h"

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
    bool is_even; /* a part of the period lets a part of the count pass; else only a whole one */
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
};

struct planned_limits {
    struct planned_limit all[LIMITS_MAX];
    unsigned n;
    bool is_shadow; /* they only count */
};

/* Draw them, and write their lines behind "[policy default]". */
void limits_plan(struct planned_limits *limits, struct random *chance, char *out, size_t room);
void limits_write(const struct planned_limits *limits, char *out, size_t room);

/* Those that bind in this run. */
void limits_use(const struct planned_limits *limits);

/* From now on those or these may bind a command, until limits_changed: from then on only these. NULL: or any others. */
void limits_changing(const struct planned_limits *to);
void limits_changed(void);

/* In weir's words: "cmd.get". */
const char *limits_class_name(enum limit_class class);

/* A command of these classes has passed, and was decided between these moments. NULL: that may be. */
const char *limits_passed(unsigned subject, unsigned classes, uint64_t from_ns, uint64_t to_ns);

/* A command of these classes was refused with these words, not before that moment. NULL: that may be. */
const char *limits_refused(unsigned subject, unsigned classes, uint64_t from_ns, struct slice words);

#endif
