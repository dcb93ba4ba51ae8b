/*
 * Finds keys: a rule turns a request into a layout, which says which arguments are keys.
 *
 * A layout lies within argc, whatever the request claims. Arguments are read in order, never past
 * the end of the bytes. Rules agree with Redis on every request that Redis would execute. A request
 * that Redis refuses may be counted differently.
 */
#include "limit/command/keys.h"

#include <assert.h>

#include "base/hash.h"
#include "base/num.h"
#include "limit/command/slot.h"
#include "resp/cursor.h"

/*
 * `count` keys, `step` arguments apart, from argument `first` on. Unless 0, argument `store` is one
 * more key.
 */
struct layout {
    uint32_t first;
    uint32_t count;
    uint32_t step;
    uint32_t store;
};

static const struct layout nothing;

#define NO_STEP UINT32_MAX /* KEYS_PARTS: the words between keys decide where the next key is */

/* ---- arguments in order, without argv_walk, which needs a whole request ---- */

struct args {
    const char *at; /* header of argument `next` */
    const char *end;
    uint32_t next;
    uint32_t argc;
    bool is_cut; /* an announced argument was looked for and is not wholly in the bytes */
};

/* Reads the header line at `at`, and moves `at` behind the line. False: none, or incomplete. */
static bool keys_header_take(struct args *args, char type, uint64_t *number)
{
    if (args->at == args->end || *args->at != type)
        return false;
    struct cursor c = {args->at, args->at + 1, args->end};
    *number = 0;
    digits_take(&c, number);
    if (c.end - c.at < 2 || *c.at != '\r')
        return false;
    args->at = c.at + 2;
    return true;
}

/* Returns the next argument. False, here and from then on: none, or incomplete. */
static bool args_next(struct args *args, struct slice *arg)
{
    uint64_t len;
    if (args->next >= args->argc || !keys_header_take(args, '$', &len) ||
        len > (uint64_t)(args->end - args->at)) {
        args->is_cut |= args->next < args->argc;
        args->at = args->end;
        return false;
    }
    *arg = slice_of(args->at, len);
    args->at += len;
    args->at += args->end - args->at < 2 ? args->end - args->at : 2;
    args->next++;
    return true;
}

static struct args args_of(struct slice request, uint32_t argc)
{
    if (request.len == 0)
        request = SLICE(""); /* avoids arithmetic on NULL */
    struct args args = {request.at, request.at + request.len, 0, argc, false};
    uint64_t announced;
    if (!keys_header_take(&args, '*', &announced))
        args.at = args.end;
    return args;
}

/* Returns argument `index`, which the walk must not have passed yet. */
static bool args_at(struct args *args, uint32_t index, struct slice *arg)
{
    assert(index >= args->next);
    while (args_next(args, arg))
        if (args->next == index + 1)
            return true;
    return false;
}

/* Walks over all arguments. True if all arguments are complete. */
static bool args_are_whole(struct args *args)
{
    struct slice arg;
    while (args_next(args, &arg))
        ;
    return args->next == args->argc;
}

/* ---- options ---- */

/*
 * Number of values that follow an option, equal in every command. Values are skipped, since a value
 * may be the word STORE.
 */
