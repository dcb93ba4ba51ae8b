/*
 * LIMIT on keys that only one client uses, in all forms: the reply is known to the last digit.
 *
 * The test keeps a list of possible states (guesses) of each key. A call was decided at one of the
 * moments between request and reply at which Redis ran a script on the key. Each guess and moment
 * that explains the reply gives a new guess. After a call without a decision, or a loss of Redis'
 * data, the state is unknown and the client takes another key.
 */
#include "tests/sim/ops_exact.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/exact_local.h"
#include "tests/sim/exact_say.h"
#include "tests/sim/ops.h"
#include "tests/sim/regime.h"
#include "tests/sim/run.h"
#include "tests/sim/trace.h"

#define CLIENTS_MAX 32
#define KEYS 4
#define GUESSES 6  /* most guesses of a key's state */
#define MOMENTS 64 /* number of script moments kept for each key */
#define MS_NS 1000000
/* calls on a key that weir has decided by itself, before the client takes another key */
#define AWAY_CALLS 60
#define EXPIRY_US 2000 /* Redis checks the expiry of keys in ms */

/* When a script ran: the world's clock, Redis' clock, and the user of the key. */
struct heard_at {
    uint64_t at_ns;
    int64_t redis_us;
    unsigned user;
};

struct own_key {
    struct asked_key asked;
    uint32_t life, generation;
    unsigned user; /* limit_owner */
    uint64_t age;
    bool is_lost; /* the key's state is unknown */
    /* the key's state is unknown because weir has decided by itself; units are still counted */
    bool is_away;
    uint16_t n_away;
    struct exact_local local;
    bool has_plain;
    uint32_t plain; /* the dice of the last plain call (is_plain) */
    uint16_t n_said, n_judged;
    unsigned n_guesses;
    struct exact_key guesses[GUESSES];
    struct heard_at since[GUESSES]; /* when the script ran that led to the guess */
    struct heard_at moments[MOMENTS];
    uint32_t n_moments, used_moments; /* ever; used_moments: moments that no later call can have */
    /* state of a log at the last refusal that weir remembers, even after the key's expiry */
    struct exact_key refused;
    struct heard_at refused_at;
    uint64_t delay_ns; /* from request to script, for the last refusal that weir may remember */
};

static struct own_key own_keys[CLIENTS_MAX][KEYS];

static uint64_t age(void)
{
    return run.losses + run.clock_steps;
}

/* ---- keys ---- */

static void begin_anew(struct client *client, struct own_key *key)
{
    unsigned slot = (unsigned)(key - own_keys[client->number]);
    uint32_t generation = key->generation + 1;
    *key = (struct own_key){
        .life = client->life, .generation = generation, .age = age(), .n_guesses = 1};
    key->user = limit_owner(client);
    uint64_t state = run.plan.seed ^ (uint64_t)client->number << 48 ^ (uint64_t)client->life << 32 ^
                     slot << 24 ^ generation;
    asked_key_draw(&key->asked, run.plan.config, dice(&state));
    snprintf(key->asked.name, sizeof key->asked.name, "x:%u.%u.%u.%u", client->number, client->life,
             slot, generation);
}

static bool is_over(const struct client *client, const struct own_key *key)
{
    return key->life != client->life || key->is_lost || key->age != age() ||
           key->n_said == UINT16_MAX || key->n_away > AWAY_CALLS;
}

/* Prefers one key: what a call leaves behind shows in the next call on the key. */
static uint32_t often_first(uint32_t dice)
{
    return dice % 4 != 0 ? 0 : dice / 4 % KEYS;
}

static struct own_key *key_to_say(struct client *client, uint32_t which)
{
    struct own_key *key = &own_keys[client->number][which % KEYS];
    if (is_over(client, key))
        begin_anew(client, key);
    key->n_said++;
    key->n_away = (uint16_t)(key->n_away + key->is_away);
    return key;
}

/* Identifies a call: the key's generation, and the number of the call on the key. */
static uint32_t mark(const struct own_key *key)
{
    return key->generation << 16 | key->n_said;
}

