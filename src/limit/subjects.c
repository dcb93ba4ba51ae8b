/*
 * The table of subjects: shards of hash buckets, each shard under its own mutex, one cap on all of them together.
 *
 * A subject is found, held, examined and dropped only under its shard's mutex, so one that is dropped has no holder and
 * gets none. Room under the cap is counted: whoever adds a subject claims room for it first. Each shard is searched for
 * subjects to forget like a clock's hand goes, a few buckets at a time.
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
#define FORGET_BUCKETS 4          /* looked at for each newcomer: more than come, so that the idle ones go */
#define RELIEF_EVERY_NS NS_PER_MS /* for those who are in an overflow subject already */
#define RELIEF_BUCKETS 128        /* looked at when the table is full: some 15 us of memory accesses at worst */

struct shard {
    pthread_mutex_t lock;
    struct subject **buckets;
    size_t n_buckets; /* 0, or a power of 2 */
    size_t count;
    size_t hand;            /* the bucket that is examined next */
    _Atomic uint64_t bytes; /* of subjects and buckets; changed under the lock */
};

struct subjects {
    struct hash_key key;
    size_t max;
    _Atomic size_t count;           /* subjects, and room claimed for those being made; <= max */
    _Atomic unsigned relief;        /* the shard where the next search for room starts */
    _Atomic uint64_t relief_due_ns; /* when those in overflow subjects may search again */
    _Atomic uint64_t n_overflows;
    struct shard shards[SHARDS];
};

/* The key of the table. */
struct wanted {
    struct record *record;
    struct slice name;
    uint64_t hash;
};

struct subjects *subjects_new(size_t max)
{
    struct subjects *subjects = mem_zalloc(1, sizeof *subjects);
    if (getrandom(&subjects->key, sizeof subjects->key, 0) != (ssize_t)sizeof subjects->key) {
        log_error("no random numbers from the system: names could be chosen to slow weir down");
        log_flush();
        abort();
    }
    subjects->max = max;
    for (size_t i = 0; i < SHARDS; i++)
        pthread_mutex_init(&subjects->shards[i].lock, NULL);
    return subjects;
}

static void free_chain(struct subject *subject)
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
            free_chain(shard->buckets[bucket]);
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

static bool is_wanted(const struct subject *subject, const struct wanted *wanted)
{
    return subject->hash == wanted->hash && subject->record == wanted->record &&
           slice_eq(subject_name(subject), wanted->name);
}

void subject_put(struct subjects *subjects, struct subject *subject)
{
    (void)subjects;
    atomic_fetch_sub_explicit(&subject->holders, 1,
                              memory_order_release); /* so that whoever forgets it sees its charges */
}

/* ---- one shard, under its lock ---- */

static struct subject **bucket_of(const struct shard *shard, uint64_t hash)
{
    return &shard->buckets[hash >> SHARD_BITS & (shard->n_buckets - 1)];
}

static struct subject *find(const struct shard *shard, const struct wanted *wanted)
{
    struct subject *subject = shard->n_buckets > 0 ? *bucket_of(shard, wanted->hash) : NULL;
    while (subject != NULL && !is_wanted(subject, wanted))
        subject = subject->next;
    return subject;
}

static void link_in(struct shard *shard, struct subject *subject)
{
    struct subject **bucket = bucket_of(shard, subject->hash);
    subject->next = *bucket;
    *bucket = subject;
}

