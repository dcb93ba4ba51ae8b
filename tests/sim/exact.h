/*
 * What LIMIT must answer on a key that only one client uses, to the last digit. This model
 * implements docs/algorithms.md a second time, for a clock that does not go back. The model shares
 * no code with weir. Comments name the sentences of that page (F3, W1 ...).
 *
 * Times are Unix time in us; in funnels in ns. A key is a value: copied, compared with memcmp,
 * tried on a copy.
 */
#ifndef WEIR_SIM_EXACT_H
#define WEIR_SIM_EXACT_H

#include <stdbool.h>
#include <stdint.h>

#define EXACT_RATES 3  /* of one call */
#define EXACT_KEPT 8   /* rates of a key that still count */
#define EXACT_LOG 96   /* entries of a log that are modelled; a key with more is overfull */
#define EXACT_PARTS 3  /* keys of one call */
#define EXACT_FIELDS 6 /* most fields of a reply; refused_by is not counted */
#define EXACT_NEVER INT64_MAX
#define EXACT_MOST ((INT64_C(1) << 53))

enum exact_kind {
    EXACT_NONE,
    EXACT_FUNNEL,
    EXACT_BUCKET,
    EXACT_WARM,
    EXACT_FIXED,
    EXACT_APPROX,
    EXACT_SLIDING
};
enum exact_mode { EXACT_TAKE, EXACT_FORCE, EXACT_PARTIAL, EXACT_BORROW, EXACT_CREDIT };

struct exact_rate {
    int64_t count, period_us, burst;
    char letter; /* d, w or m: calendar period, and period_us is 0; else '\0' */
};

struct exact_call {
    enum exact_kind kind;
    enum exact_mode mode;
    struct exact_rate rates[EXACT_RATES];
    unsigned n_rates;
    int64_t cost, wait_ms, warmup_ns;
    int64_t first_ms, longest_ms; /* PENALTY; 0: none */
    bool is_peek, counts_all, is_from_first;
    bool is_held;    /* refused by something other than its rates: a penalty, or another key */
    bool room_alone; /* of several keys: only other keys refuse */
};

struct exact_funnel {
    int64_t interval, tat, peak; /* interval in ns, tat in ns since 1970, peak in steps of 4 ms */
};

struct exact_window {
    int64_t period, start, used, before; /* us; before: units of the previous window, APPROX */
    bool is_first;
    char letter;
};

struct exact_entry {
    int64_t at, units;
};

struct exact_rest {
    int64_t interval, warmup, debt, rest; /* ns */
};

struct exact_key {
    enum exact_kind kind;
    unsigned n;
    int64_t end_us;  /* when the key expires; 0: no key */
    int64_t over_us; /* log: until when its entries are needed; warm bucket: when it was written */
    bool is_overfull;
    bool has_penalty;
    int64_t till_us, span_ms, last_ms, rest_ms; /* P1 */
    union {
        struct exact_funnel funnels[EXACT_KEPT];
        struct exact_window windows[EXACT_KEPT];
        struct exact_rest rests[EXACT_KEPT];
        struct exact_entry log[EXACT_LOG];
    };
};

/* T1 before rounding: retry and reset in ns. A retry of 0 or less: the call passes. */
struct exact_told {
    const char *wrong; /* first words of the error; NULL: the other fields hold */
    bool is_limited;
    int64_t limit, remaining, retry, reset, granted;
    int64_t waits;  /* ns that the call waits, O3 */
    int refused_by; /* index of the key that refuses, of several; -1: none */
};

/* Decides, and charges the key. */
struct exact_told exact_ask(struct exact_key *key, const struct exact_call *call, int64_t now_us);

/* M1 to M7: all keys or none. */
struct exact_told exact_ask_all(struct exact_key *keys, const struct exact_call *calls, unsigned n,
                                int64_t now_us);

/* B1, B2. Returns the reply; BAN replies 1. */
int64_t exact_ban(struct exact_key *key, enum exact_kind kind, int64_t ms, int64_t now_us);
int64_t exact_unban(struct exact_key *key, int64_t now_us);

/* K1: drops the key if it has expired by now_us. */
void exact_age(struct exact_key *key, int64_t now_us);

/* Writes the five or six integers of the reply. Returns how many. */
unsigned exact_fields(const struct exact_told *told, const struct exact_call *call,
                      int64_t fields[EXACT_FIELDS]);

/* ---- for the algorithms ---- */

/*
 * An algorithm's decision: the reply, whether the key changes, and its lifetime in ms after that.
 */
struct exact_step {
    struct exact_told told;
    bool has_changed;
    int64_t lives_ms;
};

struct exact_row {
    int64_t retry, limit, remaining, reset;
};

typedef struct exact_step exact_algorithm(struct exact_key *key, const struct exact_call *call,
                                          int64_t now_us);
exact_algorithm exact_funnel_ask, exact_warm_ask, exact_window_ask, exact_log_ask;
int64_t exact_log_lives(const struct exact_key *key, int64_t now_us);

struct exact_told exact_refused(const struct exact_row *rows, unsigned n);
struct exact_told exact_passed(const struct exact_row *rows, unsigned n, int64_t granted);

static inline int64_t exact_within(int64_t number, int64_t least, int64_t most)
{
    return number < least ? least : number > most ? most : number;
}

static inline int64_t exact_ceil(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

static inline int64_t exact_floor(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static inline int64_t exact_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t exact_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* True if no rate can refuse the call. */
static inline bool exact_is_sure(const struct exact_call *call)
{
    return call->cost == 0 || call->mode == EXACT_FORCE || call->mode == EXACT_CREDIT;
}

static inline bool exact_looks(const struct exact_call *call)
{
    return call->is_peek || call->cost == 0;
}

/* O5: PARTIAL is as many tries of one unit. */
static inline int64_t exact_tries(const struct exact_call *call)
{
    return call->mode == EXACT_PARTIAL ? call->cost : 1;
}

/* Units that each try takes. */
static inline int64_t exact_charge(const struct exact_call *call)
{
    return call->mode == EXACT_PARTIAL ? 1 : call->mode == EXACT_CREDIT ? -call->cost : call->cost;
}

#endif