/* NULL: the state of the key was unknown at this call. */
static struct own_key *key_to_judge(struct client *client, uint32_t which, uint32_t marked)
{
    struct own_key *key = &own_keys[client->number][which % KEYS];
    if (key->life != client->life || (key->generation & 0xffff) != marked >> 16)
        return NULL;
    bool is_missed = (uint16_t)(key->n_judged + 1) != (marked & 0xffff);
    key->is_away |= is_missed && !run_is_whole() && asked_key_is_local(&key->asked);
    if (key->age != age() || (is_missed && !key->is_away) || key->user != limit_owner(client))
        key->is_lost = true;
    key->n_judged = (uint16_t)marked;
    return key->is_lost ? NULL : key;
}

/* The user of a key name in Redis; USERS: no user. See plan.c. */
static unsigned user_of(struct slice name)
{
    static const char *const prefixes[USERS] = {
        "100%:default:", "100%:u1:", "100%:u2:", "100%:u3:"};
    unsigned user = 0;
    while (run.plan.has_user_keys && user < USERS &&
           (name.len < strlen(prefixes[user]) ||
            memcmp(name.at, prefixes[user], strlen(prefixes[user])) != 0))
        user++;
    return user;
}

void exact_heard(struct slice name, uint64_t now_us)
{
    unsigned number, life, slot, generation;
    char text[SAID_ROOM];
    const char *at = memmem(name.at, name.len, ":x:", 3);
    if (at == NULL)
        return;
    size_t len = name.len - (size_t)(at - name.at);
    if (len >= sizeof text)
        return;
    memcpy(text, at, len);
    text[len] = '\0';
    if (sscanf(text, ":x:%u.%u.%u.%u", &number, &life, &slot, &generation) != 4 ||
        number >= CLIENTS_MAX || slot >= KEYS)
        return;
    struct own_key *key = &own_keys[number][slot];
    if (key->life == life && key->generation == generation)
        key->moments[key->n_moments++ % MOMENTS] =
            (struct heard_at){world.now_ns, (int64_t)now_us, user_of(name)};
}

/* True if the call may have been decided at moment i. */
static bool is_moment(const struct own_key *key, uint32_t i, const struct act *act)
{
    const struct heard_at *moment = &key->moments[i % MOMENTS];
    return i + MOMENTS >= key->n_moments && moment->at_ns >= act->read_ns &&
           moment->at_ns <= world.now_ns && moment->user == key->user;
}

/* ---- explanations of a reply ---- */

struct guesses {
    struct exact_key all[GUESSES];
    struct heard_at since[GUESSES];
    unsigned n;
    bool is_full;
};

static void guess(struct guesses *guesses, const struct exact_key *key,
                  const struct heard_at *moment)
{
    for (unsigned i = 0; i < guesses->n; i++)
        if (memcmp(&guesses->all[i], key, sizeof *key) == 0)
            return;
    guesses->is_full |= guesses->n == GUESSES || key->is_overfull;
    if (guesses->n == GUESSES)
        return;
    guesses->since[guesses->n] = *moment;
    guesses->all[guesses->n++] = *key;
}

/* The expiry of a key is known only to the ms. Sets the other possibility. False: there is none. */
static bool doubt(struct exact_key *key, int64_t now_us)
{
    if (key->kind == EXACT_NONE || key->end_us < now_us - EXPIRY_US ||
        key->end_us > now_us + EXPIRY_US)
        return false;
    if (key->end_us > now_us)
        *key = (struct exact_key){0};
    else
        key->end_us = now_us + 1;
    return true;
}

struct heard {
    int64_t fields[EXACT_FIELDS];
    struct reply refused_by;
    bool is_hurried; /* the client has half-closed, so a WAIT may end early */
};

static void cover(const struct said *said, struct exact_told *told)
{
    if (!said->is_shadow || !told->is_limited)
        return;
    told->is_limited = false;
    told->granted = said->calls[0].cost;
    told->retry = -1;
}

/* Turns the decision into that of a charged call with a client that does not wait. */
static void come_too_late(struct exact_told *told)
{
    told->is_limited = true;
    told->remaining = 0;
    told->retry = told->waits;
    told->reset += told->waits;
    told->waits = 0;
}

