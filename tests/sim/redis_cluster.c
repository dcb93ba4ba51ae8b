/* Slots: the owner of each slot, the migrating slots, and the redirects. */
#include "tests/sim/redis_cluster.h"

#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_db.h"
#include "tests/sim/redis_multi.h"
#include "tests/sim/redis_reply.h"

#define BUS 10000   /* the bus port is the client port plus this */
#define LIE_EVERY 8 /* commands with keys, for one lie */

struct cluster {
    struct node {
        struct text id, host;
        unsigned port;
        uint64_t epoch;
    } nodes[REDIS_NODES_MAX];
    unsigned n, myself;
    uint8_t owners[REDIS_SLOTS];
    uint8_t leaving[REDIS_SLOTS]; /* to which node; REDIS_NOBODY: not migrating */
    uint8_t coming[REDIS_SLOTS];  /* from which node */
    enum redis_lie lie;
    unsigned n_asked; /* commands with keys since the lie began */
};

/* ---- calls of the simulator ---- */

uint16_t redis_slot_of(struct slice key)
{
    uint16_t crc = 0;
    const char *open = key.len > 0 ? memchr(key.at, '{', key.len) : NULL;
    const char *end = key.at + key.len;
    const char *shut = open != NULL ? memchr(open + 1, '}', (size_t)(end - open - 1)) : NULL;
    bool is_tagged = shut != NULL && shut > open + 1;
    const char *at = is_tagged ? open + 1 : key.at;
    for (end = is_tagged ? shut : end; at < end; at++) {
        crc = (uint16_t)(crc ^ (unsigned)(unsigned char)*at << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)((crc & 0x8000U) != 0 ? (unsigned)crc << 1 ^ 0x1021U
                                                  : (unsigned)crc << 1);
    }
    return crc % REDIS_SLOTS;
}

void cluster_free(struct redis *redis)
{
    for (unsigned i = 0; redis->cluster != NULL && i < redis->cluster->n; i++) {
        text_fini(&redis->cluster->nodes[i].id);
        text_fini(&redis->cluster->nodes[i].host);
    }
    free(redis->cluster);
    redis->cluster = NULL;
}

void redis_join(struct redis *redis, const struct redis_node *nodes, unsigned n, unsigned myself)
{
    struct cluster *cluster = take_zeroed(1, sizeof *cluster);
    cluster_free(redis);
    for (unsigned i = 0; i < n && i < REDIS_NODES_MAX; i++) {
        struct node *node = &cluster->nodes[cluster->n++];
        text_add(&node->id, slice_str(nodes[i].id));
        text_add(&node->host, slice_str(nodes[i].host));
        node->port = nodes[i].port;
        node->epoch = i + 1;
    }
    cluster->myself = myself;
    memset(cluster->owners, REDIS_NOBODY, sizeof cluster->owners);
    memset(cluster->leaving, REDIS_NOBODY, sizeof cluster->leaving);
    memset(cluster->coming, REDIS_NOBODY, sizeof cluster->coming);
    redis->cluster = cluster;
}

void redis_own(struct redis *redis, unsigned first, unsigned last, unsigned owner, uint64_t epoch)
{
    struct cluster *cluster = redis->cluster;
    for (unsigned slot = first; slot <= last && slot < REDIS_SLOTS; slot++) {
        cluster->owners[slot] = (uint8_t)owner;
        cluster->coming[slot] = owner == cluster->myself ? REDIS_NOBODY : cluster->coming[slot];
        cluster->leaving[slot] = owner != cluster->myself ? REDIS_NOBODY : cluster->leaving[slot];
    }
    if (owner < cluster->n && epoch > cluster->nodes[owner].epoch)
        cluster->nodes[owner].epoch = epoch;
}

void redis_migrate(struct redis *redis, unsigned slot, unsigned to)
{
    redis->cluster->leaving[slot] = (uint8_t)to;
}

void redis_import(struct redis *redis, unsigned slot, unsigned from)
{
    redis->cluster->coming[slot] = (uint8_t)from;
}

void redis_lie_about(struct redis *redis, enum redis_lie lie)
{
    redis->cluster->lie = lie;
    redis->cluster->n_asked = 0;
}

static struct dict_entry *key_in(const struct redis *redis, unsigned slot)
{
    struct dict_walk walk = {0};
    struct dict_entry *entry;
    while ((entry = dict_next(&redis->dbs[0].keys, &walk)) != NULL &&
           redis_slot_of(dict_name(entry)) != slot)
        continue;
    return entry;
}

