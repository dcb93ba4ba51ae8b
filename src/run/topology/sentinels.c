#include "run/topology/sentinels.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "run/config/secret.h"

#define LINE_ROOM 1024
#define PASSWORD_NS (10 * NS_PER_S)      /* interval of reading the password file */
#define PASSWORD_LEAST_NS (1 * NS_PER_S) /* least time between two reads after refused logins */
/* a file that was changed within this time may still be written to */
#define PASSWORD_SETTLED_NS (200 * NS_PER_MS)
/* in a failover sentinels disagree for a second or two: they exchange their state every 2 s */
#define DISAGREE_NS (3 * NS_PER_S)

struct slot {
    struct sentinels *sentinels;
    struct sentinel *sentinel;
    struct sentinel_word word; /* copied at the last refresh */
    /* the master that the sentinel claims; the host is owned by `word`; host NULL: none */
    struct address master;
    char key[ADDRESS_TEXT];                           /* the address of `master` as text */
    struct address replicas[SENTINELS_REPLICAS_MOST]; /* the hosts are owned by `word` */
    size_t n_replicas;
    bool is_configured;
    bool is_twin;               /* an earlier entry that answers leads to this sentinel, too */
    enum sentinel_trouble told; /* the trouble that was logged last */
};

enum timer { NOTIFY, PASSWORD, DISAGREE, TIMERS };

struct sentinels {
    struct loop *loop;
    struct sentinels_settings settings;
    const struct sentinels_ops *ops;
    void *arg;
    struct slot *slots[SENTINELS_MOST]; /* heap; configured sentinels come first */
    size_t n;
    uv_timer_t timers[TIMERS];
    unsigned n_timers; /* timers that are not closed yet */
    enum mastership_pace pace;
    char *password;         /* heap; NULL: none */
    uint64_t password_ns;   /* when the file was last read */
    char password_why[256]; /* why the file cannot be read, as logged; "": the file is good */
    bool is_disagreement_told;
    bool is_started;
};

static void refresh(struct sentinels *sentinels);

/* ---- log lines ---- */

__attribute__((format(printf, 4, 5))) static void tell(const struct sentinels *sentinels,
                                                       enum log_level level, const char *about,
                                                       const char *format, ...)
{
    char line[LINE_ROOM];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    sentinels->ops->on_news(sentinels->arg, level, about, line);
}

static void print_master(const struct sentinel_word *word, char *out, size_t room)
{
    struct address address = {.host = (char *)(uintptr_t)word->master.host,
                              .port = word->master.port};
    out[0] = '\0';
    if (word->master.port != 0)
        address_print(&address, out, room);
}

/* Prints the text of a log line behind the sentinel's address. */
static void sentinels_describe(const struct sentinels *sentinels, const struct sentinel_word *word,
                               char *out, size_t room)
{
    const char *name = sentinels->settings.master_name;
    const char *login = sentinels->settings.user != NULL
                            ? "sentinel-user and the password in sentinel-password-file"
                            : "the password in sentinel-password-file";
    char master[ADDRESS_TEXT];
    print_master(word, master, sizeof master);
    switch (word->trouble) {
    case TROUBLE_NONE:
        snprintf(out, room, "names %s as the master of %s, epoch %llu", master, name,
                 (unsigned long long)word->master.epoch);
        return;
    case TROUBLE_UNTRIED:
        snprintf(out, room, "has not been reached yet");
        return;
    case TROUBLE_AWAY:
        snprintf(out, room, "cannot be reached: %s", word->why);
        return;
    case TROUBLE_SILENT:
        snprintf(out, room, "does not answer: %s", word->why);
        return;
    case TROUBLE_UNREADABLE:
        snprintf(out, room, "sends replies that weir cannot parse");
        return;
    case TROUBLE_WANTS_LOGIN:
        snprintf(out, room, "requires a password: set sentinel-password-file");
        return;
    case TROUBLE_REFUSES_LOGIN:
        snprintf(out, room, "does not accept %s: %s", login, word->why);
        return;
    case TROUBLE_FORBIDS:
        snprintf(
            out, room,
            "denies weir the commands that it needs: %s; docs/failover.md lists the permissions of "
            "weir's user",
            word->why);
        return;
    case TROUBLE_NO_SENTINEL:
        snprintf(out, room, "is not a sentinel: %s", word->why);
        return;
    case TROUBLE_NO_NAME:
        snprintf(out, room, "does not know the name %s", name);
        return;
    case TROUBLE_NO_SERVER:
        snprintf(out, room, "names no server for %s%s%s", name, word->why[0] != '\0' ? ": " : "",
                 word->why);
        return;
    }
}

