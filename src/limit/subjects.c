/*
 * The table of subjects: shards of hash buckets, one mutex for each shard, one cap for all shards.
 *
 * A subject is found, referenced, examined and dropped only under the mutex of its shard. A subject
 * being dropped therefore has no references and gets none. Room under the cap is counted, and
 * claimed before a subject is added. A clock hand in each shard searches for subjects to drop, a
 * few buckets at a time.
 */
#include "limit/subjects.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/count.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "limit/policy/identity.h"
#include "limit/figures/observed.h"

#define SHARDS 64
#define SHARD_BITS 6
/* buckets examined for each new subject: more than one, which drains idle subjects */
#define FORGET_BUCKETS 4
/* time between searches for connections that use an overflow subject */
#define RELIEF_EVERY_NS NS_PER_MS
/* buckets examined when the table is full: at most some 15 us of memory accesses */
#define RELIEF_BUCKETS 128

struct shard {
    pthread_mutex_t lock;
    struct subject **buckets;
    size_t n_buckets; /* 0, or a power of 2 */
    size_t count;
    size_t hand;            /* index of the bucket examined next */
    _Atomic uint64_t bytes; /* of subjects and buckets; changed under the lock */
};

struct subjects {
    struct hash_key key;
    size_t max;
    /* subjects, plus room claimed for subjects being made; <= max */
    _Atomic size_t count;
    _Atomic unsigned relief;        /* shard where the next search for room starts */
    _Atomic uint64_t relief_due_ns; /* when connections of overflow subjects may search again */
    _Atomic uint64_t n_overflows;
    struct shard shards[SHARDS];
};

/* The key of a subject in the table. */
struct wanted {
    struct policy_state *policy_state;
    struct slice name;
    uint64_t hash;
};

struct subjects *subjects_new(size_t max)
{
    struct subjects *subjects = mem_zalloc(1, sizeof *subjects);
    if (getrandom(&subjects->key, sizeof subjects->key, 0) != (ssize_t)sizeof subjects->key) {
        log_error(
            "the system has no random numbers: clients could choose names that slow weir down");
        log_flush();
        abort();
    }
    subjects->max = max;
    for (size_t i = 0; i < SHARDS; i++)
        pthread_mutex_init(&subjects->shards[i].lock, NULL);
    return subjects;
}

static void subjects_free_chain(struct subject *subject)
{
    while (subject != NULL) {
        struct subject *next = subject->next;
        subject_free_detached(subject);
        subject = next;
    }
}

void subjects_free(struct subjects *subjects)
{
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &subjects->shards[i];
        for (size_t bucket = 0; bucket < shard->n_buckets; bucket++)
            subjects_free_chain(shard->buckets[bucket]);
        free(shard->buckets);
        pthread_mutex_destroy(&shard->lock);
    }
    free(subjects);
}

size_t subjects_count(struct subjects *subjects)
{
    return atomic_load_explicit(&subjects->count, memory_order_relaxed);
}

uint64_t subjects_bytes(const struct subjects *subjects)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < SHARDS; i++)
        bytes += count_read(&subjects->shards[i].bytes);
    return bytes;
}

uint64_t subjects_overflows(struct subjects *subjects)
{
    return atomic_load_explicit(&subjects->n_overflows, memory_order_relaxed);
}

static bool subjects_is_wanted(const struct subject *subject, const struct wanted *wanted)
{
    return subject->hash == wanted->hash && subject->policy_state == wanted->policy_state &&
           slice_eq(subject_name(subject), wanted->name);
}

void subject_put(struct subjects *subjects, struct subject *subject)
{
    (void)subjects;
    /* release: the thread that drops the subject sees its charges */
    atomic_fetch_sub_explicit(&subject->holders, 1, memory_order_release);
}

/* ---- one shard, under its lock ---- */

static struct subject **subjects_bucket_of(const struct shard *shard, uint64_t hash)
{
    return &shard->buckets[hash >> SHARD_BITS & (shard->n_buckets - 1)];
}

static struct subject *subjects_find(const struct shard *shard, const struct wanted *wanted)
{
    struct subject *subject =
        shard->n_buckets > 0 ? *subjects_bucket_of(shard, wanted->hash) : NULL;
    while (subject != NULL && !subjects_is_wanted(subject, wanted))
        subject = subject->next;
    return subject;
}