static bool is_refusal_due(const struct said *said, const struct act *act,
                           const struct exact_told *told, const struct heard_at *moment)
{
    int64_t waited_ns = (int64_t)(moment->at_ns - act->read_ns);
    return said->wait_ms == 0 || said->calls[0].wait_ms > 0 || told->retry < 0 ||
           told->retry == EXACT_NEVER || told->retry + waited_ns + MS_NS >= said->wait_ms * MS_NS;
}

static bool explains(const struct said *said, const struct act *act,
                     const struct own_key *const *keys, struct exact_told told,
                     const struct heard_at *moment, const struct heard *heard)
{
    int64_t fields[EXACT_FIELDS];
    cover(said, &told);
    if (heard->is_hurried && heard->fields[0] == 1 && told.waits > 0)
        come_too_late(&told);
    unsigned n = exact_fields(&told, &said->calls[0], fields);
    if (memcmp(fields, heard->fields, n * sizeof fields[0]) != 0)
        return false;
    if (told.is_limited && !heard->is_hurried && !is_refusal_due(said, act, &told, moment))
        return false;
    if (said->is_several && told.refused_by >= 0) {
        const struct asked_key *asked = &keys[told.refused_by]->asked;
        char words[2][SAID_ROOM];
        bool is_named = asked_key_algorithm(asked, words) == 2;
        return reply_is(&heard->refused_by, '$', slice_str(is_named ? words[1] : asked->name));
    }
    if (said->is_several)
        return heard->refused_by.is_nil;
    /* not before its scheduled time */
    return world.now_ns + MS_NS >= moment->at_ns + (uint64_t)told.waits;
}

/* Written to the trace, for a person who reads the last events of a failed run. */
static void note_words(const struct said *said)
{
    char text[SAID_WORDS * SAID_ROOM];
    size_t n = 0;
    for (unsigned i = 0; i < said->n_words; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i > 0 ? " " : "", said->words[i]);
    trace_note(TRACE_LOG, 0, text, n);
}

static void note_expected(const struct said *said, struct exact_told told)
{
    char text[160];
    int64_t f[EXACT_FIELDS];
    cover(said, &told);
    exact_fields(&told, &said->calls[0], f);
    int n =
        snprintf(text, sizeof text,
                 "expected %s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
                 told.wrong != NULL ? told.wrong : "", f[0], f[1], f[2], f[3], f[4], f[5]);
    trace_note(TRACE_LOG, 0, text, (size_t)n);
}

/* True if the reply is the algorithm's own error. */
static bool is_error(const struct exact_told *told, const struct reply *reply)
{
    return told->wrong != NULL && reply_begins(reply, '-', slice_str(told->wrong));
}

struct question {
    const struct said *said;
    const struct act *act;
    struct own_key *keys[EXACT_PARTS];
    const struct reply *reply;
    struct heard heard;
    /* first and last moment that explain the reply; of the first key */
    uint32_t first_moment, last_moment;
    bool is_explained, is_seen;
    /* guesses after the call, for each part; large, so elements from n on are not initialised */
    struct guesses after[EXACT_PARTS];
};

static void try_one(struct question *q, struct exact_key *keys, const struct heard_at *moment,
                    uint32_t i, bool is_told)
{
    const struct said *said = q->said;
    struct exact_told told =
        said->n_parts == 1 && !said->is_several
            ? exact_ask(&keys[0], &said->calls[0], moment->redis_us)
            : exact_ask_all(keys, said->calls, said->n_parts, moment->redis_us);
    if (is_told)
        note_expected(said, told);
    bool is_right = told.wrong != NULL || q->reply->type == '-'
                        ? is_error(&told, q->reply)
                        : explains(said, q->act, (const struct own_key *const *)q->keys, told,
                                   moment, &q->heard);
    if (!is_right)
        return;
    if (!q->is_explained)
        q->first_moment = i;
    q->last_moment = i;
    q->is_explained = true;
    for (unsigned k = 0; k < said->n_parts; k++)
        guess(&q->after[k], &keys[k], moment);
}