bool redis_has_key_in(const struct redis *redis, unsigned slot)
{
    return key_in(redis, slot) != NULL;
}

bool redis_move_key(struct redis *from, struct redis *to, unsigned slot)
{
    struct dict_entry *entry = key_in(from, slot);
    struct text name = {0};
    if (entry == NULL)
        return false;
    text_add(&name, dict_name(entry));
    struct value *value = dict_remove(&from->dbs[0].keys, text_slice(&name));
    bool is_expiring = value->expires_ms != NO_EXPIRY;
    from->dbs[0].n_expiring -= is_expiring;
    key_modified(from, &from->dbs[0], text_slice(&name));
    db_delete(to, &to->dbs[0], text_slice(&name));
    dict_add(&to->dbs[0].keys, text_slice(&name))->value = value;
    to->dbs[0].n_expiring += is_expiring;
    key_modified(to, &to->dbs[0], text_slice(&name));
    text_fini(&name);
    return true;
}

/* ---- commands ---- */

static void add_slots(const struct cluster *cluster, unsigned owner, struct text *out)
{
    for (unsigned from = 0, to; from < REDIS_SLOTS; from = to + 1) {
        to = from;
        if (cluster->owners[from] != owner)
            continue;
        while (to + 1 < REDIS_SLOTS && cluster->owners[to + 1] == owner)
            to++;
        text_addf(out, " %u", from);
        if (to > from)
            text_addf(out, "-%u", to);
    }
}

/* Migrating and importing slots, of this node only. */
static void add_moves(const struct cluster *cluster, struct text *out)
{
    for (unsigned slot = 0; slot < REDIS_SLOTS; slot++) {
        bool is_leaving = cluster->leaving[slot] != REDIS_NOBODY;
        unsigned other = is_leaving ? cluster->leaving[slot] : cluster->coming[slot];
        if (other != REDIS_NOBODY)
            text_addf(out, " [%u-%c-%.*s]", slot, is_leaving ? '>' : '<',
                      SHOWN(text_slice(&cluster->nodes[other].id)));
    }
}

void cmd_cluster_nodes(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    const struct cluster *cluster = conn->redis->cluster;
    struct text out = {0};
    (void)argv;
    (void)argc;
    for (unsigned i = 0; i < cluster->n; i++) {
        const struct node *node = &cluster->nodes[i];
        text_addf(&out, "%.*s %.*s:%u@%u %smaster - 0 0 %lu connected",
                  SHOWN(text_slice(&node->id)), SHOWN(text_slice(&node->host)), node->port,
                  node->port + BUS, i == cluster->myself ? "myself," : "", node->epoch);
        add_slots(cluster, i, &out);
        if (i == cluster->myself)
            add_moves(cluster, &out);
        text_addf(&out, "\n");
    }
    reply_verbatim(conn, text_slice(&out));
    text_fini(&out);
}

void cmd_asking(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    conn->is_asking = true;
    reply_ok(conn);
}

/* All nodes are masters. */
void cmd_readonly(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    reply_ok(conn);
}

/* ---- refusals ---- */

/* The keys of a command, or of all queued commands. */
struct look {
    const struct redis *redis;
    struct slice first; /* first key; at NULL: none yet */
    unsigned slot;
    bool is_leaving, is_coming, has_several, is_crossing, is_unbound;
    unsigned n_there, n_missing;
};

static void look_at_key(struct look *look, struct slice key, bool is_channel)
{
    const struct cluster *cluster = look->redis->cluster;
    unsigned slot = redis_slot_of(key);
    if (look->first.at == NULL) {
        look->first = key;
        look->slot = slot;
        look->is_unbound = cluster->owners[slot] == REDIS_NOBODY;
        bool is_mine = cluster->owners[slot] == cluster->myself;
        look->is_leaving = is_mine && cluster->leaving[slot] != REDIS_NOBODY;
        look->is_coming = !look->is_leaving && cluster->coming[slot] != REDIS_NOBODY;
    } else if (!slice_eq(look->first, key)) {
        look->is_crossing = slot != look->slot;
        look->has_several = true;
    }
    if (look->is_unbound || look->is_crossing || is_channel ||
        !(look->is_leaving || look->is_coming))
        return;
    const struct value *value = dict_get(&look->redis->dbs[0].keys, key);
    bool is_there = value != NULL && !db_is_expired(look->redis, value);
    look->n_there += is_there;
    look->n_missing += !is_there;
}

