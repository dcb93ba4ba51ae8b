/*
 * Shards of hash chains. Expired keys are freed a few chains at a time.
 *
 * A rate of a key is identified by its step, as in Redis. When a reload changes a limit, the
 * unchanged rates keep their counts.
 *
 * Each call computes the integers that Redis' script would return. reading.c and outcome.c, which
 * read Redis' answers to batches, interpret these integers. By family:
 *
 *   funnels       reading.c computes how many calls fit over a debt, and the debt after a call.
 *                 This file stores only the time when a debt is paid.
 *   windows       This file computes the present window, its usage, and when it has room, as
 *                 the script does for batches. reading.c interprets the result.
 *   calendar      computed as windows; limit/policy/calendar.c gives the bounds, to scripts too
 *   several keys  reading.c computes which keys have room
 *   penalties     outcome.c refuses; penalty.c begins a penalty, as penalty.lua does in Redis
 *
 * Warm-up, CL.THROTTLE and holders are never decided here: no [limit NAME] has these algorithms.
 */
#include "quota/local.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

#define SHARDS 16
#define CHAINS 1024     /* chains of a shard: some eight keys in each when the memory is full */
#define FORGET_CHAINS 2 /* chains swept for each new key: more keys expire than are added */
#define US_PER_S 1000000
#define RELIEF_CHAINS 64 /* chains swept when memory has no room: some 500 keys, 50 us at worst */

/* The count of one rate. */
struct count {
    int64_t step;             /* ns of a funnel's unit, us of a window; 0: a calendar window */
    uint8_t calendar;         /* enum calendar */
    uint64_t paid_ns;         /* of a funnel: when its debt is paid, monotonic */
    int64_t start_us, end_us; /* of a window, since 1970 */
    int64_t current, previous;
};

struct key {
    struct key *next; /* next key in the chain */
    uint64_t hash;
    uint64_t over_ns; /* when the key expires, monotonic */
    struct penalty_state penalty;
    uint32_t len;
    uint8_t kind, n_counts;
    struct count counts[]; /* the key's name follows */
};

struct shard {
    pthread_mutex_t lock;
    struct key **chains;  /* NULL: nothing has been counted yet */
    _Atomic size_t bytes; /* changed under the lock */
    size_t hand;          /* the next chain to sweep */
};

struct local {
    struct shard shards[SHARDS];
};

struct local *local_new(void)
{
    struct local *local = mem_zalloc(1, sizeof *local);
    for (size_t i = 0; i < SHARDS; i++)
        pthread_mutex_init(&local->shards[i].lock, NULL);
    return local;
}

static void local_free_chain(struct key *key)
{
    while (key != NULL) {
        struct key *next = key->next;
        free(key);
        key = next;
    }
}

void local_free(struct local *local)
{
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &local->shards[i];
        for (size_t c = 0; shard->chains != NULL && c < CHAINS; c++)
            local_free_chain(shard->chains[c]);
        free(shard->chains);
        pthread_mutex_destroy(&shard->lock);
    }
    free(local);
}

size_t local_bytes(const struct local *local)
{
    size_t bytes = 0;
    for (size_t i = 0; i < SHARDS; i++)
        bytes += atomic_load_explicit(&local->shards[i].bytes, memory_order_relaxed);
    return bytes;
}

/* ---- keys ---- */

static size_t local_size_of(unsigned n_counts, size_t len)
{
    return sizeof(struct key) + n_counts * sizeof(struct count) + len;
}

static char *local_name_of(struct key *key)
{
    return (char *)(key->counts + key->n_counts);
}

static void local_add_bytes(struct shard *shard, size_t bytes)
{
    atomic_store_explicit(&shard->bytes, shard->bytes + bytes, memory_order_relaxed);
}

/* Removes the key from its chain and frees it. */
static void local_drop(struct shard *shard, struct key **link)
{
    struct key *key = *link;
    *link = key->next;
    local_add_bytes(shard, -local_size_of(key->n_counts, key->len));
    free(key);
}