/* Tries each combination of guesses of the keys. */
static void try_moment(struct question *q, const struct heard_at *moment, uint32_t i, bool is_told)
{
    unsigned at[EXACT_PARTS] = {0}, n = q->said->n_parts, k = 0;
    while (k < n) {
        for (unsigned doubts = 0; doubts < 1U << n; doubts++) {
            struct exact_key keys[EXACT_PARTS];
            bool is_new = true;
            for (k = 0; k < n; k++) {
                keys[k] = q->keys[k]->guesses[at[k]];
                if ((doubts >> k & 1) != 0)
                    is_new &= doubt(&keys[k], moment->redis_us);
            }
            if (is_new)
                try_one(q, keys, moment, i, is_told);
        }
        for (k = 0; k < n && ++at[k] == q->keys[k]->n_guesses; k++)
            at[k] = 0;
    }
}

static void try_all(struct question *q, bool is_told)
{
    const struct own_key *key = q->keys[0];
    for (uint32_t i = key->used_moments; i < key->n_moments; i++)
        if (is_moment(key, i, q->act)) {
            q->is_seen = true;
            try_moment(q, &key->moments[i % MOMENTS], i, is_told);
        }
}

/* True if the cost and the rates alone decide the call. */
static bool is_usual(const struct said *said)
{
    const struct exact_call *call = &said->calls[0];
    return !said->is_several && call->mode == EXACT_TAKE && call->cost > 0 && call->first_ms == 0 &&
           !call->counts_all;
}

/* Decides with the key as weir remembers it: weir does not know how long Redis keeps a log. */
static struct exact_told ask_memory(const struct exact_key *key, const struct exact_call *call,
                                    int64_t now_us)
{
    struct exact_key copy = *key;
    if (copy.kind == EXACT_SLIDING)
        copy.end_us = EXACT_NEVER;
    return exact_ask(&copy, call, now_us);
}

/* True for a time in ms that falls with the clock, from most_ms, by at most span_ns. */
static bool is_fallen(int64_t told_ms, int64_t most_ms, uint64_t span_ns)
{
    return most_ms < 0 ? told_ms == most_ms
                       : told_ms >= 0 && told_ms <= most_ms + 1 &&
                             told_ms + 1 + (int64_t)(span_ns / MS_NS) + 1 >= most_ms;
}

/*
 * True if the key would have given this refusal at some moment between the request and now. weir
 * counts from the time of its question. The time that weir assumes may therefore be later, by the
 * delay from the question to Redis' script.
 */
static bool is_memory_of(const struct question *q, const struct exact_key *key,
                         const struct heard_at *since)
{
    struct exact_call one = q->said->calls[0];
    uint64_t first_ns = q->act->read_ns > since->at_ns ? q->act->read_ns : since->at_ns;
    uint64_t span_ns = world.now_ns - first_ns + q->keys[0]->delay_ns;
    int64_t from_us = since->redis_us + (int64_t)((first_ns - since->at_ns) / 1000);
    struct exact_told from = ask_memory(key, &q->said->calls[0], from_us);
    struct exact_told to =
        ask_memory(key, &q->said->calls[0], from_us + (int64_t)(span_ns / 1000) + 1);
    one.cost = 1;
    one.wait_ms = 0;
    if (!from.is_limited || !ask_memory(key, &one, from_us).is_limited)
        return false; /* weir remembers a refusal only if a single unit is refused too */
    int64_t f[EXACT_FIELDS];
    const int64_t *h = q->heard.fields, most = to.is_limited ? to.remaining : from.limit;
    cover(q->said, &from);
    exact_fields(&from, &q->said->calls[0], f);
    return h[0] == f[0] && h[1] == f[1] && h[2] >= f[2] && h[2] <= most &&
           is_fallen(h[3], f[3], span_ns) && is_fallen(h[4], f[4], span_ns);
}

/* Traces what the first guess would refuse now. */
static void note_memory(const struct question *q)
{
    const struct own_key *key = q->keys[0];
    int64_t now_us = key->since[0].redis_us + (int64_t)(world.now_ns - key->since[0].at_ns) / 1000;
    if (key->n_guesses > 0 && key->since[0].at_ns > 0 && is_usual(q->said))
        note_expected(q->said, ask_memory(&key->guesses[0], &q->said->calls[0], now_us));
}