/* Logs each change of trouble once. A learnt sentinel without trouble is not logged. */
static void tell_trouble(struct slot *slot)
{
    const struct sentinel_word *word = &slot->word;
    const char *text = sentinel_text(slot->sentinel);
    char what[LINE_ROOM / 2], about[LINE_ROOM];
    if (word->trouble == slot->told || word->trouble == TROUBLE_UNTRIED)
        return;
    bool is_plain =
        word->trouble == TROUBLE_NONE && slot->told == TROUBLE_UNTRIED && !slot->is_configured;
    slot->told = word->trouble;
    if (is_plain)
        return;
    sentinels_describe(slot->sentinels, word, what, sizeof what);
    snprintf(about, sizeof about, "sentinel %s %d", text, (int)word->trouble);
    tell(slot->sentinels, word->trouble == TROUBLE_NONE ? LOG_INFO : LOG_WARN, about,
         "sentinel %s %s", text, what);
}

static bool is_fresh(const struct slot *slot)
{
    return !slot->is_twin && sentinel_age(slot->sentinel) == CLAIM_FRESH &&
           slot->master.host != NULL;
}

/* Finds two sentinels that answer and name different servers. False: all agree. */
static bool find_disagreement(const struct sentinels *sentinels, const struct slot **one,
                              const struct slot **other)
{
    *one = NULL;
    for (size_t i = 0; i < sentinels->n; i++) {
        *other = sentinels->slots[i];
        if (is_fresh(*other) && *one == NULL)
            *one = *other;
        else if (is_fresh(*other) && !address_eq(&(*one)->master, &(*other)->master))
            return true;
    }
    return false;
}

static void on_disagree(uv_timer_t *timer)
{
    struct sentinels *sentinels = timer->data;
    const struct slot *one, *other;
    char of_one[ADDRESS_TEXT], of_other[ADDRESS_TEXT];
    if (!find_disagreement(sentinels, &one, &other))
        return;
    sentinels->is_disagreement_told = true;
    address_print(&one->master, of_one, sizeof of_one);
    address_print(&other->master, of_other, sizeof of_other);
    tell(sentinels, LOG_WARN, "sentinels disagree",
         "sentinels disagree about %s: %s names %.256s, %s names %.256s",
         sentinels->settings.master_name, sentinel_text(one->sentinel), of_one,
         sentinel_text(other->sentinel), of_other);
}

/* Logs a disagreement that lasts. */
static void note_disagreement(struct sentinels *sentinels)
{
    const struct slot *one, *other;
    uv_timer_t *timer = &sentinels->timers[DISAGREE];
    bool is = find_disagreement(sentinels, &one, &other);
    if (is && !sentinels->is_disagreement_told && !uv_is_active((uv_handle_t *)timer))
        uv_timer_start(timer, on_disagree,
                       upstream_time(sentinels->settings.upstream, DISAGREE_NS) / NS_PER_MS, 0);
    if (is)
        return;
    uv_timer_stop(timer);
    if (sentinels->is_disagreement_told)
        tell(sentinels, LOG_INFO, "sentinels agree", "sentinels agree about %s again",
             sentinels->settings.master_name);
    sentinels->is_disagreement_told = false;
}