static void local_forget(struct shard *shard, size_t n_chains, uint64_t now_ns)
{
    for (; n_chains > 0; n_chains--) {
        struct key **link = &shard->chains[shard->hand];
        shard->hand = (shard->hand + 1) % CHAINS;
        while (*link != NULL)
            if ((*link)->over_ns <= now_ns)
                local_drop(shard, link);
            else
                link = &(*link)->next;
    }
}

/* Returns the link to the key, or the end of its chain. */
static struct key **local_find(struct shard *shard, const struct decision_request *ask,
                               uint64_t hash)
{
    struct key **link = &shard->chains[hash / SHARDS % CHAINS];
    while (*link != NULL && !((*link)->hash == hash && (*link)->kind == ask->rule.kind &&
                              slice_eq(ask->key, slice_of(local_name_of(*link), (*link)->len))))
        link = &(*link)->next;
    return link;
}

static bool has_room(struct shard *shard, size_t bytes, uint64_t now_ns)
{
    local_forget(shard, FORGET_CHAINS, now_ns);
    if (shard->bytes + bytes > LOCAL_BYTES_MAX / SHARDS)
        local_forget(shard, RELIEF_CHAINS, now_ns);
    return shard->bytes + bytes <= LOCAL_BYTES_MAX / SHARDS;
}

/* Adds a key with a zero count for each rate. NULL: no room. */
static struct key *local_add(struct shard *shard, const struct decision_request *ask, uint64_t hash,
                             uint64_t now_ns)
{
    size_t bytes = local_size_of(ask->rule.n_rates, ask->key.len);
    struct key *key = has_room(shard, bytes, now_ns) ? calloc(1, bytes) : NULL;
    if (key == NULL)
        return NULL;
    key->hash = hash;
    key->kind = ask->rule.kind;
    key->n_counts = ask->rule.n_rates;
    key->len = (uint32_t)ask->key.len;
    memcpy(local_name_of(key), ask->key.at, ask->key.len);
    for (unsigned i = 0; i < key->n_counts; i++) {
        key->counts[i].step = ask->rule.rates[i].step;
        key->counts[i].calendar = ask->rule.rates[i].calendar;
    }
    struct key **chain = &shard->chains[hash / SHARDS % CHAINS];
    key->next = *chain;
    *chain = key;
    local_add_bytes(shard, bytes);
    return key;
}

static bool is_of(const struct count *count, int64_t step, uint8_t calendar)
{
    return count->step == step && count->calendar == calendar;
}

static bool has_same_steps(const struct key *key, const struct quota_rule *rule)
{
    if (key->n_counts != rule->n_rates)
        return false;
    for (unsigned i = 0; i < rule->n_rates; i++)
        if (!is_of(&key->counts[i], rule->rates[i].step, rule->rates[i].calendar))
            return false;
    return true;
}

/* Copies the counts of the unchanged rates, after the limit's other rates have changed. */
static void local_inherit(struct key *key, const struct key *before)
{
    for (unsigned i = 0; i < key->n_counts; i++)
        for (unsigned j = 0; j < before->n_counts; j++)
            if (is_of(&key->counts[i], before->counts[j].step, before->counts[j].calendar))
                key->counts[i] = before->counts[j];
}

/* Replaces a key by one with counts for other rates. NULL: no room, and the key is unchanged. */
static struct key *refit(struct shard *shard, struct key *before,
                         const struct decision_request *ask, uint64_t now_ns)
{
    uint64_t over_ns = before->over_ns;
    before->over_ns = UINT64_MAX; /* keeps the key from being freed while the new key is added */
    struct key *key = local_add(shard, ask, before->hash, now_ns);
    before->over_ns = over_ns;
    if (key == NULL)
        return NULL;
    key->over_ns = over_ns;
    key->penalty = before->penalty;
    local_inherit(key, before);
    struct key **link = &key->next;
    while (*link != before)
        link = &(*link)->next;
    local_drop(shard, link);
    return key;
}