/*
 * True if weir may have answered from memory. weir remembers a refusal for as long as nothing can
 * pass.
 */
static bool is_remembered(const struct question *q)
{
    const struct own_key *key = q->keys[0];
    bool is = false;
    for (unsigned i = 0; i < key->n_guesses && is_usual(q->said); i++)
        is |= key->since[i].at_ns > 0 && is_memory_of(q, &key->guesses[i], &key->since[i]);
    if (is_usual(q->said) && key->refused.kind == EXACT_SLIDING)
        is |= is_memory_of(q, &key->refused, &key->refused_at);
    return is;
}

/* Notes the refusal that weir may remember from now on. */
static void learn_refusal(const struct question *q, struct own_key *key,
                          const struct guesses *after)
{
    bool is_refused = q->heard.fields[0] == 1;
    if (!is_refused && !q->said->calls[0].is_peek)
        key->refused = (struct exact_key){0};
    if (!is_usual(q->said))
        return;
    uint64_t delay_ns = key->moments[q->last_moment % MOMENTS].at_ns - q->act->read_ns;
    /* else weir may remember another refusal: the longest delay counts */
    key->delay_ns = is_refused || delay_ns > key->delay_ns ? delay_ns : key->delay_ns;
    if (!is_refused)
        return;
    key->refused = after->all[0];
    key->refused_at = after->since[0];
}

static void learn(struct question *q)
{
    for (unsigned k = 0; k < q->said->n_parts; k++) {
        struct own_key *key = q->keys[k];
        key->is_lost = q->after[k].is_full;
        key->n_guesses = q->after[k].n;
        memcpy(key->guesses, q->after[k].all, q->after[k].n * sizeof key->guesses[0]);
        memcpy(key->since, q->after[k].since, q->after[k].n * sizeof key->since[0]);
        if (q->said->n_parts == 1)
            key->used_moments = q->first_moment;
        learn_refusal(q, key, &q->after[k]);
    }
}

/* True if weir cannot reach Redis, and may answer by when-down or from memory. */
static bool may_be_made_up(const struct said *said)
{
    static const char always[] = "limit-when-down = ";
    return !run_is_whole() && (regime_may_say(always) || strcmp(said->words[1], "CHECK") == 0);
}

/* True if weir has decided by itself on one of the keys. */
static bool is_any_away(const struct question *q)
{
    bool is_away = false;
    for (unsigned k = 0; k < q->said->n_parts; k++)
        is_away |= q->keys[k]->is_away;
    return is_away;
}

static bool may_be_local(const struct question *q)
{
    bool may = !run_is_whole();
    for (unsigned k = 0; k < q->said->n_parts; k++)
        may &= asked_key_is_local(&q->keys[k]->asked);
    return may;
}

/* weir has decided without Redis. Redis may have got the question too, and may count it later. */
static const char *judge_local(struct question *q, const struct client *client)
{
    const char *why = NULL;
    bool is_refused = q->heard.fields[0] == 1, is_plain = q->said->calls[0].mode == EXACT_TAKE;
    for (unsigned k = 0; k < q->said->n_parts; k++) {
        struct own_key *key = q->keys[k];
        const struct exact_call *call = &q->said->calls[k];
        bool is_charged = !call->is_peek && !is_refused;
        key->is_away = true;
        if (q->is_seen || !is_plain || call->counts_all || call->is_from_first)
            continue;
        if (is_charged && why == NULL)
            why = exact_local_passed(&key->local, &key->asked, call->cost, q->act->read_ns,
                                     world.now_ns);
        if (is_refused && q->said->n_parts == 1 && !client->has_shut)
            why = exact_local_refused(&key->local, &key->asked);
    }
    return why;
}

/* Redis may or may not have charged the keys that weir does not decide by itself. */
static const char *lose(const struct question *q)
{
    for (unsigned k = 0; k < q->said->n_parts; k++)
        q->keys[k]->is_lost |= !q->keys[k]->is_away;
    return NULL;
}