/* Twice the buckets when there are as many subjects. False only when there is no bucket at all. */
static bool make_room(struct shard *shard)
{
    if (shard->count < shard->n_buckets)
        return true;
    struct shard grown = *shard;
    grown.n_buckets = shard->n_buckets > 0 ? 2 * shard->n_buckets : 1;
    grown.buckets = calloc(grown.n_buckets, sizeof(struct subject *));
    if (grown.buckets == NULL)
        return shard->n_buckets > 0; /* longer chains, nothing worse */
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

/* Drop from the bucket under the hand what may be forgotten, at most `most`; the hand goes on. How many went. */
static size_t forget_bucket(struct shard *shard, size_t most, enum forgetting which, uint64_t now_ns)
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
        observed_forget(subject->record->observed, subject_name(subject), atomic_load(&subject->demand));
        atomic_fetch_sub_explicit(&subject->record->subjects, 1, memory_order_relaxed);
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

/* ---- looking at all ---- */

#define LOOK_BUCKETS 256 /* at a time: some 30 us of memory accesses */

static void look_at_bucket(const struct shard *shard, size_t bucket, void (*look)(void *arg, struct subject *subject),
                           void *arg)
{
    for (struct subject *subject = shard->buckets[bucket]; subject != NULL; subject = subject->next)
        look(arg, subject);
}

/* Buckets only ever become twice as many: what was in one of the first n is in those that are as much modulo n. */
static void look_at_shard(struct shard *shard, void (*look)(void *arg, struct subject *subject), void *arg)
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

void subjects_look(struct subjects *subjects, void (*look)(void *arg, struct subject *subject), void *arg)
{
    for (size_t i = 0; i < SHARDS; i++)
        look_at_shard(&subjects->shards[i], look, arg);
}

/* ---- room under the cap ---- */

static bool claim_room(struct subjects *subjects)
{
    size_t count = atomic_load_explicit(&subjects->count, memory_order_relaxed);
    while (count < subjects->max)
        if (atomic_compare_exchange_weak_explicit(&subjects->count, &count, count + 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    return false;
}

/* Drop one subject of the shard; its room stays counted, for the caller. *buckets is how many may still be examined. */
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
 * Forget one subject and take over its room. Subjects that owe only what they inherited from the overflow subject may
 * go too: if they stayed as long as that debt lasts, they alone could keep the table full, and the debt be renewed for
 * ever. Each search starts in the shard after the last one's.
 */
static bool take_over_room(struct subjects *subjects, uint64_t now_ns)
{
    size_t buckets = RELIEF_BUCKETS;
    for (size_t i = 0; i < SHARDS && buckets > 0; i++) {
        unsigned at = atomic_fetch_add_explicit(&subjects->relief, 1, memory_order_relaxed) % SHARDS;
        if (take_over_from(&subjects->shards[at], &buckets, now_ns))
            return true;
    }
    return false;
}

/* Whoever is in the overflow subject asks before each command: they all together search now and then. */
static bool is_relief_due(struct subjects *subjects, uint64_t now_ns)
{
    uint64_t due_ns = atomic_load_explicit(&subjects->relief_due_ns, memory_order_relaxed);
    return now_ns >= due_ns &&
           atomic_compare_exchange_strong_explicit(&subjects->relief_due_ns, &due_ns, now_ns + RELIEF_EVERY_NS,
                                                   memory_order_relaxed, memory_order_relaxed);
}

static void give_back_room(struct subjects *subjects)
{
    atomic_fetch_sub_explicit(&subjects->count, 1, memory_order_relaxed);
}

/* ---- those for whom there is no room ---- */

static struct subject *overflow_get(struct subjects *subjects, const struct record *record)
{
    atomic_fetch_add_explicit(&subjects->n_overflows, 1, memory_order_relaxed);
    subject_hold(record->overflow);
    return record->overflow;
}

/* ---- getting ---- */

/* Make what was not found, in room that is claimed. The shard is locked. NULL when there is no memory. */
static struct subject *make(struct subjects *subjects, struct shard *shard, const struct wanted *wanted,
                            uint64_t now_ns)
{
    uint16_t n_funnels = record_slots(wanted->record, PER_SUBJECT);
    void *memory = make_room(shard) ? calloc(1, subject_bytes(wanted->name.len, n_funnels)) : NULL;
    if (memory == NULL) {
        give_back_room(subjects);
        return NULL;
    }
    struct subject *subject = subject_init(memory, wanted->record, wanted->name, n_funnels);
    atomic_fetch_add_explicit(&wanted->record->subjects, 1, memory_order_relaxed);
    subject->hash = wanted->hash;
    subject_inherit_overflow(subject, now_ns);
    link_in(shard, subject);
    count_add(&shard->bytes, subject_bytes(wanted->name.len, n_funnels));
    shard->count++;
    return subject;
}

/* Find, or make while there is room: under one lock, so that all who ask for one name get the same subject. */
static struct subject *find_or_make(struct subjects *subjects, struct shard *shard, const struct wanted *wanted,
                                    uint64_t now_ns)
{
    pthread_mutex_lock(&shard->lock);
    struct subject *subject = find(shard, wanted);
    if (subject != NULL) {
        subject_hold(subject);
    } else {
        forget_some(subjects, shard, now_ns);
        if (claim_room(subjects))
            subject = make(subjects, shard, wanted, now_ns);
    }
    pthread_mutex_unlock(&shard->lock);
    return subject;
}

/* The same with room that was taken from another subject. */
static struct subject *find_or_make_on(struct subjects *subjects, struct shard *shard, const struct wanted *wanted,
                                       uint64_t now_ns)
{
    pthread_mutex_lock(&shard->lock);
    struct subject *subject = find(shard, wanted); /* another thread may have been faster */
    if (subject != NULL) {
        subject_hold(subject);
        give_back_room(subjects);
    } else {
        subject = make(subjects, shard, wanted, now_ns);
    }
    pthread_mutex_unlock(&shard->lock);
    return subject;
}

/* Its owner's, once it has all its funnels; else let go again, and NULL. */
static struct subject *grown(struct subjects *subjects, struct subject *subject)
{
    if (subject_grow(subject))
        return subject;
    subject_put(subjects, subject);
    return NULL;
}

struct subject *subject_try_get(struct subjects *subjects, struct record *record, struct slice name, uint64_t now_ns)
{
    assert(name.len <= SUBJECT_NAME_MAX);
    struct wanted wanted = {record, name, hash_bytes(subjects->key, name)};
    struct shard *shard = &subjects->shards[wanted.hash % SHARDS];
    struct subject *subject = find_or_make(subjects, shard, &wanted, now_ns);
    if (subject == NULL && is_relief_due(subjects, now_ns) && take_over_room(subjects, now_ns))
        subject = find_or_make_on(subjects, shard, &wanted, now_ns);
    return subject != NULL ? grown(subjects, subject) : NULL;
}

struct subject *subject_get(struct subjects *subjects, struct record *record, struct slice name, uint64_t now_ns)
{
    assert(name.len <= SUBJECT_NAME_MAX);
    struct wanted wanted = {record, name, hash_bytes(subjects->key, name)};
    struct shard *shard = &subjects->shards[wanted.hash % SHARDS];
    struct subject *subject = find_or_make(subjects, shard, &wanted, now_ns);
    if (subject == NULL && take_over_room(subjects, now_ns))
        subject = find_or_make_on(subjects, shard, &wanted, now_ns);
    if (subject != NULL)
        subject = grown(subjects, subject);
    return subject != NULL ? subject : overflow_get(subjects, record);
}

/* ---- by name alone ---- */

/* The next in the chain that is called so, under whatever policy. */
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
    struct subject *subject = shard->n_buckets > 0 ? next_named(*bucket_of(shard, hash), hash, name) : NULL;
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
    struct subject *subject = shard->n_buckets > 0 ? *bucket_of(shard, hash) : NULL;
    while ((subject = next_named(subject, hash, name)) != NULL) {
        subject_forgive(subject);
        subject = subject->next;
        n++;
    }
    pthread_mutex_unlock(&shard->lock);
    return n;
}
