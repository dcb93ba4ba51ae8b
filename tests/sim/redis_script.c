/* Scripts: the commands, and running a script in pieces. */
#include "tests/sim/redis_script.h"

#include <lauxlib.h>

#include "tests/sim/redis_args.h"
#include "tests/sim/redis_block.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_conn.h"
#include "tests/sim/redis_deny.h"
#include "tests/sim/redis_lua.h"
#include "tests/sim/redis_monitor.h"
#include "tests/sim/redis_prepared.h"
#include "tests/sim/redis_sha.h"
#include "tests/sim/redis_tracking.h"

struct script {
    int ref;                         /* of its function in Lua's registry; LUA_NOREF: not run yet */
    const struct prepared *prepared; /* NULL: not prepared */
};

/* ---- state ---- */

void script_init(struct redis *redis)
{
    redis->lua = take_zeroed(1, sizeof *redis->lua);
    redis->lua->conn = conn_new(redis);
    redis->lua->conn->peer = text_copy(SLICE("lua"));
    redis->lua->conn->is_script = redis->lua->conn->is_deny_blocking = true;
    redis->lua->heap = take_zeroed(1, sizeof *redis->lua->heap);
    redis->lua->lua = lua_make(redis);
}

static void forget_run(struct script_state *state)
{
    for (size_t i = 0; i < state->n_keys; i++)
        text_fini(&state->keys[i]);
    free(state->keys);
    if (state->thread != NULL)
        luaL_unref(state->lua, LUA_REGISTRYINDEX, state->thread_ref);
    *state = (struct script_state){.lua = state->lua, .heap = state->heap, .conn = state->conn};
}

void script_abandon(struct redis *redis)
{
    struct redis_conn *caller = redis->lua->caller;
    bool is_orphan = caller != NULL && caller->is_orphan;
    forget_run(redis->lua);
    if (is_orphan)
        conn_free(caller);
}

void script_fini(struct redis *redis)
{
    struct script_state *state = redis->lua;
    conn_free(state->conn);
    lua_heap_fini(state->heap);
    free(state->heap);
    dict_fini(&redis->scripts, free);
    free(state);
    redis->lua = NULL;
}

bool script_is_running(const struct redis *redis)
{
    return redis->lua->has_yielded;
}

bool script_is_busy(const struct redis *redis)
{
    return redis->lua->has_yielded && redis->now_us >= script_busy_from_us(redis);
}

struct redis_conn *script_caller(const struct redis *redis)
{
    return redis->lua != NULL ? redis->lua->caller : NULL;
}

uint64_t script_due_us(const struct redis *redis)
{
    return redis->lua->due_us;
}

uint64_t script_busy_from_us(const struct redis *redis)
{
    return redis->settings.busy_us > 0 ? redis->lua->began_us + redis->settings.busy_us
                                       : REDIS_NEVER;
}

void script_remember_keys(struct redis *redis)
{
    const struct script_state *state = redis->lua;
    static const struct command all_words = {.first_key = 1, .last_key = -1, .key_step = 1};
    struct slice *words = take_zeroed(state->n_keys + 1, sizeof *words);
    for (size_t i = 0; i < state->n_keys; i++)
        words[i + 1] = text_slice(&state->keys[i]);
    tracking_remember(state->caller, &all_words, words, state->n_keys + 1);
    free(words);
}

/* ---- time ---- */

static void kill_hook(lua_State *lua, lua_Debug *place)
{
    const struct redis *redis = lua_script(lua)->conn->redis;
    (void)place;
    if (redis->config.on_stuck != NULL)
        redis->config.on_stuck(true);
    if (is_at_least(redis, 70000))
        lua_push_error(lua, SLICE("Script killed by user with SCRIPT KILL..."));
    else
        lua_pushstring(lua, "Script killed by user with SCRIPT KILL...");
    lua_error(lua);
}

int lua_take_us(lua_State *lua, uint64_t us)
{
    struct script_state *state = lua_script(lua);
    state->took_us += us;
    if (!state->may_yield || state->pcalls > 0 || lua != state->thread)
        return 0;
    state->due_us = state->began_us + state->took_us;
    return lua_yield(lua, 0);
}

static void slice_hook(lua_State *lua, lua_Debug *place)
{
    (void)place;
    lua_take_us(lua, SCRIPT_SLICE_US);
}

/* ---- running ---- */

static void push_words(lua_State *lua, const char *name, const struct slice *words, size_t n)
{
    lua_pushstring(lua, name);
    lua_createtable(lua, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushlstring(lua, words[i].at, words[i].len);
        lua_rawseti(lua, -2, (int)i + 1);
    }
    lua_rawset(lua, LUA_GLOBALSINDEX);
}

/* The position of the error; for an error in a C function that of its caller. */
static bool find_place(lua_State *thread, lua_Debug *place)
{
    if (!lua_getstack(thread, 0, place) || !lua_getinfo(thread, "nSl", place))
        return false;
    if (strcmp(place->what, "C") != 0)
        return true;
    return lua_getstack(thread, 1, place) && lua_getinfo(thread, "nSl", place);
}