/*
 * A client that has half-closed does not wait. The client gets the current state, even with WAIT.
 */
static bool is_hurried(const struct client *client, const struct said *said)
{
    return client->has_shut && said->wait_ms > 0;
}

static const char *judge_said(struct client *client, const struct act *act,
                              const struct reply *reply, const struct said *said,
                              struct own_key *const *keys)
{
    struct question q;
    memset(&q, 0, offsetof(struct question, after));
    q.said = said;
    q.act = act;
    q.reply = reply;
    q.heard.is_hurried = client->has_shut;
    for (unsigned k = 0; k < said->n_parts; k++) {
        q.after[k].n = 0;
        q.after[k].is_full = false;
    }
    memcpy(q.keys, keys, said->n_parts * sizeof q.keys[0]);
    if (reply->type != '-' &&
        !said_read(said, reply, client->session.is_resp3, q.heard.fields, &q.heard.refused_by))
        return "it is no decision of that form";
    try_all(&q, false);
    if (is_any_away(&q) ||
        (!q.is_explained && may_be_local(&q) && q.reply->type != '-' && !is_remembered(&q)))
        return may_be_local(&q) && q.reply->type != '-' ? judge_local(&q, client) : lose(&q);
    if (q.is_explained)
        learn(&q);
    else if (is_remembered(&q))
        return NULL;
    else if (may_be_made_up(said) || is_hurried(client, said))
        for (unsigned k = 0; k < said->n_parts; k++)
            keys[k]->is_lost = true;
    else {
        note_words(said);
        try_all(&q, true);
        note_memory(&q);
        return q.is_seen ? "not what the key holds"
                         : "nobody has asked Redis, and it is not what was remembered";
    }
    return NULL;
}

/* ---- one call ---- */

static void say_words(struct client *client, const struct said *said, const struct act *act)
{
    say_begin(client, said->n_words);
    for (unsigned i = 0; i < said->n_words; i++)
        say_word(client, slice_str(said->words[i]));
    expect(client, act);
}

static uint64_t dice_of(const struct act *act)
{
    return (uint64_t)act->a << 32 | act->b;
}

static bool is_in_multi(struct client *client, const struct reply *reply, const char **why)
{
    if (!client->session.in_multi)
        return false;
    client->session.is_voided = true;
    bool is_due = reply_begins(reply, '-', SLICE("ERR LIMIT is not allowed in transactions"));
    *why = is_due || (client->session.is_unbegun && reply->type == '-') ? NULL : "LIMIT in MULTI";
    return true;
}

static bool is_plain(const struct said *said)
{
    const struct exact_call *call = &said->calls[0];
    return call->mode == EXACT_TAKE && !call->is_peek && !call->counts_all && call->cost > 0 &&
           !said->is_several;
}

/*
 * Half of the calls repeat the key's last plain call, so that it is refused repeatedly, with other
 * calls in between.
 */
static void say_call(struct client *client, struct act *act)
{
    struct said said;
    struct own_key *key = key_to_say(client, act->a);
    const struct asked_key *asked = &key->asked;
    if (key->has_plain && act->c % 4 < 2)
        act->b = key->plain;
    said_make(&said, &asked, 1, dice_of(act));
    exact_local_ask(&key->local, said.calls[0].cost);
    if (is_plain(&said)) {
        key->has_plain = true;
        key->plain = act->b;
    }
    act->c = mark(key);
    say_words(client, &said, act);
}

static void say_exact(struct client *client, struct act *act)
{
    act->a = often_first(act->a);
    say_call(client, act);
}

static const char *judge_exact(struct client *client, const struct act *act,
                               const struct reply *reply)
{
    struct said said;
    const char *why = NULL;
    if (is_in_multi(client, reply, &why))
        return why;
    struct own_key *key = key_to_judge(client, act->a, act->c);
    if (key == NULL)
        return NULL;
    const struct asked_key *asked = &key->asked;
    said_make(&said, &asked, 1, dice_of(act));
    return judge_said(client, act, reply, &said, &key);
}

/* ---- LIMIT RESET ---- */

