#include "front/commands/console.h"

#include "base/err.h"
#include "base/mem.h"
#include "front/client/answer.h"
#include "front/client/binding.h"
#include "front/route/lane_choice.h"
#include "front/client/session.h"
#include "front/session/setinfo.h"
#include "quota/quota.h"
#include "quota/command_merge.h"
#include "resp/argv.h"

/* ---- the session ---- */

/*
 * Returns true if weir alone holds the session's state: the client has no private lane, and weir
 * picks a shared lane by that state. With a private lane Redis must learn of a change, too.
 */
static bool is_weirs_alone(struct client *client)
{
    lane_choice_release(client);
    return !client_has_own_lane(client);
}

/*
 * Changes the session's protocol and name. False if out of memory, or if the client is being
 * closed.
 */
static bool console_change(struct client *client, uint8_t protocol, bool has_name,
                           struct slice name)
{
    if (!session_ask(client, protocol, has_name, name)) {
        client_close_starved(client);
        return false;
    }
    if (session_take_asked(client))
        lane_choice_note_name(client);
    return binding_change(client);
}

/* Returns a number that no other open connection has. */
static int64_t id_of(const struct client *client)
{
    return client->link.watch.fd;
}

static void console_greet(const struct client *client, struct build *out)
{
    out->is_resp3 = session_protocol(client) == 3;
    build_map(out, 7);
    build_bulk_str(out, "server");
    build_bulk_str(out, "weir");
    build_bulk_str(out, "version");
    build_bulk_str(out, WEIR_VERSION);
    build_bulk_str(out, "proto");
    build_int(out, session_protocol(client));
    build_bulk_str(out, "id");
    build_int(out, id_of(client));
    build_bulk_str(out, "mode");
    build_bulk_str(out, "standalone");
    build_bulk_str(out, "role");
    build_bulk_str(out, "master");
    build_bulk_str(out, "modules");
    build_array(out, 0);
}

/* Answers HELLO. False for HELLO with AUTH, which Redis must answer. */
static bool hello(struct client *client, const struct request *request, struct build *out)
{
    char error[HELLO_ERROR_ROOM];
    struct hello hello;
    if (!hello_read(&hello, request->bytes, error)) {
        build_error(out, slice_str(error));
        return true;
    }
    if (hello.has_auth || !is_weirs_alone(client))
        return false;
    if (console_change(client, hello.protocol, hello.has_name, hello.name))
        console_greet(client, out);
    return true;
}

static bool console_set_name(struct client *client, const struct request *request,
                             struct build *out)
{
    if (request->argc != 3 || !is_weirs_alone(client))
        return false;
    if (!hello_is_name(request->args[1]))
        build_error(out, SLICE(HELLO_BAD_NAME));
    else if (console_change(client, 0, true, request->args[1]))
        build_status(out, SLICE("OK"));
    return true;
}

static bool get_name(struct client *client, const struct request *request, struct build *out)
{
    struct slice name = session_name(client);
    if (request->argc != 2)
        return false;
    if (name.len > 0)
        build_bulk(out, name);
    else
        build_nil(out);
    return true;
}

static bool set_info(struct client *client, const struct request *request, struct build *out)
{
    if (request->argc != 4 || !is_weirs_alone(client))
        return false;
    if (setinfo_note(client, request))
        build_status(out, SLICE("OK"));
    else
        client_close_starved(client);
    return true;
}

static bool id(struct client *client, const struct request *request, struct build *out)
{
    if (request->argc != 2)
        return false;
    build_int(out, id_of(client));
    return true;
}

/* ---- commands without state ---- */

static bool console_ping(struct client *client, const struct request *request, struct build *out)
{
    (void)client;
    if (request->argc > 2)
        return false;
    if (request->argc == 2)
        build_bulk(out, request->args[0]);
    else
        build_status(out, SLICE("PONG"));
    return true;
}

static bool echo(struct client *client, const struct request *request, struct build *out)
{
    (void)client;
    if (request->argc != 2)
        return false;
    build_bulk(out, request->args[0]);
    return true;
}

static bool select_first(struct client *client, const struct request *request, struct build *out)
{
    if (request->argc != 2 || !slice_eq(request->args[0], SLICE("0")) ||
        session_database(client) != 0)
        return false;
    build_status(out, SLICE("OK"));
    return true;
}

/* ---- COMMAND ---- */

/*
 * Answers COMMAND. False for COMMAND HELP and for subcommands that look for keys, which Redis
 * answers.
 */
static bool catalog(struct client *client, const struct request *request, struct build *out)
{
    command_merge_alone(request->bytes, client->front->rules->cell != QUOTA_CELL_OFF, out);
    return true;
}

/* ---- the table ---- */

static const struct {
    const char *name;
    /* builds the reply; false: Redis answers */
    bool (*tell)(struct client *client, const struct request *request, struct build *out);
} commands[] = {
    {"hello", hello},
    {"client|setname", console_set_name},
    {"client|getname", get_name},
    {"client|setinfo", set_info},
    {"client|id", id},
    {"ping", console_ping},
    {"echo", echo},
    {"select", select_first},
    {"command", catalog},
    {"command|docs", catalog},
    {"command|info", catalog},
    {"command|list", catalog},
    {"command|count", catalog},
};
#define N_COMMANDS (sizeof commands / sizeof commands[0])

static size_t console_find(const struct request *request)
{
    size_t i = 0;
    while (i < N_COMMANDS && strcmp(commands[i].name, request->command->name) != 0)
        i++;
    return i;
}

static bool needs_redis(const struct request *request)
{
    const struct command *command = request->command;
    bool is_own = command->flow == FLOW_OWN && !quota_decides(command);
    return !is_own && command->flow != FLOW_QUIT && command->effect != EFFECT_RESET;
}

static bool is_login(const struct request *request)
{
    return request->command->effect == EFFECT_AUTH || request->command->effect == EFFECT_HELLO;
}

/* Refuses the request. Commands after a refused MULTI must not run outside a transaction. */
static enum route console_refuse(struct client *client, struct request *request, struct slice error)
{
    if (request_effect(request) == EFFECT_MULTI)
        transaction_break(&client->transaction);
    return answer_error(client, NULL, request, error);
}

enum route console_answer(struct client *client, struct request *request)
{
    if (!transaction_is_none(&client->transaction) || pin_has(client, PIN_PASSTHROUGH))
        return ROUTE_GOES_ON;
    size_t i = request->is_large || session_may_only_subscribe(client) ? N_COMMANDS
                                                                       : console_find(request);
    struct build out;
    build_init(&out, session_protocol(client) == 3);
    if (i < N_COMMANDS && commands[i].tell(client, request, &out)) {
        if (client_is_leaving(client)) {
            build_fini(&out);
            return ROUTE_STOP;
        }
        answer_built(client, &out);
        answer_count(client, request, RESULT_LOCAL);
        return client_is_closed(client) ? ROUTE_STOP : ROUTE_TAKEN;
    }
    build_fini(&out);
    if (!needs_redis(request))
        return ROUTE_GOES_ON;
    if (node_is_silent(front_default_node(client->front)))
        return console_refuse(client, request, err_text(ERR_UPSTREAM_SILENT));
    if (!is_login(request) && session_must_log_in(client))
        return console_refuse(client, request, SLICE("-NOAUTH Authentication required.\r\n"));
    return ROUTE_GOES_ON;
}