static void add_error_text(lua_State *thread, const char *otherwise_code, struct text *text)
{
    size_t len;
    bool is_table = lua_istable(thread, -1);
    if (is_table)
        lua_getfield(thread, -1, "err");
    const char *error = lua_tolstring(thread, -1, &len);
    text_addf(text, "%s", is_table ? "" : otherwise_code);
    if (error != NULL)
        text_add(text, text_upto_nul(slice_of(error, len)));
}

static void reply_failure(struct script_state *state)
{
    lua_Debug place = {0};
    struct text text = {0};
    bool has_place = find_place(state->thread, &place);
    if (is_at_least(state->conn->redis, 70000)) {
        add_error_text(state->thread, "ERR ", &text);
        if (has_place)
            text_addf(&text, " script: %s, on %s:%d.", state->sha, place.source, place.currentline);
    } else {
        text_addf(&text, "ERR Error running script (call to f_%s): ", state->sha);
        if (has_place)
            text_addf(&text, "%s:%d: ", place.source, place.currentline);
        add_error_text(state->thread, "", &text);
    }
    reply_error(state->caller, "%.*s", SHOWN(text_slice(&text)));
    text_fini(&text);
}

/* Runs the script until it ends or yields. True: the script has yielded. */
static bool run_on(struct script_state *state)
{
    lua_sethook(state->thread, state->is_killed ? kill_hook : slice_hook, LUA_MASKCOUNT,
                state->is_killed ? 1 : SCRIPT_SLICE_STEPS);
    int status = lua_resume(state->thread, 0);
    if (status == LUA_YIELD)
        return true;
    if (status != 0)
        reply_failure(state);
    else if (lua_gettop(state->thread) == 0)
        reply_null(state->caller);
    else {
        lua_settop(state->thread, 1);
        lua_reply(state->thread, state->caller, state->conn->protocol);
    }
    return false;
}

static void end_run(struct redis *redis)
{
    struct script_state *state = redis->lua;
    uint64_t left_us = state->has_yielded ? 0 : state->took_us;
    struct redis_conn *orphan = state->caller->is_orphan ? state->caller : NULL;
    forget_run(state);
    if (left_us > 0)
        redis_slow_reader(redis, left_us);
    if (orphan != NULL)
        conn_free(orphan);
}

static void begin_run(struct redis_conn *conn, int ref, const struct slice *argv, size_t argc,
                      size_t n_keys)
{
    struct redis *redis = conn->redis;
    struct script_state *state = redis->lua;
    state->caller = conn;
    state->command = conn->command;
    state->began_us = redis->now_us;
    state->may_yield = redis->depth == 1;
    state->is_readonly = (conn->command->bits & FLAG_READONLY) != 0;
    state->keys = take_zeroed(n_keys, sizeof *state->keys);
    state->n_keys = n_keys;
    for (size_t i = 0; i < n_keys; i++) {
        text_add(&state->keys[i], argv[3 + i]);
        if (redis->config.on_script != NULL)
            redis->config.on_script(argv[3 + i], redis->now_us);
    }
    state->conn->db = conn->db;
    state->conn->protocol = 2;
    state->thread = lua_newthread(state->lua);
    state->thread_ref = luaL_ref(state->lua, LUA_REGISTRYINDEX);
    lua_rawgeti(state->thread, LUA_REGISTRYINDEX, ref);
    push_words(state->thread, "KEYS", argv + 3, n_keys);
    push_words(state->thread, "ARGV", argv + 3 + n_keys, argc - 3 - n_keys);
    if (!run_on(state)) {
        end_run(redis);
        return;
    }
    state->has_yielded = true;
    block_until(conn, BLOCK_SCRIPT, REDIS_NEVER);
}

void script_go_on(struct redis *redis)
{
    struct script_state *state = redis->lua;
    struct redis_conn *caller = state->caller;
    redis->current = caller->is_gone ? NULL : caller;
    redis->executing = state->command;
    redis->depth = 1;
    bool gives_way = run_on(state);
    redis->depth = 0;
    redis->executing = NULL;
    if (!gives_way) {
        if (!caller->is_gone)
            block_end(caller);
        end_run(redis);
    }
    tracking_send_pending(redis);
    redis->current = NULL;
    if (!gives_way)
        block_serve(redis);
}

/* ---- stored scripts ---- */

static struct script *find_script(const struct redis *redis, struct slice sha)
{
    char small[SHA1_HEX];
    if (sha.len != SHA1_HEX)
        return NULL;
    for (size_t i = 0; i < sha.len; i++)
        small[i] = ascii_lower(sha.at[i]);
    return dict_get(&redis->scripts, slice_of(small, SHA1_HEX));
}

static bool load(lua_State *lua, struct script *script, struct slice code)
{
    if (luaL_loadbuffer(lua, code.at, code.len, SCRIPT_CHUNK) != 0)
        return false;
    script->ref = luaL_ref(lua, LUA_REGISTRYINDEX);
    return true;
}