/* ---- the password ---- */

static void sentinels_on_password(uv_timer_t *timer);

static void read_password_in(struct sentinels *sentinels, uint64_t ns)
{
    uv_timer_start(&sentinels->timers[PASSWORD], sentinels_on_password, ns_to_ms_up(ns), 0);
}

static void use_password(struct sentinels *sentinels, char *password)
{
    char *before = sentinels->password;
    if (before != NULL && strcmp(before, password) == 0) {
        secret_forget(password);
        return;
    }
    sentinels->password = password;
    for (size_t i = 0; i < sentinels->n; i++)
        sentinel_set_password(sentinels->slots[i]->sentinel, password);
    if (before != NULL)
        tell(sentinels, LOG_INFO, "sentinel-password-file",
             "sentinel-password-file has a new password: weir uses it for sentinels from now on");
    secret_forget(before);
}

/*
 * Reads the password file. False: the file may be in the middle of a write, and must be read again
 * soon.
 */
static bool look_at_password(struct sentinels *sentinels)
{
    char *password = NULL;
    char why[sizeof sentinels->password_why];
    uint64_t age_ns;
    if (!secret_read(sentinels->settings.password_path, &password, &age_ns,
                     (struct why){why, sizeof why})) {
        if (strcmp(why, sentinels->password_why) != 0)
            tell(sentinels, LOG_WARN, why, "sentinel-password-file: %s", why);
        snprintf(sentinels->password_why, sizeof sentinels->password_why, "%s", why);
        return true;
    }
    sentinels->password_why[0] = '\0';
    if (sentinels->password != NULL && age_ns < PASSWORD_SETTLED_NS) {
        secret_forget(password);
        return false;
    }
    use_password(sentinels, password);
    return true;
}

static void sentinels_on_password(uv_timer_t *timer)
{
    struct sentinels *sentinels = timer->data;
    sentinels->password_ns = clock_ns();
    uint64_t every_ns = upstream_time(sentinels->settings.upstream, PASSWORD_NS);
    read_password_in(sentinels, look_at_password(sentinels) ? every_ns : PASSWORD_SETTLED_NS);
}

void sentinels_read_password(struct sentinels *sentinels)
{
    if (sentinels->settings.password_path != NULL && sentinels->is_started)
        read_password_in(sentinels, 0);
}

static void note_refusal(struct sentinels *sentinels, const struct slot *slot)
{
    enum sentinel_trouble trouble = slot->word.trouble;
    uint64_t least_ns = upstream_time(sentinels->settings.upstream, PASSWORD_LEAST_NS);
    if (sentinels->settings.password_path != NULL &&
        (trouble == TROUBLE_WANTS_LOGIN || trouble == TROUBLE_REFUSES_LOGIN) &&
        clock_ns() - sentinels->password_ns >= least_ns)
        read_password_in(sentinels, least_ns);
}

/* ---- configured and learnt sentinels ---- */

static void on_notify(uv_timer_t *timer)
{
    refresh(timer->data);
}

static void sentinels_on_word(void *arg)
{
    const struct slot *slot = arg;
    uv_timer_start(&slot->sentinels->timers[NOTIFY], on_notify, 0, 0);
}

static void on_switch(void *arg)
{
    const struct slot *slot = arg;
    struct sentinels *sentinels = slot->sentinels;
    for (size_t i = 0; i < sentinels->n; i++)
        sentinel_ask(sentinels->slots[i]->sentinel);
}

static const struct sentinel_ops sentinel_ops = {.on_word = sentinels_on_word,
                                                 .on_switch = on_switch};

static void sentinels_add(struct sentinels *sentinels, const char *host, uint16_t port)
{
    struct slot *slot = mem_zalloc(1, sizeof *slot);
    const struct sentinel_settings settings = {.common = &sentinels->settings,
                                               .host = host,
                                               .port = port,
                                               .password = sentinels->password};
    slot->sentinels = sentinels;
    slot->told = TROUBLE_UNTRIED;
    slot->sentinel = sentinel_open(sentinels->loop, &settings, &sentinel_ops, slot);
    slot->word = *sentinel_word(slot->sentinel);
    sentinel_set_pace(slot->sentinel, sentinels->pace);
    sentinels->slots[sentinels->n++] = slot;
}