/* The key starts anew. */
static void say_forget(struct client *client, struct act *act)
{
    if (!run.plan.gives_back)
        return;
    const struct own_key *key = key_to_say(client, act->a);
    char words[2][SAID_ROOM];
    bool is_named = asked_key_algorithm(&key->asked, words) == 2;
    act->c = mark(key);
    say_begin(client, 3);
    say_word(client, SLICE("LIMIT"));
    say_word(client, SLICE("RESET"));
    say_text(client, is_named ? "%s:%s" : "%s%s", is_named ? words[1] : "", key->asked.name);
    expect(client, act);
}

static const char *judge_forget(struct client *client, const struct act *act,
                                const struct reply *reply)
{
    const char *why = NULL;
    if (is_in_multi(client, reply, &why))
        return why;
    struct own_key *key = key_to_judge(client, act->a, act->c);
    if (key == NULL || key->is_away)
        return NULL;
    bool may_be = false;
    for (unsigned i = 0; i < key->n_guesses; i++) {
        int64_t end_us = key->guesses[i].end_us;
        int64_t offset_us =
            key->n_moments > 0
                ? key->moments[(key->n_moments - 1) % MOMENTS].redis_us -
                      (int64_t)(key->moments[(key->n_moments - 1) % MOMENTS].at_ns / 1000)
                : 0;
        bool may_be_there = end_us + EXPIRY_US >= (int64_t)(act->read_ns / 1000) + offset_us;
        bool may_be_gone = end_us <= (int64_t)(world.now_ns / 1000) + offset_us + EXPIRY_US;
        may_be |= (may_be_there && end_us > 0 && reply_is_integer(reply, 1)) ||
                  (may_be_gone && reply_is_integer(reply, 0));
    }
    key->n_guesses = 1;
    key->guesses[0] = (struct exact_key){0};
    key->since[0] = (struct heard_at){0};
    return may_be ? NULL : "not as many keys as there are";
}

/* ---- several keys ---- */

/* Selects keys from `pick` that can be used in one call. Returns how many. */
static unsigned keys_of(struct client *client, uint32_t pick, uint8_t which[EXACT_PARTS])
{
    const struct own_key *all = own_keys[client->number];
    unsigned n = 0;
    for (unsigned i = 0; i < KEYS && n < EXACT_PARTS; i++) {
        const struct asked_key *asked = &all[(pick + i) % KEYS].asked;
        bool fits = asked->kind != EXACT_WARM && asked->kind != EXACT_NONE;
        if (n > 0)
            fits &= (asked->named != NULL) == (all[which[0]].asked.named != NULL);
        if (fits && !asked_key_is_shadow(asked))
            which[n++] = (uint8_t)((pick + i) % KEYS);
    }
    return n;
}

/* The keys of a call, and the mark of each. */
struct together {
    uint8_t which[EXACT_PARTS];
    uint32_t marks[EXACT_PARTS];
    unsigned n;
};

#define TOGETHER 512 /* more than the outstanding calls of one client */
static struct together together[CLIENTS_MAX][TOGETHER];
static uint32_t n_together[CLIENTS_MAX];

static void say_together(struct client *client, struct act *act)
{
    struct said said;
    const struct asked_key *asked[EXACT_PARTS];
    struct together *one = &together[client->number][n_together[client->number] % TOGETHER];
    for (unsigned i = 0; i < KEYS; i++)
        if (is_over(client, &own_keys[client->number][i]))
            begin_anew(client, &own_keys[client->number][i]);
    one->n = keys_of(client, act->a, one->which);
    if (one->n == 0)
        return;
    act->c = n_together[client->number]++;
    for (unsigned i = 0; i < one->n; i++) {
        const struct own_key *key = key_to_say(client, one->which[i]);
        one->marks[i] = mark(key);
        asked[i] = &key->asked;
    }
    said_make(&said, asked, one->n, dice_of(act));
    for (unsigned i = 0; i < one->n; i++)
        exact_local_ask(&own_keys[client->number][one->which[i]].local, said.calls[i].cost);
    say_words(client, &said, act);
}