/* NULL: the script does not compile, and the error is replied. */
static struct script *add_script(struct redis_conn *conn, struct slice body, const char *sha)
{
    struct redis *redis = conn->redis;
    lua_State *lua = redis->lua->lua;
    struct script made = {.ref = LUA_NOREF, .prepared = prepared_find(body)};
    if (made.prepared == NULL && !load(lua, &made, script_code(body))) {
        reply_error(conn, "ERR Error compiling script (new function): %s", lua_tostring(lua, -1));
        lua_pop(lua, 1);
        return NULL;
    }
    struct script *script = take_memory(sizeof *script);
    *script = made;
    dict_add(&redis->scripts, slice_of(sha, SHA1_HEX))->value = script;
    return script;
}

static bool read_keys(struct redis_conn *conn, const struct slice *argv, size_t argc,
                      size_t *n_keys)
{
    int64_t n;
    if (!arg_number(conn, argv[2], &n))
        return false;
    if (n > (int64_t)argc - 3)
        reply_error(conn, "ERR Number of keys can't be greater than number of args");
    else if (n < 0)
        reply_error(conn, "ERR Number of keys can't be negative");
    *n_keys = (size_t)n;
    return n >= 0 && n <= (int64_t)argc - 3;
}

static void run_script(struct redis_conn *conn, struct script *script, const char *sha,
                       const struct slice *argv, size_t argc)
{
    size_t n_keys;
    if (!read_keys(conn, argv, argc, &n_keys))
        return;
    if (deny_is_stale(conn->redis)) { /* scripts without the flag allow-stale */
        reply_error(conn, "%s", deny_stale_words(conn->redis));
        return;
    }
    memcpy(conn->redis->lua->sha, sha, SHA1_HEX);
    conn->redis->lua->sha[SHA1_HEX] = '\0';
    if (script->ref == LUA_NOREF &&
        !load(conn->redis->lua->lua, script, text_slice(&script->prepared->code)))
        abort();
    begin_run(conn, script->ref, argv, argc, n_keys);
}

void cmd_eval(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    char sha[SHA1_HEX + 1];
    size_t n_keys;
    monitor_feed(conn, argv, argc);
    if (!read_keys(conn, argv, argc, &n_keys))
        return;
    sha1_hex(argv[1], sha);
    struct script *script = find_script(conn->redis, slice_of(sha, SHA1_HEX));
    if (script == NULL)
        script = add_script(conn, argv[1], sha);
    if (script != NULL)
        run_script(conn, script, sha, argv, argc);
}

void cmd_evalsha(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    size_t n_keys;
    char sha[SHA1_HEX];
    monitor_feed(conn, argv, argc);
    struct script *script = find_script(conn->redis, argv[1]);
    if (argv[1].len == SHA1_HEX && !read_keys(conn, argv, argc, &n_keys))
        return;
    if (script == NULL) {
        reply_error(conn, "NOSCRIPT No matching script.%s",
                    is_valkey_8(conn->redis) ? "" : " Please use EVAL.");
        return;
    }
    for (size_t i = 0; i < SHA1_HEX; i++)
        sha[i] = ascii_lower(argv[1].at[i]);
    run_script(conn, script, sha, argv, argc);
}

void cmd_script_load(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    char spelled[SHA1_HEX + 1];
    const struct prepared *prepared = prepared_find(argv[2]);
    const char *sha = prepared != NULL ? prepared->sha : spelled;
    if (prepared == NULL)
        sha1_hex(argv[2], spelled);
    if (find_script(conn->redis, slice_of(sha, SHA1_HEX)) == NULL &&
        add_script(conn, argv[2], sha) == NULL)
        return;
    reply_word(conn, sha);
}

void cmd_script_flush(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct redis *redis = conn->redis;
    if (argc > 3 || (argc == 3 && !text_is(argv[2], "sync") && !text_is(argv[2], "async"))) {
        reply_error(conn, "ERR SCRIPT FLUSH only support SYNC|ASYNC option");
        return;
    }
    struct dict_walk walk = {0};
    for (struct dict_entry *entry; (entry = dict_next(&redis->scripts, &walk)) != NULL;)
        luaL_unref(redis->lua->lua, LUA_REGISTRYINDEX, ((const struct script *)entry->value)->ref);
    dict_fini(&redis->scripts, free);
    reply_ok(conn);
}

void cmd_script_kill(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    struct script_state *state = conn->redis->lua;
    if (!state->has_yielded) {
        reply_error(conn, "NOTBUSY No scripts in execution right now.");
    } else if (state->has_written) {
        reply_error(
            conn,
            "UNKILLABLE Sorry the script already executed write commands against the dataset. You can "
            "either wait the script termination or kill the server in a hard way using the SHUTDOWN "
            "NOSAVE command.");
    } else {
        state->is_killed = true;
        /* when the hook checks for a kill */
        uint64_t soon_us = conn->redis->now_us + SCRIPT_SLICE_US;
        state->due_us = state->due_us < soon_us ? state->due_us : soon_us;
        reply_ok(conn);
    }
}