static void sentinels_drop(struct sentinels *sentinels, size_t i)
{
    struct slot *slot = sentinels->slots[i];
    memmove(&sentinels->slots[i], &sentinels->slots[i + 1],
            (--sentinels->n - i) * sizeof sentinels->slots[0]);
    sentinel_close(slot->sentinel);
    free(slot);
}

/* True if `peer` is the sentinel of this entry. */
static bool is_peer(const struct slot *slot, const struct sentinel_server *peer)
{
    const struct sentinel_word *word = &slot->word;
    struct address address = {.host = (char *)(uintptr_t)peer->host, .port = peer->port};
    char text[ADDRESS_TEXT];
    address_print(&address, text, sizeof text);
    bool is_same_id =
        word->has_id && peer->run_id[0] != '\0' && strcmp(word->id, peer->run_id) == 0;
    return is_same_id || strcmp(text, sentinel_text(slot->sentinel)) == 0;
}

/* Returns the entry of `peer`; NULL: none. */
static const struct slot *find_peer(const struct sentinels *sentinels,
                                    const struct sentinel_server *peer)
{
    for (size_t i = 0; i < sentinels->n; i++)
        if (is_peer(sentinels->slots[i], peer))
            return sentinels->slots[i];
    return NULL;
}

/* Prints "a, b, c": the sentinels from this index on. */
static void print_from(const struct sentinels *sentinels, size_t from, char *out, size_t room)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = from; i < sentinels->n && n < room; i++)
        n += (size_t)snprintf(out + n, room - n, "%s%s", i > from ? ", " : "",
                              sentinel_text(sentinels->slots[i]->sentinel));
}

static void learn(struct sentinels *sentinels)
{
    char list[LINE_ROOM / 2];
    size_t before = sentinels->n;
    for (size_t i = 0; i < before && sentinels->slots[i]->is_configured; i++) {
        const struct sentinel_word *word = &sentinels->slots[i]->word;
        for (size_t j = 0; j < word->n_peers && sentinels->n < SENTINELS_MOST; j++)
            if (find_peer(sentinels, &word->peers[j]) == NULL)
                sentinels_add(sentinels, word->peers[j].host, word->peers[j].port);
    }
    if (sentinels->n == before)
        return;
    print_from(sentinels, before, list, sizeof list);
    tell(sentinels, LOG_INFO, list, "new sentinels of %s, announced by other sentinels: %s",
         sentinels->settings.master_name, list);
}

/* True if some configured sentinel lists the learnt sentinel. */
static bool sentinels_is_told_of(const struct sentinels *sentinels, const struct slot *learnt)
{
    for (size_t i = 0; i < sentinels->n && sentinels->slots[i]->is_configured; i++) {
        const struct sentinel_word *word = &sentinels->slots[i]->word;
        for (size_t j = 0; j < word->n_peers; j++)
            if (is_peer(learnt, &word->peers[j]))
                return true;
    }
    return false;
}

static void forget_learnt(struct sentinels *sentinels)
{
    char list[LINE_ROOM / 2] = "";
    size_t len = 0;
    for (size_t i = sentinels->n; i > 0; i--) {
        const struct slot *slot = sentinels->slots[i - 1];
        if (slot->is_configured || sentinels_is_told_of(sentinels, slot))
            continue;
        if (len < sizeof list)
            len += (size_t)snprintf(list + len, sizeof list - len, "%s%s", len > 0 ? ", " : "",
                                    sentinel_text(slot->sentinel));
        sentinels_drop(sentinels, i - 1);
    }
    if (len > 0)
        tell(sentinels, LOG_INFO, list,
             "sentinels of %s removed, no longer announced by other sentinels: %s",
             sentinels->settings.master_name, list);
}