static uint32_t values_of(struct slice option)
{
    static const struct {
        const char *name;
        uint32_t values;
    } options[] = {
        {"by", 1},    {"get", 1},   {"limit", 2}, {"count", 1}, {"auth", 1},
        {"auth2", 2}, {"block", 1}, {"group", 2}, {"store", 1}, {"storedist", 1},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (slice_eq_nocase(slice_str(options[i].name), option))
            return options[i].values;
    return 0;
}

/* Returns the option at *index, and moves *index to the next option. */
static bool option_next(struct args *args, uint32_t *index, struct slice *option)
{
    if (*index >= args->argc || !args_at(args, *index, option))
        return false;
    *index += 1 + values_of(*option);
    return true;
}

/* Index of the argument after the option `name`; 0: not seen. */
static uint32_t after_option(struct args *args, uint32_t index, struct slice name)
{
    struct slice option;
    while (option_next(args, &index, &option))
        if (slice_eq_nocase(option, name))
            return index;
    return 0;
}

/* ---- rules ---- */

static struct layout by_position(const struct command *command, struct args *args)
{
    int64_t first = command->first_key;
    int64_t last =
        command->last_key < 0 ? (int64_t)args->argc + command->last_key : command->last_key;
    if (first <= 0 || command->key_step <= 0 || last < first || last >= args->argc)
        return nothing;
    uint32_t step = (uint32_t)command->key_step;
    return (struct layout){
        .first = (uint32_t)first, .count = (uint32_t)(last - first) / step + 1, .step = step};
}

static struct layout none(const struct command *command, struct args *args)
{
    (void)command;
    (void)args;
    return nothing;
}

static struct layout counted(const struct command *command, struct args *args)
{
    uint32_t first = command->keys_arg + UINT32_C(1);
    struct slice number;
    int64_t count;
    if (!args_at(args, command->keys_arg, &number) || !num_parse(number, &count))
        return nothing;
    if (count <= 0 || count > (int64_t)args->argc - first)
        return nothing;
    return (struct layout){.first = first, .count = (uint32_t)count, .step = 1};
}

static struct layout store(const struct command *command, struct args *args)
{
    struct layout layout = counted(command, args);
    layout.store = layout.count > 0 ? 1 : 0;
    return layout;
}

static struct layout streams(const struct command *command, struct args *args)
{
    uint32_t first = after_option(args, command->keys_arg, SLICE("streams"));
    if (first == 0)
        return nothing;
    return (struct layout){.first = first, .count = (args->argc - first) / 2, .step = 1};
}

static struct layout stored(const struct command *command, struct args *args)
{
    if (args->argc < 2)
        return nothing;
    struct layout layout = {.first = 1, .count = 1, .step = 1};
    uint32_t index = command->keys_arg;
    struct slice option;
    while (option_next(args, &index, &option))
        if (slice_eq_nocase(option, SLICE("store")) || slice_eq_nocase(option, SLICE("storedist")))
            if (index - 1 < args->argc)
                layout.store = index - 1;
    return layout;
}

static struct layout keys_named(const struct command *command, struct args *args)
{
    struct slice word;
    uint32_t first = command->keys_arg + UINT32_C(1);
    if (!args_at(args, command->keys_arg, &word))
        return nothing;
    first += slice_eq_nocase(word, SLICE("check"));
    return first < args->argc ? (struct layout){.first = first, .count = 1, .step = 1} : nothing;
}

static struct layout parts(const struct command *command, struct args *args)
{
    struct slice word;
    struct layout layout = {.first = command->keys_arg + UINT32_C(1), .step = NO_STEP};
    uint32_t key = layout.first;
    while (key < args->argc && args_at(args, key, &word)) {
        layout.count++;
        while (args_next(args, &word) && !slice_eq_nocase(word, SLICE("and")))
            ;
        key = args->next + 1;
    }
    return layout;
}

/*
 * If the key of MIGRATE is empty, the keys are a list after KEYS. If a truncated request shows no
 * KEYS, the keys are unknown.
 */
static struct layout migrate(const struct command *command, struct args *args)
{
    struct slice key;
    if (args->argc <= 3 || !args_at(args, 3, &key))
        return nothing;
    struct layout layout = {.first = 3, .count = 1, .step = 1};
    if (key.len > 0)
        return layout;
    uint32_t first = after_option(args, command->keys_arg, SLICE("keys"));
    if (first > 0 && first < args->argc)
        return (struct layout){.first = first, .count = args->argc - first, .step = 1};
    return args_are_whole(args) ? layout : nothing;
}

static struct layout (*const rules[])(const struct command *command, struct args *args) = {
    [KEYS_POSITION] = by_position, [KEYS_NONE] = none,       [KEYS_CHANNELS] = none,
    [KEYS_COUNTED] = counted,      [KEYS_STORE] = store,     [KEYS_STREAMS] = streams,
    [KEYS_STORED] = stored,        [KEYS_MIGRATE] = migrate, [KEYS_PARTS] = parts,
    [KEYS_NAMED] = keys_named,
};

/* The layout of the arguments that have slots: keys, or shard channels instead of keys. */
static struct layout slotted(const struct command *command, struct args *args)
{
    return command->keys == KEYS_CHANNELS ? by_position(command, args)
                                          : rules[command->keys](command, args);
}

/* ---- truncated requests ---- */

/* The largest possible number of keys, whatever the missing arguments are. */
static uint32_t at_most(const struct command *command, uint32_t argc)
{
    uint32_t behind = argc > command->keys_arg + UINT32_C(1) ? argc - command->keys_arg - 1 : 0;
    switch ((enum keys_rule)command->keys) {
    case KEYS_COUNTED:
        return behind;
    case KEYS_STORE:
        return behind + 1;
    case KEYS_STREAMS:
        return behind / 2;
    case KEYS_PARTS:
        return behind / 3 + 1;
    case KEYS_STORED:
        return 2;
    case KEYS_NAMED:
        return 1;
    case KEYS_MIGRATE:
        return argc > 5 ? argc - 4 : 1;
    case KEYS_POSITION:
    case KEYS_NONE:
    case KEYS_CHANNELS:
        break;
    }
    return 0;
}

uint32_t keys_most(const struct command *command, struct slice request, uint32_t argc)
{
    struct args args = args_of(request, argc);
    struct layout layout = rules[command->keys](command, &args);
    uint32_t count = layout.count + (layout.store > 0);
    uint32_t most = args.is_cut ? at_most(command, argc) : 0;
    return most > count ? most : count;
}

bool keys_are_hidden(const struct command *command, struct slice request, uint32_t argc)
{
    struct slice key;
    struct args args = args_of(request, argc);
    struct layout layout = rules[command->keys](command, &args);
    if (layout.count == 0)
        return args.is_cut && at_most(command, argc) > 0;
    return !keys_first(command, request, argc, &key);
}

enum keys_sight keys_block(const struct command *command, struct slice request, uint32_t argc)
{
    struct args args = args_of(request, argc);
    uint32_t index = command->keys_arg;
    struct slice option;
    while (option_next(&args, &index, &option)) {
        if (slice_eq_nocase(option, SLICE("block")))
            return KEYS_SEEN;
        if (slice_eq_nocase(option, SLICE("streams")))
            return KEYS_ABSENT;
    }
    return args.is_cut ? KEYS_HIDDEN : KEYS_ABSENT;
}

/* ---- interface ---- */

struct keys_how keys_how(struct slice name)
{
    static const struct {
        const char *name;
        struct keys_how how;
    } rows[] = {
#define ROW(name, rule, arg) {name, {KEYS_##rule, arg}},
#include "limit/command/keys.def"
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (slice_eq_nocase(slice_str(rows[i].name), name))
            return rows[i].how;
    return (struct keys_how){KEYS_POSITION, 0};
}

uint32_t keys_count(const struct command *command, struct slice request, uint32_t argc)
{
    struct args args = args_of(request, argc);
    struct layout layout = rules[command->keys](command, &args);
    return layout.count + (layout.store > 0);
}

bool keys_first(const struct command *command, struct slice request, uint32_t argc,
                struct slice *key)
{
    struct args args = args_of(request, argc);
    struct layout layout = rules[command->keys](command, &args);
    if (layout.count == 0)
        return false;
    bool is_store_first = layout.store > 0 && layout.store < layout.first;
    args = args_of(request, argc);
    return args_at(&args, is_store_first ? layout.store : layout.first, key);
}

static bool keys_is_key(const struct layout *layout, uint32_t index)
{
    uint32_t behind = index - layout->first;
    if (index == 0 || index == layout->store)
        return index > 0;
    return index >= layout->first && behind % layout->step == 0 &&
           behind / layout->step < layout->count;
}

/* A walk over the keys. walk_of starts the walk with args_of(request) and slotted(). */
struct key_walk {
    struct args args;
    struct layout layout;
    uint32_t left; /* number of keys not reached yet */
    bool may_hide;
};

static struct key_walk walk_of(const struct command *command, struct slice request, uint32_t argc)
{
    struct args args = args_of(request, argc);
    struct key_walk walk = {.layout = slotted(command, &args)};
    walk.left = walk.layout.count + (walk.layout.store > 0);
    walk.may_hide = args.is_cut && at_most(command, argc) > walk.left;
    walk.args = args_of(request, argc);
    return walk;
}

/* Returns the next key. False: none in the request; `left` is then the number of missing keys. */
static bool walk_next(struct key_walk *walk, struct slice *key)
{
    while (walk->left > 0 && args_next(&walk->args, key)) {
        uint32_t index = walk->args.next - 1;
        if (walk->layout.step == NO_STEP && index > walk->layout.first &&
            slice_eq_nocase(*key, SLICE("and")))
            walk->layout.first = index + 2; /* the key of the next part, behind its algorithm */
        if (!keys_is_key(&walk->layout, index))
            continue;
        walk->left--;
        return true;
    }
    return false;
}

int32_t keys_slot(const struct command *command, struct slice request, uint32_t argc)
{
    struct key_walk walk = walk_of(command, request, argc);
    int32_t slot = KEYS_NO_SLOT;
    struct slice key;
    while (walk_next(&walk, &key)) {
        int32_t own = slot_of(key);
        if (slot >= 0 && slot != own)
            return KEYS_CROSSING;
        slot = own;
    }
    return walk.left > 0 || walk.may_hide ? KEYS_HIDDEN_SLOT : slot;
}

bool keys_each(const struct command *command, struct slice request, uint32_t argc,
               void (*take)(void *arg, struct slice key), void *arg)
{
    struct key_walk walk = walk_of(command, request, argc);
    struct slice key;
    while (walk_next(&walk, &key))
        take(arg, key);
    return walk.left == 0 && !walk.may_hide;
}

bool keys_overlap(const struct command *a, struct slice a_request, uint32_t a_argc,
                  const struct command *b, struct slice b_request, uint32_t b_argc)
{
    struct key_walk outer = walk_of(a, a_request, a_argc);
    const struct key_walk from = walk_of(b, b_request, b_argc);
    struct slice one;
    struct slice other;
    if ((uint64_t)outer.left * from.left > KEYS_COMPARED_MAX || outer.may_hide || from.may_hide)
        return true;
    while (walk_next(&outer, &one)) {
        struct key_walk inner = from;
        while (walk_next(&inner, &other))
            if (slice_eq(one, other))
                return true;
        if (inner.left > 0)
            return true;
    }
    return outer.left > 0;
}

/* ---- a filter for keys of commands in flight ---- */

/* Not secret: a client that makes its own keys collide delays only itself. */
static const struct hash_key hash_key = {0, 0};

static void key_filter_set(uint64_t *words, uint64_t hash)
{
    words[hash % KEY_FILTER_WORDS] |= UINT64_C(1) << (hash >> 8 & 63);
    words[(hash >> 16) % KEY_FILTER_WORDS] |= UINT64_C(1) << (hash >> 24 & 63);
}

static bool key_filter_has(const uint64_t *words, uint64_t hash)
{
    return (words[hash % KEY_FILTER_WORDS] >> (hash >> 8 & 63) & 1) != 0 &&
           (words[(hash >> 16) % KEY_FILTER_WORDS] >> (hash >> 24 & 63) & 1) != 0;
}

void key_filter_add(struct key_filter *filter, struct slice key, bool is_read)
{
    uint64_t hash = hash_bytes(hash_key, key);
    filter->is_used = true;
    key_filter_set(filter->all, hash);
    if (!is_read)
        key_filter_set(filter->written, hash);
}

bool key_filter_bars(const struct key_filter *filter, struct slice key, bool is_read)
{
    return filter->is_used &&
           key_filter_has(is_read ? filter->written : filter->all, hash_bytes(hash_key, key));
}
