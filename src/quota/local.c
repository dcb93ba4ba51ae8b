/*
 * Shards of hash chains. Keys that count no more are forgotten a few chains at a time.
 *
 * A rate of a key is identified by its step, as in Redis; so when a reload changes a limit, the
 * rates that stay keep their counts.
 *
 * For each call the same numbers are computed that Redis' script would return. What they mean is
 * worked out by the functions that read Redis' answers to batches: reading.c and outcome.c. By
 * family:
 *
 *   funnels       reading.c says what fits over a debt, and what is owed after a call. Only when
 *                 debts are paid is kept here.
 *   windows       Which window it is, what it holds and when it has room is worked out here alone:
 *                 for batches the script counts. reading.c reads the result.
 *   calendar      as windows; limit/policy/calendar.c gives the bounds, to scripts too
 *   several keys  reading.c says which of them have room
 *   penalties     outcome.c refuses by them; penalty.c begins them, as penalty.lua does in Redis
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
#define CHAINS 1024     /* chains of a shard: some eight keys in each when its memory is full */
#define FORGET_CHAINS 2 /* looked at for each newcomer: more than come */
#define US_PER_S 1000000
#define RELIEF_CHAINS 64 /* when there is no room: some 500 keys, 50 us at worst */

/* What one rate has counted. */
struct count {
    int64_t step;             /* ns of a funnel's unit, us of a window; 0: of the calendar */
    uint8_t calendar;         /* enum calendar */
    uint64_t paid_ns;         /* of a funnel: when its debt is paid, monotonic */
    int64_t start_us, end_us; /* of a window, since 1970 */
    int64_t current, previous;
};

struct key {
    struct key *next; /* in its chain */
    uint64_t hash;
    uint64_t over_ns; /* until when any of it counts, monotonic */
    struct penalty_state penalty;
    uint32_t len;
    uint8_t kind, n_counts;
    struct count counts[]; /* and behind them its name */
};