/* Finds or makes the key. NULL: no room for the key. */
static struct key *local_need(struct shard *shard, const struct decision_request *ask,
                              uint64_t hash, uint64_t now_ns)
{
    if (shard->chains == NULL && (shard->chains = calloc(CHAINS, sizeof *shard->chains)) == NULL)
        return NULL;
    struct key *known = *local_find(shard, ask, hash);
    if (known == NULL)
        return local_add(shard, ask, hash, now_ns);
    return has_same_steps(known, &ask->rule) ? known : refit(shard, known, ask, now_ns);
}

/* ---- funnels: numbers are debts, as funnel.lua returns them ---- */

static void read_funnels(const struct key *key, struct local_time time, int64_t *numbers)
{
    for (unsigned i = 0; i < key->n_counts; i++)
        numbers[i] = key->counts[i].paid_ns > time.now_ns
                         ? (int64_t)(key->counts[i].paid_ns - time.now_ns)
                         : 0;
}

static void charge_funnels(struct key *key, const struct decision_request *ask,
                           struct local_time time, const int64_t *numbers)
{
    struct quota_memory after;
    quota_reading(ask)->settle(ask, numbers, 1, 0, &after);
    for (unsigned i = 0; i < key->n_counts; i++) {
        key->counts[i].paid_ns = time.now_ns + (uint64_t)after.debt[i];
        if (key->counts[i].paid_ns > key->over_ns)
            key->over_ns = key->counts[i].paid_ns;
    }
}

/*
 * ---- windows: granted, and for each rate usage, retry and reset in us, as fixed.lua and
 * approx.lua ----
 */

static bool is_fixed(const struct key *key)
{
    return key->kind == QUOTA_FIXED;
}

/* Sets the starts of the present window and of the next two windows. */
static void windows_at(const struct count *count, const struct zone *zone, int64_t unix_us,
                       int64_t starts_us[3])
{
    int64_t bounds[CALENDAR_BOUNDS];
    if (count->calendar == CALENDAR_NONE) {
        for (unsigned i = 0; i < 3; i++)
            starts_us[i] = unix_us - unix_us % count->step + i * count->step;
        return;
    }
    calendar_bounds((enum calendar)count->calendar, zone, unix_us / US_PER_S, bounds);
    for (unsigned i = 0; i < 3; i++)
        starts_us[i] = bounds[1 + i] * US_PER_S;
}

/*
 * Makes the window at this time the present window. A count for the next window is left unchanged:
 * the clock has gone back by a moment. A count for any other window that has not ended moves to the
 * present window: the clock went further back, or the limit's zone changed.
 */
static void move_on(struct key *key, const struct zone *zone, int64_t unix_us)
{
    for (unsigned i = 0; i < key->n_counts; i++) {
        struct count *count = &key->counts[i];
        int64_t starts_us[3];
        windows_at(count, zone, unix_us, starts_us);
        if (count->start_us == starts_us[1])
            continue;
        if (count->end_us <= unix_us) {
            count->previous = count->end_us == starts_us[0] ? count->current : 0;
            count->current = 0;
        }
        count->start_us = starts_us[0];
        count->end_us = starts_us[1];
    }
}

static int64_t local_used_of(const struct key *key, const struct count *count, int64_t unix_us)
{
    int64_t passed = unix_us > count->start_us ? unix_us - count->start_us : 0;
    if (is_fixed(key))
        return count->current;
    __int128 part = (__int128)count->previous * (count->step - passed);
    return count->current + (int64_t)((part + count->step - 1) / count->step);
}

/* Returns the us from a window's beginning until at most `room` is left of the previous count. */
static int64_t decay(int64_t previous, int64_t room, int64_t step)
{
    return previous <= room ? 0 : step - (int64_t)((__int128)room * step / previous);
}

