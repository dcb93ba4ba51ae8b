/*
 * The command table: an array of rows, found through one hash over the folded name.
 *
 * Row 0 stands for every unknown command. The index never points to row 0: an entry with id 0 is
 * free. At most half of the entries are used: every search ends. The number of rows only grows
 * while the table is built.
 */
#include "limit/command/command.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"
#include "limit/command/keys.h"
#include "limit/command/own.h"
#include "limit/command/travel.h"

#define CATEGORIES_MAX 64 /* a set of categories is one word; Redis has this limit too */
#define FIRST_SLOTS 1024  /* the rows of Redis 7 and weir fit without a second allocation */
#define WORDS_MAX 32

/*
 * Cost of a call in ns until Redis has reported one, by the flags of Redis. Measured on 7.0.15, as
 * CPU time of the process:
 *
 * GET                    1,100
 * KEYS of 50 keys        6,000
 * EVAL of a short loop   8,100
 * BITCOUNT of 256 KiB   54,000
 *
 * A dangerous command looks at all keys or clients of a server, which may be many.
 */
#define FAST_NS 2000
#define SLOW_NS 20000
#define DANGEROUS_NS 200000

struct slot {
    uint32_t hash;
    uint32_t id;
};

struct command_table {
    _Atomic uint32_t references;
    struct command *rows;
    size_t n_rows;
    size_t room;
    struct slot *slots;
    size_t n_slots; /* a power of two */
    char *categories[CATEGORIES_MAX];
    size_t n_categories;
    bool has_orphans; /* a subcommand was added before its container */
};

struct fact {
    struct slice name;
    const char *flags;
    const char *categories;
    int16_t arity;
    int16_t first_key, last_key, key_step;
};

static const struct fact facts[] = {
#define ROW(name, arity, flags, first, last, step, categories)                                     \
    {{(name), sizeof(name) - 1}, flags, categories, arity, first, last, step},
#include "limit/commands.def"
#undef ROW
};
#define N_FACTS (sizeof facts / sizeof facts[0])

/* ---- the folded name ---- */

struct key {
    size_t len;
    uint32_t hash;
    char text[COMMAND_NAME_MAX];
};

static inline void key_start(struct key *key)
{
    key->len = 0;
    key->hash = UINT32_C(2166136261);
}

/*
 * FNV-1a: the hash of a subcommand continues the hash of its container. False: longer than any
 * known name.
 */
static inline bool key_append(struct key *key, struct slice text)
{
    if (text.len > sizeof key->text - key->len)
        return false;
    uint32_t hash = key->hash;
    char *out = key->text + key->len;
    for (size_t i = 0; i < text.len; i++) {
        out[i] = ascii_lower(text.at[i]);
        hash = (hash ^ (unsigned char)out[i]) * UINT32_C(16777619);
    }
    key->hash = hash;
    key->len += text.len;
    return true;
}

static bool command_key_of(struct key *key, struct slice name)
{
    key_start(key);
    return name.len > 0 && key_append(key, name);
}

/* ---- look-up ---- */

static inline size_t command_find_id(const struct command_table *table, const struct key *key)
{
    size_t mask = table->n_slots - 1;
    for (size_t i = key->hash & mask;; i = (i + 1) & mask) {
        struct slot slot = table->slots[i];
        if (slot.id == 0)
            return 0;
        const struct command *row = &table->rows[slot.id];
        if (slot.hash == key->hash && row->name_len == key->len &&
            memcmp(row->name, key->text, key->len) == 0)
            return slot.id;
    }
}

const struct command *command_find(const struct command_table *table, struct slice name,
                                   struct slice sub)
{
    const struct command *unknown = &table->rows[0];
    struct key key;
    key_start(&key);
    if (!key_append(&key, name))
        return unknown;
    const struct command *row = &table->rows[command_find_id(table, &key)];
    if (row->in_container) /* "config|get" as one word is not a command */
        return unknown;
    if (!row->has_subcommands || sub.len == 0)
        return row;
    if (!key_append(&key, SLICE("|")) || !key_append(&key, sub))
        return unknown;
    return &table->rows[command_find_id(table, &key)];
}