struct shard {
    pthread_mutex_t lock;
    struct key **chains;  /* NULL: nothing has been counted yet */
    _Atomic size_t bytes; /* changed under the lock */
    size_t hand;          /* the chain that is looked at next */
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

static void free_chain(struct key *key)
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
            free_chain(shard->chains[c]);
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

static size_t size_of(unsigned n_counts, size_t len)
{
    return sizeof(struct key) + n_counts * sizeof(struct count) + len;
}

static char *name_of(struct key *key)
{
    return (char *)(key->counts + key->n_counts);
}

static void add_bytes(struct shard *shard, size_t bytes)
{
    atomic_store_explicit(&shard->bytes, shard->bytes + bytes, memory_order_relaxed);
}

/* Remove it from its chain and free it. */
static void drop(struct shard *shard, struct key **link)
{
    struct key *key = *link;
    *link = key->next;
    add_bytes(shard, -size_of(key->n_counts, key->len));
    free(key);
}

static void forget(struct shard *shard, size_t n_chains, uint64_t now_ns)
{
    for (; n_chains > 0; n_chains--) {
        struct key **link = &shard->chains[shard->hand];
        shard->hand = (shard->hand + 1) % CHAINS;
        while (*link != NULL)
            if ((*link)->over_ns <= now_ns)
                drop(shard, link);
            else
                link = &(*link)->next;
    }
}

/* The link to the key, or the end of its chain. */
static struct key **find(struct shard *shard, const struct quota_ask *ask, uint64_t hash)
{
    struct key **link = &shard->chains[hash / SHARDS % CHAINS];
    while (*link != NULL && !((*link)->hash == hash && (*link)->kind == ask->rule.kind &&
                              slice_eq(ask->key, slice_of(name_of(*link), (*link)->len))))
        link = &(*link)->next;
    return link;
}

static bool has_room(struct shard *shard, size_t bytes, uint64_t now_ns)
{
    forget(shard, FORGET_CHAINS, now_ns);
    if (shard->bytes + bytes > LOCAL_BYTES_MAX / SHARDS)
        forget(shard, RELIEF_CHAINS, now_ns);
    return shard->bytes + bytes <= LOCAL_BYTES_MAX / SHARDS;
}

/* With a count for each rate, which is nothing yet. NULL: there is no room. */
static struct key *add(struct shard *shard, const struct quota_ask *ask, uint64_t hash, uint64_t now_ns)
{
    size_t bytes = size_of(ask->rule.n_rates, ask->key.len);
    struct key *key = has_room(shard, bytes, now_ns) ? calloc(1, bytes) : NULL;
    if (key == NULL)
        return NULL;
    key->hash = hash;
    key->kind = ask->rule.kind;
    key->n_counts = ask->rule.n_rates;
    key->len = (uint32_t)ask->key.len;
    memcpy(name_of(key), ask->key.at, ask->key.len);
    for (unsigned i = 0; i < key->n_counts; i++) {
        key->counts[i].step = ask->rule.rates[i].step;
        key->counts[i].calendar = ask->rule.rates[i].calendar;
    }
    struct key **chain = &shard->chains[hash / SHARDS % CHAINS];
    key->next = *chain;
    *chain = key;
    add_bytes(shard, bytes);
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

/* The limit's rates have changed: carry over the counts of those that stay. */
static void inherit(struct key *key, const struct key *before)
{
    for (unsigned i = 0; i < key->n_counts; i++)
        for (unsigned j = 0; j < before->n_counts; j++)
            if (is_of(&key->counts[i], before->counts[j].step, before->counts[j].calendar))
                key->counts[i] = before->counts[j];
}

/* The same key with counts for other rates. NULL: there is no room, and it is as it was. */
static struct key *refit(struct shard *shard, struct key *before, const struct quota_ask *ask, uint64_t now_ns)
{
    uint64_t over_ns = before->over_ns;
    before->over_ns = UINT64_MAX; /* not to be forgotten meanwhile */
    struct key *key = add(shard, ask, before->hash, now_ns);
    before->over_ns = over_ns;
    if (key == NULL)
        return NULL;
    key->over_ns = over_ns;
    key->penalty = before->penalty;
    inherit(key, before);
    struct key **link = &key->next;
    while (*link != before)
        link = &(*link)->next;
    drop(shard, link);
    return key;
}

/* NULL: there is no room for it. */
static struct key *need(struct shard *shard, const struct quota_ask *ask, uint64_t hash, uint64_t now_ns)
{
    if (shard->chains == NULL && (shard->chains = calloc(CHAINS, sizeof *shard->chains)) == NULL)
        return NULL;
    struct key *known = *find(shard, ask, hash);
    if (known == NULL)
        return add(shard, ask, hash, now_ns);
    return has_same_steps(known, &ask->rule) ? known : refit(shard, known, ask, now_ns);
}

/* ---- funnels: numbers are debts, as funnel.lua returns them ---- */

static void read_funnels(const struct key *key, struct local_time time, int64_t *numbers)
{
    for (unsigned i = 0; i < key->n_counts; i++)
        numbers[i] = key->counts[i].paid_ns > time.now_ns ? (int64_t)(key->counts[i].paid_ns - time.now_ns) : 0;
}

static void charge_funnels(struct key *key, const struct quota_ask *ask, struct local_time time, const int64_t *numbers)
{
    struct quota_memory after;
    quota_reading(ask)->settle(ask, numbers, 1, 0, &after);
    for (unsigned i = 0; i < key->n_counts; i++) {
        key->counts[i].paid_ns = time.now_ns + (uint64_t)after.debt[i];
        if (key->counts[i].paid_ns > key->over_ns)
            key->over_ns = key->counts[i].paid_ns;
    }
}

/* ---- windows: granted, and of each rate used, retry and reset in us, as fixed.lua and approx.lua return them ---- */

static bool is_fixed(const struct key *key)
{
    return key->kind == QUOTA_FIXED;
}

/* When the present window begins, the next one, and that one ends. */
static void windows_at(const struct count *count, const struct zone *zone, int64_t unix_us, int64_t starts_us[3])
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
 * What is over counts no more. The next window stays when the clock goes back by a moment; any other one that is not
 * over (the clock went further back, the limit has another zone now) becomes the present one.
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

static int64_t used_of(const struct key *key, const struct count *count, int64_t unix_us)
{
    int64_t passed = unix_us > count->start_us ? unix_us - count->start_us : 0;
    if (is_fixed(key))
        return count->current;
    __int128 part = (__int128)count->previous * (count->step - passed);
    return count->current + (int64_t)((part + count->step - 1) / count->step);
}

/* us from a window's beginning until no more than `room` is left of what the one before it held. */
static int64_t decay(int64_t previous, int64_t room, int64_t step)
{
    return previous <= room ? 0 : step - (int64_t)((__int128)room * step / previous);
}

/* us until a call of that cost passes; 0: now; -1: never. */
static int64_t retry_of(const struct key *key, const struct count *count, int64_t room, int64_t unix_us)
{
    int64_t wait;
    if (room < 0)
        return -1;
    if (count->current > room)
        wait = count->end_us - count->start_us + (is_fixed(key) ? 0 : decay(count->current, room, count->step));
    else
        wait = is_fixed(key) ? 0 : decay(count->previous, room - count->current, count->step);
    return wait > 0 && count->start_us + wait > unix_us ? count->start_us + wait - unix_us : 0;
}

/* us until the window is empty. */
static int64_t reset_of(const struct key *key, const struct count *count, int64_t unix_us)
{
    if (count->current > 0)
        return count->end_us + (is_fixed(key) ? 0 : count->step) - unix_us;
    return !is_fixed(key) && count->previous > 0 ? count->end_us - unix_us : 0;
}

static void read_windows(struct key *key, const struct quota_ask *ask, struct local_time time, int64_t *numbers)
{
    move_on(key, ask->rule.zone, time.unix_us);
    numbers[0] = 1;
    for (unsigned i = 0; i < key->n_counts; i++) {
        numbers[1 + 3 * i] = used_of(key, &key->counts[i], time.unix_us);
        if (numbers[1 + 3 * i] > ask->rule.rates[i].limit - ask->cost)
            numbers[0] = 0;
    }
}

/* Count the call if it is granted, and set the times after it. */
static void charge_windows(struct key *key, const struct quota_ask *ask, struct local_time time, bool is_charged,
                           int64_t *numbers)
{
    for (unsigned i = 0; i < key->n_counts; i++) {
        struct count *count = &key->counts[i];
        count->current += is_charged ? ask->cost : 0;
        numbers[2 + 3 * i] = retry_of(key, count, ask->rule.rates[i].limit - ask->cost, time.unix_us);
        numbers[3 + 3 * i] = reset_of(key, count, time.unix_us);
        uint64_t over_ns = time.now_ns + (uint64_t)numbers[3 + 3 * i] * NS_PER_US;
        if (over_ns > key->over_ns)
            key->over_ns = over_ns;
    }
}

/* ---- deciding ---- */

static void read_key(struct key *key, const struct quota_ask *ask, struct local_time time, int64_t *numbers)
{
    if (quota_is_funnel(ask->rule.kind))
        read_funnels(key, time, numbers);
    else
        read_windows(key, ask, time, numbers);
}

static void charge_key(struct key *key, const struct quota_ask *ask, struct local_time time, bool is_charged,
                       int64_t *numbers)
{
    if (!quota_is_funnel(ask->rule.kind))
        charge_windows(key, ask, time, is_charged, numbers);
    else if (is_charged)
        charge_funnels(key, ask, time, numbers);
}

/* The keys of a call, with the locks of their shards. */
struct keys {
    const struct quota_ask *asks; /* one for each */
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

/* Locks or unlocks the shards of the keys, always in the same order. */
static void for_shards(struct local *local, const struct keys *keys, int (*act)(pthread_mutex_t *mutex))
{
    for (size_t s = 0; s < SHARDS; s++)
        if (has_shard(keys, s))
            act(&local->shards[s].lock);
}

/* False: there is no room for one of them. */
static bool need_all(struct local *local, struct keys *keys, uint64_t now_ns)
{
    uint64_t over_ns[QUOTA_PARTS_MAX];
    unsigned n = 0;
    for (; n < keys->n; n++) {
        keys->at[n] = need(&local->shards[keys->hashes[n] % SHARDS], &keys->asks[n], keys->hashes[n], now_ns);
        if (keys->at[n] == NULL)
            break;
        over_ns[n] = keys->at[n]->over_ns;
        keys->at[n]->over_ns = UINT64_MAX; /* not to be forgotten while the others are looked for */
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

/* True if it can pass before its WAIT is over. A single funnel has counted WAIT in already. */
static bool can_wait(const struct quota_ask *ask, const struct quota_ask *part, const int64_t *numbers)
{
    struct quota_outcome own;
    if (quota_is_funnel(ask->rule.kind))
        return false;
    quota_outcome(part, numbers, 1, 0, &own);
    return own.retry_ns >= 0 && (uint64_t)own.retry_ns <= ask->wait_ns;
}

/* A key that refuses, and for longer than is waited, has a penalty from now on. Returns how long, or 0. */
static int64_t penalise(struct key *key, const struct quota_ask *ask, const struct quota_ask *part, uint64_t now_ns,
                        const int64_t *numbers)
{
    if (part->penalty.first_ms == 0 || ask->is_peek || quota_granted(part, numbers, 1) > 0 ||
        can_wait(ask, part, numbers))
        return 0;
    penalty_begin(&part->penalty, now_ns, &key->penalty);
    uint64_t over_ns = key->penalty.until + key->penalty.rest;
    key->over_ns = over_ns > key->over_ns ? over_ns : key->over_ns;
    return penalty_left(key, now_ns);
}

/* Of several keys those that have room are charged when all that bind have it. */
static void decide(const struct keys *keys, const struct quota_ask *ask, struct local_time time,
                   struct quota_outcome *outcome)
{
    int64_t numbers[QUOTA_NUMBERS_MAX];
    struct quota_hold holds[QUOTA_PARTS_MAX] = {0};
    int64_t *at = numbers;
    for (unsigned i = 0; i < keys->n; at += quota_numbers(&keys->asks[i]), i++) {
        read_key(keys->at[i], &keys->asks[i], time, at);
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

bool local_decide(struct local *local, const struct quota_ask *ask, const uint64_t *hashes, struct local_time time,
                  struct quota_outcome *outcome)
{
    struct keys keys = {.asks = quota_ask_at(ask, 0), .hashes = hashes, .n = quota_ask_count(ask)};
    for_shards(local, &keys, pthread_mutex_lock);
    bool has_room = need_all(local, &keys, time.now_ns);
    if (has_room)
        decide(&keys, ask, time, outcome);
    for_shards(local, &keys, pthread_mutex_unlock);
    return has_room;
}