/*
 * Finds entries that lead to one sentinel under several addresses: only the first entry that
 * answers is asked.
 */
static void find_twins(struct sentinels *sentinels)
{
    for (size_t i = 0; i < sentinels->n; i++) {
        struct slot *slot = sentinels->slots[i];
        const struct sentinel_word *word = &slot->word;
        slot->is_twin = false;
        for (size_t j = 0; j < i && !slot->is_twin; j++) {
            const struct sentinel_word *other = &sentinels->slots[j]->word;
            slot->is_twin = word->has_id && other->has_id && other->answered_ns != 0 &&
                            other->trouble == TROUBLE_NONE && strcmp(word->id, other->id) == 0;
        }
        sentinel_set_twin(slot->sentinel, slot->is_twin);
    }
}

/* Returns an address that borrows the host of `server`. */
static struct address sentinels_address_of(const struct sentinels *sentinels,
                                           const struct sentinel_server *server)
{
    return (struct address){.host = (char *)(uintptr_t)server->host,
                            .port = server->port,
                            .is_tls = sentinels->settings.addresses[0].is_tls};
}

static void sentinels_take_word(const struct sentinels *sentinels, struct slot *slot)
{
    const struct sentinel_word *word = &slot->word;
    slot->word = *sentinel_word(slot->sentinel);
    slot->master = (struct address){.host = NULL};
    if (word->has_named && word->master.port != 0)
        slot->master = sentinels_address_of(sentinels, &word->master);
    if (slot->master.host != NULL)
        address_print(&slot->master, slot->key, sizeof slot->key);
    slot->n_replicas = word->n_replicas;
    for (size_t i = 0; i < word->n_replicas; i++)
        slot->replicas[i] = sentinels_address_of(sentinels, &word->replicas[i]);
}

/* Takes all reports after a sentinel has reported something, or has gone silent. */
static void refresh(struct sentinels *sentinels)
{
    for (size_t i = 0; i < sentinels->n; i++)
        sentinels_take_word(sentinels, sentinels->slots[i]);
    forget_learnt(sentinels);
    learn(sentinels);
    find_twins(sentinels);
    for (size_t i = 0; i < sentinels->n; i++) {
        if (!sentinels->slots[i]->is_twin)
            tell_trouble(sentinels->slots[i]);
        note_refusal(sentinels, sentinels->slots[i]);
    }
    note_disagreement(sentinels);
    sentinels->ops->on_claims(sentinels->arg);
}

/* ---- the owner's questions ---- */

void sentinels_set_pace(struct sentinels *sentinels, enum mastership_pace pace)
{
    sentinels->pace = pace;
    for (size_t i = 0; i < sentinels->n; i++)
        sentinel_set_pace(sentinels->slots[i]->sentinel, pace);
}

size_t sentinels_claims(const struct sentinels *sentinels,
                        struct mastership_claim claims[SENTINELS_MOST],
                        const struct address *masters[SENTINELS_MOST])
{
    size_t n = 0;
    for (size_t i = 0; i < sentinels->n; i++) {
        const struct slot *slot = sentinels->slots[i];
        const struct sentinel_word *word = &slot->word;
        if (!word->has_named || slot->is_twin)
            continue;
        masters[n] = slot->master.host != NULL ? &slot->master : NULL;
        claims[n++] =
            (struct mastership_claim){.sentinel = word->id,
                                      .server = slot->master.host != NULL ? slot->key : NULL,
                                      .epoch = word->master.epoch,
                                      .since_ns = word->since_ns,
                                      .age = sentinel_age(slot->sentinel)};
    }
    return n;
}