static void link_in(struct shard *shard, struct subject *subject)
{
    struct subject **bucket = subjects_bucket_of(shard, subject->hash);
    subject->next = *bucket;
    *bucket = subject;
}

/*
 * Doubles the buckets when the shard has as many subjects as buckets. False only if the shard has
 * no buckets at all.
 */
static bool subjects_make_room(struct shard *shard)
{
    if (shard->count < shard->n_buckets)
        return true;
    struct shard grown = *shard;
    grown.n_buckets = shard->n_buckets > 0 ? 2 * shard->n_buckets : 1;
    grown.buckets = calloc(grown.n_buckets, sizeof(struct subject *));
    if (grown.buckets == NULL)
        return shard->n_buckets > 0; /* without memory the chains get longer, nothing worse */
    for (size_t i = 0; i < shard->n_buckets; i++) {
        struct subject *next;
        for (struct subject *subject = shard->buckets[i]; subject != NULL; subject = next) {
            next = subject->next;
            link_in(&grown, subject);
        }
    }
    count_add(&shard->bytes, (grown.n_buckets - shard->n_buckets) * sizeof(struct subject *));
    free(shard->buckets);
    shard->buckets = grown.buckets;
    shard->n_buckets = grown.n_buckets;
    return true;
}

/*
 * Drops at most `most` subjects from the bucket under the hand and advances the hand. Returns the
 * number of dropped subjects.
 */
static size_t forget_bucket(struct shard *shard, size_t most, enum forgetting which,
                            uint64_t now_ns)
{
    struct subject **link = &shard->buckets[shard->hand];
    size_t dropped = 0;
    while (*link != NULL && dropped < most) {
        struct subject *subject = *link;
        if (!subject_is_forgettable(subject, which, now_ns)) {
            link = &subject->next;
            continue;
        }
        *link = subject->next;
        observed_forget(subject->policy_state->observed, subject_name(subject),
                        atomic_load(&subject->peak_rates));
        atomic_fetch_sub_explicit(&subject->policy_state->subjects, 1, memory_order_relaxed);
        count_add(&shard->bytes, -(uint64_t)subject_bytes(subject->name_len, subject->n_funnels));
        subject_free_detached(subject);
        dropped++;
    }
    shard->count -= dropped;
    shard->hand = (shard->hand + 1) & (shard->n_buckets - 1);
    return dropped;
}

static void forget_some(struct subjects *subjects, struct shard *shard, uint64_t now_ns)
{
    size_t dropped = 0;
    for (size_t i = 0; i < FORGET_BUCKETS && i < shard->n_buckets; i++)
        dropped += forget_bucket(shard, SIZE_MAX, FORGET_EMPTY, now_ns);
    atomic_fetch_sub_explicit(&subjects->count, dropped, memory_order_relaxed);
}

/* ---- visiting all subjects ---- */

#define LOOK_BUCKETS 256 /* buckets visited at a time: some 30 us of memory accesses */

static void look_at_bucket(const struct shard *shard, size_t bucket,
                           void (*look)(void *arg, struct subject *subject), void *arg)
{
    for (struct subject *subject = shard->buckets[bucket]; subject != NULL; subject = subject->next)
        look(arg, subject);
}

/*
 * The number of buckets only ever doubles. If the shard had n buckets, the subjects of bucket i are
 * now in the buckets with index i modulo n.
 */
static void look_at_shard(struct shard *shard, void (*look)(void *arg, struct subject *subject),
                          void *arg)
{
    pthread_mutex_lock(&shard->lock);
    size_t n = shard->n_buckets;
    for (size_t i = 0; i < n; i++) {
        if (i % LOOK_BUCKETS == LOOK_BUCKETS - 1) {
            pthread_mutex_unlock(&shard->lock);
            pthread_mutex_lock(&shard->lock);
        }
        for (size_t bucket = i; bucket < shard->n_buckets; bucket += n)
            look_at_bucket(shard, bucket, look, arg);
    }
    pthread_mutex_unlock(&shard->lock);
}

void subjects_look(struct subjects *subjects, void (*look)(void *arg, struct subject *subject),
                   void *arg)
{
    for (size_t i = 0; i < SHARDS; i++)
        look_at_shard(&subjects->shards[i], look, arg);
}