/* Returns the us until a call of that cost passes; 0: now; -1: never. */
static int64_t retry_of(const struct key *key, const struct count *count, int64_t room,
                        int64_t unix_us)
{
    int64_t wait;
    if (room < 0)
        return -1;
    if (count->current > room)
        wait = count->end_us - count->start_us +
               (is_fixed(key) ? 0 : decay(count->current, room, count->step));
    else
        wait = is_fixed(key) ? 0 : decay(count->previous, room - count->current, count->step);
    return wait > 0 && count->start_us + wait > unix_us ? count->start_us + wait - unix_us : 0;
}

/* Returns the us until the window is empty. */
static int64_t reset_of(const struct key *key, const struct count *count, int64_t unix_us)
{
    if (count->current > 0)
        return count->end_us + (is_fixed(key) ? 0 : count->step) - unix_us;
    return !is_fixed(key) && count->previous > 0 ? count->end_us - unix_us : 0;
}

static void read_windows(struct key *key, const struct decision_request *ask,
                         struct local_time time, int64_t *numbers)
{
    move_on(key, ask->rule.zone, time.unix_us);
    numbers[0] = 1;
    for (unsigned i = 0; i < key->n_counts; i++) {
        numbers[1 + 3 * i] = local_used_of(key, &key->counts[i], time.unix_us);
        if (numbers[1 + 3 * i] > ask->rule.rates[i].limit - ask->cost)
            numbers[0] = 0;
    }
}

/* Counts the call if it is granted, and sets the times after it. */
static void charge_windows(struct key *key, const struct decision_request *ask,
                           struct local_time time, bool is_charged, int64_t *numbers)
{
    for (unsigned i = 0; i < key->n_counts; i++) {
        struct count *count = &key->counts[i];
        count->current += is_charged ? ask->cost : 0;
        numbers[2 + 3 * i] =
            retry_of(key, count, ask->rule.rates[i].limit - ask->cost, time.unix_us);
        numbers[3 + 3 * i] = reset_of(key, count, time.unix_us);
        uint64_t over_ns = time.now_ns + (uint64_t)numbers[3 + 3 * i] * NS_PER_US;
        if (over_ns > key->over_ns)
            key->over_ns = over_ns;
    }
}

/* ---- deciding ---- */

static void local_read_key(struct key *key, const struct decision_request *ask,
                           struct local_time time, int64_t *numbers)
{
    if (quota_is_funnel(ask->rule.kind))
        read_funnels(key, time, numbers);
    else
        read_windows(key, ask, time, numbers);
}

static void charge_key(struct key *key, const struct decision_request *ask, struct local_time time,
                       bool is_charged, int64_t *numbers)
{
    if (!quota_is_funnel(ask->rule.kind))
        charge_windows(key, ask, time, is_charged, numbers);
    else if (is_charged)
        charge_funnels(key, ask, time, numbers);
}

/* The keys of a call. The shards of these keys are locked. */
struct keys {
    const struct decision_request *asks; /* one for each key */
    const uint64_t *hashes;
    unsigned n;
    struct key *at[QUOTA_PARTS_MAX];
};

static bool has_shard(const struct keys *keys, size_t shard)
{
    for (unsigned i = 0; i < keys->n; i++)
        if (keys->hashes[i] % SHARDS == shard)
            return true;
    return false;
}

/* Locks or unlocks the shards of the keys, always in index order, which avoids deadlocks. */
static void for_shards(struct local *local, const struct keys *keys,
                       int (*act)(pthread_mutex_t *mutex))
{
    for (size_t s = 0; s < SHARDS; s++)
        if (has_shard(keys, s))
            act(&local->shards[s].lock);
}