const struct command *command_by_name(const struct command_table *table, struct slice name)
{
    struct key key;
    size_t id = command_key_of(&key, name) ? command_find_id(table, &key) : 0;
    return id ? &table->rows[id] : NULL;
}

size_t command_table_count(const struct command_table *table)
{
    return table->n_rows;
}

const struct command *command_table_row(const struct command_table *table, size_t id)
{
    return &table->rows[id];
}

size_t command_table_categories(const struct command_table *table)
{
    return table->n_categories;
}

struct slice command_table_category(const struct command_table *table, size_t bit)
{
    return slice_str(table->categories[bit]);
}

uint16_t command_flag(struct slice name)
{
    static const struct {
        const char *name;
        uint16_t flag;
    } flags[] = {
        {"write", CMD_WRITE},     {"readonly", CMD_READONLY}, {"admin", CMD_ADMIN},
        {"pubsub", CMD_PUBSUB},   {"noscript", CMD_NOSCRIPT}, {"blocking", CMD_BLOCKING},
        {"no_auth", CMD_NO_AUTH}, {"module", CMD_MODULE},     {"movablekeys", CMD_MOVABLEKEYS},
        {"fast", CMD_FAST},
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (slice_eq_nocase(slice_str(flags[i].name), name))
            return flags[i].flag;
    return 0;
}

/* ---- costs ---- */

void command_table_set_cost(struct command_table *table, size_t id, uint32_t ns, uint32_t calls)
{
    struct command_cost *cost = &table->rows[id].cost;
    atomic_store_explicit(&cost->ns, ns, memory_order_relaxed);
    atomic_store_explicit(&cost->calls, calls, memory_order_relaxed);
}

void command_table_carry_costs(struct command_table *to, const struct command_table *from)
{
    for (size_t i = 1; i < from->n_rows; i++) {
        const struct command *row = &from->rows[i];
        const struct command *same = command_by_name(to, slice_of(row->name, row->name_len));
        if (same != NULL && command_cost_calls(row) > 0)
            command_table_set_cost(to, same->id, command_cost_ns(row), command_cost_calls(row));
    }
}

/* ---- the index ---- */

static void command_index_put(struct command_table *table, uint32_t hash, uint32_t id)
{
    size_t mask = table->n_slots - 1;
    size_t i = hash & mask;
    while (table->slots[i].id != 0)
        i = (i + 1) & mask;
    table->slots[i] = (struct slot){hash, id};
}

static void index_grow(struct command_table *table)
{
    struct slot *old = table->slots;
    size_t n_old = table->n_slots;
    table->n_slots = n_old * 2;
    table->slots = mem_zalloc(table->n_slots, sizeof *table->slots);
    for (size_t i = 0; i < n_old; i++)
        if (old[i].id != 0)
            command_index_put(table, old[i].hash, old[i].id);
    free(old);
}

/* ---- building ---- */

static size_t row_new(struct command_table *table)
{
    if (table->n_rows == table->room) {
        table->room *= 2;
        table->rows = mem_realloc(table->rows, table->room, sizeof *table->rows);
    }
    size_t id = table->n_rows++;
    table->rows[id] =
        (struct command){.id = (uint16_t)id, .flow = FLOW_ONE, .cost = {.ns = SLOW_NS}};
    return id;
}

/* Finds or makes the row of that name. 0: the table is full. */
static size_t row_get(struct command_table *table, const struct key *key)
{
    size_t id = command_find_id(table, key);
    if (id != 0 || table->n_rows > UINT16_MAX)
        return id;
    id = row_new(table);
    if (table->n_rows * 2 > table->n_slots)
        index_grow(table);
    command_index_put(table, key->hash, (uint32_t)id);
    struct command *row = &table->rows[id];
    memcpy(row->name, key->text, key->len);
    row->name_len = (uint8_t)key->len;
    row->in_container = memchr(key->text, '|', key->len) != NULL;
    return id;
}

/*
 * The bit of the category, which is added if missing. 0: no bit is left; Redis has no more bits
 * either.
 */
static uint64_t command_category_bit(struct command_table *table, struct slice name)
{
    size_t bit = 0;
    while (bit < table->n_categories && !slice_eq_nocase(slice_str(table->categories[bit]), name))
        bit++;
    if (bit == CATEGORIES_MAX)
        return 0;
    if (bit == table->n_categories)
        table->categories[table->n_categories++] = mem_strndup(name.at, name.len);
    return UINT64_C(1) << bit;
}

static int16_t clamp(int64_t value)
{
    return (int16_t)(value > INT16_MAX ? INT16_MAX : value < INT16_MIN ? INT16_MIN : value);
}

static bool command_begins(struct slice name, struct slice container)
{
    return slice_eq_nocase(slice_of(name.at, container.len), container);
}

/*
 * True if `name` is a subcommand of `container`. Called for each pair of names: the checks of
 * length and '|' settle most pairs.
 */
static bool command_is_within(const struct slice *name, const struct slice *container)
{
    return name->len > container->len && name->at[container->len] == '|' &&
           command_begins(*name, *container);
}

/* Subcommands may be added before or after their container. */
static void link_container(struct command_table *table, size_t id)
{
    struct command *row = &table->rows[id];
    struct slice name = slice_of(row->name, row->name_len);
    const char *bar = memchr(name.at, '|', name.len);
    if (bar != NULL) {
        const struct command *container =
            command_by_name(table, slice_of(name.at, (size_t)(bar - name.at)));
        if (container != NULL)
            table->rows[container->id].has_subcommands = true;
        else
            table->has_orphans = true;
        return;
    }
    for (size_t i = 1; table->has_orphans && i < table->n_rows && !row->has_subcommands; i++) {
        const struct command *other = &table->rows[i];
        struct slice its = {.at = other->name, .len = other->name_len};
        row->has_subcommands = command_is_within(&its, &name);
    }
}

static bool is_transactional(enum effect effect)
{
    return effect == EFFECT_MULTI || effect == EFFECT_EXEC || effect == EFFECT_DISCARD ||
           effect == EFFECT_WATCH || effect == EFFECT_UNWATCH;
}

static bool has_category(const struct command_info *info, struct slice name)
{
    for (size_t i = 0; i < info->n_categories; i++)
        if (slice_eq_nocase(info->categories[i], name))
            return true;
    return false;
}

static uint32_t default_cost_ns(const struct command_info *info, const struct command *row)
{
    if ((info->flags & CMD_FAST) != 0 || command_is_bracket(row))
        return FAST_NS;
    return has_category(info, SLICE("dangerous")) ? DANGEROUS_NS : SLOW_NS;
}

static enum command_kind command_kind_of(const struct command_info *info, const struct command *row)
{
    if (is_transactional((enum effect)row->effect))
        return KIND_TX;
    if (row->flags & CMD_PUBSUB)
        return KIND_PUBSUB;
    if (row->flags & CMD_CONTROL)
        return KIND_CONTROL;
    if (has_category(info, SLICE("scripting")))
        return KIND_SCRIPT;
    if (row->blocks)
        return KIND_BLOCKING;
    return row->flags & CMD_WRITE ? KIND_WRITE : row->flags & CMD_READONLY ? KIND_READ : KIND_OTHER;
}

const char *command_kind_name(enum command_kind kind)
{
    static const char *const names[COMMAND_KINDS] = {
        [KIND_OTHER] = "other",       [KIND_READ] = "read",     [KIND_WRITE] = "write",
        [KIND_BLOCKING] = "blocking", [KIND_SCRIPT] = "script", [KIND_CONTROL] = "control",
        [KIND_PUBSUB] = "pubsub",     [KIND_TX] = "tx",
    };
    return names[kind];
}

static bool has_keys(const struct command *row)
{
    return row->keys == KEYS_POSITION ? row->first_key > 0
                                      : row->keys != KEYS_NONE && row->keys != KEYS_CHANNELS;
}

/*
 * True for SCAN, HSCAN, SSCAN and ZSCAN: a cursor is valid only at the server that gave the cursor.
 */
static bool is_scan(struct slice name)
{
    static const struct slice scan = SLICE("scan");
    return name.len >= scan.len && memcmp(name.at + name.len - scan.len, scan.at, scan.len) == 0;
}

static bool reads_keys(const struct command_info *info, const struct command *row)
{
    return row->is_shareable && row->flow == FLOW_ONE && row->effect == EFFECT_NONE &&
           !row->may_forge && !row->blocks &&
           (row->flags & (CMD_READONLY | CMD_WRITE)) == CMD_READONLY && has_keys(row) &&
           !is_scan(info->name);
}

/* Skips a command with a name too long for look-up: the command counts as unknown. */
static void command_put(struct command_table *table, const struct command_info *info)
{
    struct key key;
    size_t id = command_key_of(&key, info->name) ? row_get(table, &key) : 0;
    if (id == 0)
        return;
    struct travel travel = travel_of(info->name, info->flags);
    struct keys_how keys = keys_how(info->name);
    struct fanout_way way = fanout_of(info->name, &info->tips);
    struct command *row = &table->rows[id];
    row->flow = (uint8_t)travel.flow;
    row->effect = (uint8_t)travel.effect;
    row->keys = (uint8_t)keys.rule;
    row->keys_arg = keys.arg;
    row->fanout = (uint8_t)way.to;
    row->join = (uint8_t)way.join;
    row->is_shareable = travel.is_shareable;
    row->blocks = travel.blocks;
    row->pins = travel.pins;
    row->may_forge = travel.may_forge;
    row->is_urgent = travel.is_urgent;
    row->is_pausable = travel.is_pausable || (info->flags & CMD_WRITE) != 0;
    row->arity = clamp(info->arity);
    row->flags = (uint16_t)((info->flags & ~(CMD_CONTROL | CMD_HANDSHAKE)) |
                            (travel.is_control ? CMD_CONTROL : 0) |
                            (travel.is_handshake ? CMD_HANDSHAKE : 0));
    row->first_key = clamp(info->first_key);
    row->last_key = clamp(info->last_key);
    row->key_step = clamp(info->key_step);
    row->categories = 0;
    for (size_t i = 0; i < info->n_categories; i++)
        row->categories |= command_category_bit(table, info->categories[i]);
    row->kind = (uint8_t)command_kind_of(info, row);
    row->reads_keys = reads_keys(info, row);
    command_table_set_cost(table, id, default_cost_ns(info, row), 0);
    link_container(table, id);
}

static size_t command_split(const char *text, struct slice *words)
{
    size_t n = 0;
    for (text += strspn(text, " "); *text && n < WORDS_MAX; text += strspn(text, " ")) {
        words[n] = slice_of(text, strcspn(text, " "));
        text += words[n++].len;
    }
    return n;
}

static void put_fact(struct command_table *table, const struct fact *fact)
{
    struct slice flags[WORDS_MAX];
    struct slice categories[WORDS_MAX];
    struct command_info info = {
        .name = fact->name,
        .arity = fact->arity,
        .first_key = fact->first_key,
        .last_key = fact->last_key,
        .key_step = fact->key_step,
        .categories = categories,
        .n_categories = command_split(fact->categories, categories),
    };
    size_t n_flags = command_split(fact->flags, flags);
    for (size_t i = 0; i < n_flags; i++)
        info.flags |= command_flag(flags[i]);
    command_put(table, &info);
}

/* Adds a command that Redis has not listed: the row of commands.def, or only the name. */
static void put_known(struct command_table *table, struct slice name)
{
    if (command_by_name(table, name) != NULL)
        return;
    for (size_t i = 0; i < N_FACTS; i++)
        if (slice_eq_nocase(facts[i].name, name)) {
            put_fact(table, &facts[i]);
            return;
        }
    command_put(table, &(struct command_info){.name = name, .arity = -1});
}

/*
 * Adds the known subcommands of a container. Redis 6.2 lists containers without their subcommands.
 * No version lists the subcommands of later versions, but clients send them.
 */
static void put_subcommands(struct command_table *table, struct slice container)
{
    if (memchr(container.at, '|', container.len) != NULL)
        return;
    for (size_t i = 0; i < N_FACTS; i++)
        if (command_is_within(&facts[i].name, &container) &&
            command_by_name(table, facts[i].name) == NULL)
            put_fact(table, &facts[i]);
    for (size_t i = 0; i < travel_count(); i++) {
        const struct slice *name = &travel_row(i)->name;
        if (command_is_within(name, &container) && name->at[name->len - 1] != '*')
            put_known(table, *name);
    }
}

/* weir's own commands stay unchanged, even if a module has a command of that name. */
void command_table_add(struct command_table *table, const struct command_info *info)
{
    if (own_find(info->name) != NULL)
        return;
    command_put(table, info);
    put_subcommands(table, info->name);
}

static void command_put_own(struct command_table *table, size_t i)
{
    const struct own *own = own_row(i);
    const struct slice categories[] = {SLICE("limit"),
                                       own->writes ? SLICE("limit-write") : SLICE("limit-read")};
    command_put(table, &(struct command_info){
                           .name = slice_str(own->name),
                           .arity = own->arity,
                           .first_key = own->first_key,
                           .last_key = own->last_key,
                           .key_step = own->key_step,
                           .categories = categories,
                           .n_categories = 2,
                       });
    table->rows[command_by_name(table, slice_str(own->name))->id].own = (uint8_t)(i + 1);
}

/*
 * A new table has row 0 and the commands that weir must know, listed by Redis or not (6.2 does not
 * list QUIT).
 */
struct command_table *command_table_new(void)
{
    struct command_table *table = mem_zalloc(1, sizeof *table);
    atomic_init(&table->references, 1);
    table->n_slots = FIRST_SLOTS;
    table->slots = mem_zalloc(table->n_slots, sizeof *table->slots);
    table->room = FIRST_SLOTS / 2;
    table->rows = mem_zalloc(table->room, sizeof *table->rows);
    row_new(table);
    table->rows[0].may_forge = true;
    for (size_t i = 0; i < travel_count(); i++)
        if (travel_row(i)->flow == FLOW_QUIT || travel_row(i)->flow == FLOW_DROP)
            put_known(table, travel_row(i)->name);
    for (size_t i = 0; i < own_count(); i++)
        command_put_own(table, i);
    return table;
}

struct command_table *command_table_builtin(void)
{
    struct command_table *table = command_table_new();
    for (size_t i = 0; i < N_FACTS; i++) {
        put_fact(table, &facts[i]);
        put_subcommands(table, facts[i].name);
    }
    return table;
}

static struct command_table *known;

static void make_known(void)
{
    known = command_table_builtin();
}

const struct command_table *command_table_known(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_known);
    return known;
}

struct command_table *command_table_get(struct command_table *table)
{
    atomic_fetch_add_explicit(&table->references, 1, memory_order_relaxed);
    return table;
}

void command_table_put(struct command_table *table)
{
    if (atomic_fetch_sub_explicit(&table->references, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < table->n_categories; i++)
        free(table->categories[i]);
    free(table->slots);
    free(table->rows);
    free(table);
}