static const char *judge_together(struct client *client, const struct act *act,
                                  const struct reply *reply)
{
    struct said said;
    const char *why = NULL;
    struct own_key *keys[EXACT_PARTS];
    const struct asked_key *asked[EXACT_PARTS];
    bool is_known = true;
    if (is_in_multi(client, reply, &why) || act->c + TOGETHER <= n_together[client->number])
        return why;
    const struct together *one = &together[client->number][act->c % TOGETHER];
    for (unsigned i = 0; i < one->n; i++) {
        keys[i] = key_to_judge(client, one->which[i], one->marks[i]);
        is_known &= keys[i] != NULL;
    }
    for (unsigned i = 0; i < one->n; i++) {
        if (keys[i] != NULL && !is_known)
            keys[i]->is_lost = true;
        asked[i] = keys[i] != NULL ? &keys[i]->asked : NULL;
    }
    if (!is_known)
        return NULL;
    said_make(&said, asked, one->n, dice_of(act));
    return judge_said(client, act, reply, &said, keys);
}

/* ---- LIMIT BAN and UNBAN ---- */

static int64_t ban_ms(const struct act *act)
{
    return 1 + act->b / 2 % 200;
}

static bool is_ban(const struct act *act)
{
    return act->b % 2 == 0;
}

static void say_ban(struct client *client, struct act *act)
{
    char words[2][SAID_ROOM];
    if (!run.plan.gives_back)
        return;
    struct own_key *key = key_to_say(client, act->a);
    unsigned n = asked_key_algorithm(&key->asked, words);
    if (!key->asked.is_punished) {
        key->n_said--;
        say_call(client, act);
        return;
    }
    act->c = mark(key);
    say_begin(client, 3 + n + is_ban(act));
    say_word(client, SLICE("LIMIT"));
    say_word(client, is_ban(act) ? SLICE("BAN") : SLICE("UNBAN"));
    for (unsigned i = 0; i < n; i++)
        say_text(client, "%s", words[i]);
    say_text(client, "%s", key->asked.name);
    if (is_ban(act))
        say_text(client, "%ums", (unsigned)ban_ms(act));
    expect(client, act);
}

static const char *judge_ban(struct client *client, const struct act *act,
                             const struct reply *reply)
{
    const char *why = NULL;
    if (!own_keys[client->number][act->a % KEYS].asked.is_punished)
        return judge_exact(client, act, reply);
    if (is_in_multi(client, reply, &why))
        return why;
    struct own_key *key = key_to_judge(client, act->a, act->c);
    if (key == NULL)
        return NULL;
    if (key->is_away)
        return NULL;
    struct guesses after = {.n = 0};
    for (uint32_t i = key->used_moments; i < key->n_moments; i++)
        for (unsigned g = 0; is_moment(key, i, act) && g < 2 * key->n_guesses; g++) {
            struct exact_key one = key->guesses[g / 2];
            int64_t now_us = key->moments[i % MOMENTS].redis_us;
            if (g % 2 == 1 && !doubt(&one, now_us))
                continue;
            int64_t told = is_ban(act) ? exact_ban(&one, key->asked.kind, ban_ms(act), now_us)
                                       : exact_unban(&one, now_us);
            if (is_ban(act) ? reply_is_ok(reply) : reply_is_integer(reply, told))
                guess(&after, &one, &key->moments[i % MOMENTS]);
        }
    key->n_guesses = after.n;
    key->is_lost = after.is_full;
    memcpy(key->guesses, after.all, after.n * sizeof key->guesses[0]);
    memcpy(key->since, after.since, after.n * sizeof key->since[0]);
    return after.n > 0 ? NULL : "not what the key's penalty says";
}

const struct op exact_ops[] = {
    {"exact", 60, OP_BLOCKS | OP_MULTI, LIMIT_ANY, say_exact, judge_exact},
    {"exact_all", 20, OP_BLOCKS | OP_MULTI, LIMIT_ANY, say_together, judge_together},
    {"exact_forget", 3, OP_MULTI, LIMIT_ANY, say_forget, judge_forget},
    {"exact_ban", 5, OP_MULTI, LIMIT_ANY, say_ban, judge_ban},
    {0},
};