/* Finds or makes all keys of the call. False: no room for one of the keys. */
static bool need_all(struct local *local, struct keys *keys, uint64_t now_ns)
{
    uint64_t over_ns[QUOTA_PARTS_MAX];
    unsigned n = 0;
    for (; n < keys->n; n++) {
        keys->at[n] = local_need(&local->shards[keys->hashes[n] % SHARDS], &keys->asks[n],
                                 keys->hashes[n], now_ns);
        if (keys->at[n] == NULL)
            break;
        over_ns[n] = keys->at[n]->over_ns;
        /* keeps the key from being freed while the next keys are added */
        keys->at[n]->over_ns = UINT64_MAX;
    }
    for (unsigned i = 0; i < n; i++)
        keys->at[i]->over_ns = over_ns[i];
    return n == keys->n;
}

/* ---- penalties ---- */

static int64_t penalty_left(const struct key *key, uint64_t now_ns)
{
    return key->penalty.until > now_ns ? (int64_t)(key->penalty.until - now_ns) : 0;
}

/*
 * True if the call can pass before its WAIT ends. The numbers of a single funnel include WAIT
 * already.
 */
static bool local_can_wait(const struct decision_request *ask, const struct decision_request *part,
                           const int64_t *numbers)
{
    struct quota_outcome own;
    if (quota_is_funnel(ask->rule.kind))
        return false;
    quota_outcome(part, numbers, 1, 0, &own);
    return own.retry_ns >= 0 && (uint64_t)own.retry_ns <= ask->wait_ns;
}

/*
 * Begins a penalty for a key that refuses for longer than the call waits. Returns the length of the
 * penalty in ns, or 0.
 */
static int64_t penalise(struct key *key, const struct decision_request *ask,
                        const struct decision_request *part, uint64_t now_ns,
                        const int64_t *numbers)
{
    if (part->penalty.first_ms == 0 || ask->is_peek || quota_granted(part, numbers, 1) > 0 ||
        local_can_wait(ask, part, numbers))
        return 0;
    penalty_begin(&part->penalty, now_ns, &key->penalty);
    uint64_t over_ns = key->penalty.until + key->penalty.rest;
    key->over_ns = over_ns > key->over_ns ? over_ns : key->over_ns;
    return penalty_left(key, now_ns);
}

/*
 * Decides the call. A call on several keys passes if every key outside shadow mode has room. Then
 * all keys with room are charged.
 */
static void decide(const struct keys *keys, const struct decision_request *ask,
                   struct local_time time, struct quota_outcome *outcome)
{
    int64_t numbers[QUOTA_NUMBERS_MAX];
    struct quota_hold holds[QUOTA_PARTS_MAX] = {0};
    int64_t *at = numbers;
    for (unsigned i = 0; i < keys->n; at += quota_numbers(&keys->asks[i]), i++) {
        local_read_key(keys->at[i], &keys->asks[i], time, at);
        holds[i].left_ns = penalty_left(keys->at[i], time.now_ns);
    }
    bool is_charged = !ask->is_peek && quota_granted_held(ask, numbers, holds, 1) > 0;
    at = numbers;
    for (unsigned i = 0; i < keys->n; at += quota_numbers(&keys->asks[i]), i++) {
        bool fits = quota_granted_held(&keys->asks[i], at, &holds[i], 1) > 0;
        charge_key(keys->at[i], &keys->asks[i], time, is_charged && fits, at);
        if (!fits && holds[i].left_ns == 0)
            holds[i].left_ns = penalise(keys->at[i], ask, &keys->asks[i], time.now_ns, at);
    }
    quota_outcome_held(ask, numbers, holds, 1, 0, outcome);
}

bool local_decide(struct local *local, const struct decision_request *ask, const uint64_t *hashes,
                  struct local_time time, struct quota_outcome *outcome)
{
    struct keys keys = {
        .asks = decision_request_at(ask, 0), .hashes = hashes, .n = decision_request_count(ask)};
    for_shards(local, &keys, pthread_mutex_lock);
    bool has_room = need_all(local, &keys, time.now_ns);
    if (has_room)
        decide(&keys, ask, time, outcome);
    for_shards(local, &keys, pthread_mutex_unlock);
    return has_room;
}