/* Learnt sentinels count only once they have answered: a lying sentinel could list any number. */
size_t sentinels_count(const struct sentinels *sentinels)
{
    size_t n = 0;
    for (size_t i = 0; i < sentinels->n; i++) {
        const struct slot *slot = sentinels->slots[i];
        n += !slot->is_twin && (slot->is_configured || slot->word.has_named);
    }
    return n;
}

size_t sentinels_replicas(const struct sentinels *sentinels,
                          const struct address *out[SENTINELS_REPLICAS_MOST])
{
    size_t n = 0;
    for (size_t i = 0; i < sentinels->n; i++) {
        const struct slot *slot = sentinels->slots[i];
        if (!is_fresh(slot))
            continue;
        for (size_t j = 0; j < slot->n_replicas && n < SENTINELS_REPLICAS_MOST; j++) {
            size_t same = 0;
            while (same < n && !address_eq(out[same], &slot->replicas[j]))
                same++;
            if (same == n)
                out[n++] = &slot->replicas[j];
        }
    }
    return n;
}

bool sentinels_are_settled(const struct sentinels *sentinels)
{
    for (size_t i = 0; i < sentinels->n; i++)
        if (sentinels->slots[i]->is_configured &&
            sentinels->slots[i]->word.trouble == TROUBLE_UNTRIED)
            return false;
    return sentinels->is_started;
}

void sentinels_explain(const struct sentinels *sentinels, char *out, size_t room)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sentinels->n && n < room; i++) {
        const struct slot *slot = sentinels->slots[i];
        const char *before = n > 0 ? ", " : "", *text = sentinel_text(slot->sentinel);
        char what[LINE_ROOM / 2], names[ADDRESS_TEXT];
        print_master(&slot->word, names, sizeof names);
        sentinels_describe(sentinels, &slot->word, what, sizeof what);
        if (slot->is_twin)
            snprintf(what, sizeof what, "is already known by another address");
        if (slot->is_twin || slot->word.trouble != TROUBLE_NONE)
            n += (size_t)snprintf(out + n, room - n, "%ssentinel %.100s: %.127s", before, text,
                                  what);
        else
            n += (size_t)snprintf(out + n, room - n, "%ssentinel %.100s names %.100s", before, text,
                                  names[0] != '\0' ? names : "none");
    }
}

/* ---- the life of the sentinels ---- */

struct sentinels *sentinels_open(struct loop *loop, const struct sentinels_settings *settings,
                                 const struct sentinels_ops *ops, void *arg)
{
    struct sentinels *sentinels = mem_zalloc(1, sizeof *sentinels);
    sentinels->loop = loop;
    sentinels->settings = *settings;
    sentinels->ops = ops;
    sentinels->arg = arg;
    sentinels->pace = PACE_HURRY;
    sentinels->n_timers = TIMERS;
    for (unsigned i = 0; i < TIMERS; i++) {
        uv_timer_init(&loop->uv, &sentinels->timers[i]);
        sentinels->timers[i].data = sentinels;
    }
    return sentinels;
}

void sentinels_start(struct sentinels *sentinels)
{
    sentinels->is_started = true;
    if (sentinels->settings.password_path != NULL)
        sentinels_on_password(&sentinels->timers[PASSWORD]);
    for (size_t i = 0; i < sentinels->settings.n_addresses && sentinels->n < SENTINELS_MOST; i++) {
        const struct address *address = &sentinels->settings.addresses[i];
        sentinels_add(sentinels, address->host, address->port);
        sentinels->slots[i]->is_configured = true;
    }
}

static void sentinels_on_timer_closed(uv_handle_t *handle)
{
    struct sentinels *sentinels = handle->data;
    if (--sentinels->n_timers > 0)
        return;
    secret_forget(sentinels->password);
    free(sentinels);
}

void sentinels_close(struct sentinels *sentinels)
{
    while (sentinels->n > 0)
        sentinels_drop(sentinels, sentinels->n - 1);
    for (unsigned i = 0; i < TIMERS; i++)
        uv_close((uv_handle_t *)&sentinels->timers[i], sentinels_on_timer_closed);
}