/* ---- room under the cap ---- */

static bool claim_room(struct subjects *subjects)
{
    size_t count = atomic_load_explicit(&subjects->count, memory_order_relaxed);
    while (count < subjects->max)
        if (atomic_compare_exchange_weak_explicit(&subjects->count, &count, count + 1,
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
    return false;
}

/*
 * Drops one subject of the shard. The room of the subject stays counted and now belongs to the
 * caller. *buckets: number of buckets that may still be examined.
 */
static bool take_over_from(struct shard *shard, size_t *buckets, uint64_t now_ns)
{
    bool is_dropped = false;
    pthread_mutex_lock(&shard->lock);
    size_t share = *buckets < shard->n_buckets ? *buckets : shard->n_buckets;
    for (; share > 0 && !is_dropped; share--, --*buckets)
        is_dropped = forget_bucket(shard, 1, FORGET_OWING_NO_MORE, now_ns) > 0;
    pthread_mutex_unlock(&shard->lock);
    return is_dropped;
}

/*
 * Drops one subject and takes over its room. Subjects that owe only the debt inherited from the
 * overflow subject may be dropped. If these subjects stayed for the life of that debt, they alone
 * could keep the table full and renew the debt for ever. Each search starts in the shard after the
 * last search's shard.
 */
static bool take_over_room(struct subjects *subjects, uint64_t now_ns)
{
    size_t buckets = RELIEF_BUCKETS;
    for (size_t i = 0; i < SHARDS && buckets > 0; i++) {
        unsigned at =
            atomic_fetch_add_explicit(&subjects->relief, 1, memory_order_relaxed) % SHARDS;
        if (take_over_from(&subjects->shards[at], &buckets, now_ns))
            return true;
    }
    return false;
}

/*
 * True at most once each RELIEF_EVERY_NS. Connections of overflow subjects ask before each command
 * and share this budget of searches.
 */
static bool is_relief_due(struct subjects *subjects, uint64_t now_ns)
{
    uint64_t due_ns = atomic_load_explicit(&subjects->relief_due_ns, memory_order_relaxed);
    return now_ns >= due_ns && atomic_compare_exchange_strong_explicit(
                                   &subjects->relief_due_ns, &due_ns, now_ns + RELIEF_EVERY_NS,
                                   memory_order_relaxed, memory_order_relaxed);
}

static void give_back_room(struct subjects *subjects)
{
    atomic_fetch_sub_explicit(&subjects->count, 1, memory_order_relaxed);
}

/* ---- no room ---- */

static struct subject *overflow_get(struct subjects *subjects,
                                    const struct policy_state *policy_state)
{
    atomic_fetch_add_explicit(&subjects->n_overflows, 1, memory_order_relaxed);
    subject_hold(policy_state->overflow);
    return policy_state->overflow;
}

/* ---- getting ---- */

/* Makes a subject in claimed room. The shard is locked. NULL: out of memory. */
static struct subject *subjects_make(struct subjects *subjects, struct shard *shard,
                                     const struct wanted *wanted, uint64_t now_ns)
{
    uint16_t n_funnels = policy_state_slots(wanted->policy_state, PER_SUBJECT);
    void *memory =
        subjects_make_room(shard) ? calloc(1, subject_bytes(wanted->name.len, n_funnels)) : NULL;
    if (memory == NULL) {
        give_back_room(subjects);
        return NULL;
    }
    struct subject *subject = subject_init(memory, wanted->policy_state, wanted->name, n_funnels);
    atomic_fetch_add_explicit(&wanted->policy_state->subjects, 1, memory_order_relaxed);
    subject->hash = wanted->hash;
    subject_inherit_overflow(subject, now_ns);
    link_in(shard, subject);
    count_add(&shard->bytes, subject_bytes(wanted->name.len, n_funnels));
    shard->count++;
    return subject;
}

/*
 * Finds the subject, or makes the subject while the table has room. One lock covers both steps: all
 * threads get one subject for one name.
 */
static struct subject *find_or_make(struct subjects *subjects, struct shard *shard,
                                    const struct wanted *wanted, uint64_t now_ns)
{
    pthread_mutex_lock(&shard->lock);
    struct subject *subject = subjects_find(shard, wanted);
    if (subject != NULL) {
        subject_hold(subject);
    } else {
        forget_some(subjects, shard, now_ns);
        if (claim_room(subjects))
            subject = subjects_make(subjects, shard, wanted, now_ns);
    }
    pthread_mutex_unlock(&shard->lock);
    return subject;
}

/* find_or_make in room taken over from a dropped subject. */
static struct subject *find_or_make_on(struct subjects *subjects, struct shard *shard,
                                       const struct wanted *wanted, uint64_t now_ns)
{
    pthread_mutex_lock(&shard->lock);
    struct subject *subject =
        subjects_find(shard, wanted); /* another thread may have been faster */
    if (subject != NULL) {
        subject_hold(subject);
        give_back_room(subjects);
    } else {
        subject = subjects_make(subjects, shard, wanted, now_ns);
    }
    pthread_mutex_unlock(&shard->lock);
    return subject;
}

/* Adds missing funnels. If memory is out, releases the subject and returns NULL. */
static struct subject *grown(struct subjects *subjects, struct subject *subject)
{
    if (subject_grow(subject))
        return subject;
    subject_put(subjects, subject);
    return NULL;
}

struct subject *subject_try_get(struct subjects *subjects, struct policy_state *policy_state,
                                struct slice name, uint64_t now_ns)
{
    assert(name.len <= SUBJECT_NAME_MAX);
    struct wanted wanted = {policy_state, name, hash_bytes(subjects->key, name)};
    struct shard *shard = &subjects->shards[wanted.hash % SHARDS];
    struct subject *subject = find_or_make(subjects, shard, &wanted, now_ns);
    if (subject == NULL && is_relief_due(subjects, now_ns) && take_over_room(subjects, now_ns))
        subject = find_or_make_on(subjects, shard, &wanted, now_ns);
    return subject != NULL ? grown(subjects, subject) : NULL;
}

struct subject *subject_get(struct subjects *subjects, struct policy_state *policy_state,
                            struct slice name, uint64_t now_ns)
{
    assert(name.len <= SUBJECT_NAME_MAX);
    struct wanted wanted = {policy_state, name, hash_bytes(subjects->key, name)};
    struct shard *shard = &subjects->shards[wanted.hash % SHARDS];
    struct subject *subject = find_or_make(subjects, shard, &wanted, now_ns);
    if (subject == NULL && take_over_room(subjects, now_ns))
        subject = find_or_make_on(subjects, shard, &wanted, now_ns);
    if (subject != NULL)
        subject = grown(subjects, subject);
    return subject != NULL ? subject : overflow_get(subjects, policy_state);
}

/* ---- by name alone ---- */

/* The next subject of that name in the chain, under any policy. */
static struct subject *next_named(struct subject *subject, uint64_t hash, struct slice name)
{
    while (subject != NULL && !(subject->hash == hash && slice_eq(subject_name(subject), name)))
        subject = subject->next;
    return subject;
}

struct subject *subject_find(struct subjects *subjects, struct slice name)
{
    uint64_t hash = hash_bytes(subjects->key, name);
    struct shard *shard = &subjects->shards[hash % SHARDS];
    pthread_mutex_lock(&shard->lock);
    struct subject *subject =
        shard->n_buckets > 0 ? next_named(*subjects_bucket_of(shard, hash), hash, name) : NULL;
    if (subject != NULL)
        subject_hold(subject);
    pthread_mutex_unlock(&shard->lock);
    return subject != NULL ? grown(subjects, subject) : NULL;
}

bool subjects_have(struct subjects *subjects, struct slice name)
{
    struct subject *subject = subject_find(subjects, name);
    if (subject != NULL)
        subject_put(subjects, subject);
    return subject != NULL;
}

size_t subjects_forgive(struct subjects *subjects, struct slice name)
{
    uint64_t hash = hash_bytes(subjects->key, name);
    struct shard *shard = &subjects->shards[hash % SHARDS];
    size_t n = 0;
    pthread_mutex_lock(&shard->lock);
    struct subject *subject = shard->n_buckets > 0 ? *subjects_bucket_of(shard, hash) : NULL;
    while ((subject = next_named(subject, hash, name)) != NULL) {
        subject_forgive(subject);
        subject = subject->next;
        n++;
    }
    pthread_mutex_unlock(&shard->lock);
    return n;
}