static void look_at_call(struct look *look, const struct command *command, const struct slice *argv,
                         size_t argc)
{
    bool is_channel = command->run == cmd_ssubscribe || command->run == cmd_sunsubscribe ||
                      command->run == cmd_spublish;
    struct key_walk walk = key_walk(command, argv, argc);
    for (size_t i; !look->is_unbound && !look->is_crossing && (i = key_next(&walk)) != 0;)
        look_at_key(look, argv[i], is_channel);
}

static void look_at_queue(struct look *look, const struct redis_conn *conn)
{
    for (size_t i = 0; i < conn->n_queued; i++) {
        const struct queued *queued = &conn->queue[i];
        struct slice *argv = take_memory(queued->n * sizeof *argv);
        for (size_t k = 0; k < queued->n; k++)
            argv[k] = text_slice(&queued->words[k]);
        look_at_call(look, queued->command, argv, queued->n);
        /* `first` outlives the array: its bytes are the queue's */
        free(argv);
    }
}

static void say_redirect(const struct cluster *cluster, struct text *error, const char *code,
                         unsigned slot, unsigned node)
{
    text_addf(error, "%s %u %.*s:%u", code, slot, SHOWN(text_slice(&cluster->nodes[node].host)),
              cluster->nodes[node].port);
}

static void say_where(const struct look *look, bool is_asking, struct text *error)
{
    const struct cluster *cluster = look->redis->cluster;
    unsigned owner = cluster->owners[look->slot];
    bool has_part = look->n_there > 0 && is_at_least(look->redis, 70000);
    if (look->is_leaving && look->n_missing > 0 && has_part)
        text_addf(error, "TRYAGAIN Multiple keys request during rehashing of slot");
    else if (look->is_leaving && look->n_missing > 0)
        say_redirect(cluster, error, "ASK", look->slot, cluster->leaving[look->slot]);
    else if (look->is_coming && is_asking && look->has_several && look->n_missing > 0)
        text_addf(error, "TRYAGAIN Multiple keys request during rehashing of slot");
    else if (owner != cluster->myself && !(look->is_coming && is_asking))
        say_redirect(cluster, error, "MOVED", look->slot, owner);
}

/* Some commands get a redirect to a wrong node. */
static void lie_where(struct cluster *cluster, unsigned slot, struct text *error)
{
    unsigned n = cluster->n_asked++;
    if (cluster->lie == REDIS_IS_HONEST || n % LIE_EVERY != 0)
        return;
    const char *code = n / LIE_EVERY % 2 == 0 ? "MOVED" : "ASK";
    error->len = 0;
    if (cluster->lie == REDIS_NAMES_STRANGERS)
        text_addf(error, "%s %u 10.9.9.%u:6379", code, slot, n % 100 + 1);
    else if (cluster->lie == REDIS_NAMES_ITSELF)
        say_redirect(cluster, error, code, slot, cluster->myself);
    else
        say_redirect(cluster, error, code, slot, (cluster->myself + 1) % cluster->n);
}

bool cluster_refuses(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct look look = {.redis = conn->redis};
    struct text error = {0};
    bool is_exec = conn->command->run == cmd_exec;
    if (conn->redis->cluster == NULL)
        return false;
    if (!is_exec)
        look_at_call(&look, conn->command, argv, argc);
    else if (conn->is_multi)
        look_at_queue(&look, conn);
    if (look.first.at == NULL)
        return false;
    if (look.is_unbound)
        text_addf(&error, "CLUSTERDOWN Hash slot not served");
    else if (look.is_crossing)
        text_addf(&error, "CROSSSLOT Keys in request don't hash to the same slot");
    else
        say_where(&look, conn->is_asking, &error);
    if (!look.is_unbound && !look.is_crossing)
        lie_where(conn->redis->cluster, look.slot, &error);
    bool is_refused = error.len > 0;
    if (is_refused && is_exec)
        multi_discard(conn);
    else if (is_refused)
        multi_spoil(conn);
    if (is_refused)
        reply_error(conn, "%.*s", SHOWN(text_slice(&error)));
    text_fini(&error);
    return is_refused;
}
