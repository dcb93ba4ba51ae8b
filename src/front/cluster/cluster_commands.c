#include "front/cluster/cluster_commands.h"

#include <stdio.h>

#include "base/num.h"
#include "front/client/charge.h"
#include "front/client/answer.h"
#include "front/cluster/emulated.h"
#include "front/client/session.h"
#include "limit/command/slot.h"

#define NO_CLUSTER "-ERR This instance has cluster support disabled\r\n"
#define NOT_SERVED(what)                                                                           \
    "-ERR " what " is not supported in front of a Redis Cluster: ask its nodes directly\r\n"

enum kind { EMULATE, KEYSLOT, ACCEPT, SELECT, REFUSE, PASS };

struct row {
    struct slice name, sub; /* an empty `sub` matches any arguments */
    /* required number of arguments, 0: any; Redis answers a request with another number */
    uint32_t argc;
    uint8_t kind;       /* enum kind */
    uint8_t word;       /* enum emulated_word; for EMULATE */
    struct slice reply; /* for REFUSE */
};

#define WORD(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
#define ANY                                                                                        \
    {                                                                                              \
        "", 0                                                                                      \
    }

/* The first row that matches a request counts. */
static const struct row rows[] = {
    {WORD("cluster"), WORD("slots"), 2, EMULATE, EMULATED_SLOTS, ANY},
    {WORD("cluster"), WORD("shards"), 2, EMULATE, EMULATED_SHARDS, ANY},
    {WORD("cluster"), WORD("nodes"), 2, EMULATE, EMULATED_NODES, ANY},
    {WORD("cluster"), WORD("info"), 2, EMULATE, EMULATED_INFO, ANY},
    {WORD("cluster"), WORD("myid"), 2, EMULATE, EMULATED_MYID, ANY},
    {WORD("cluster"), WORD("keyslot"), 3, KEYSLOT, 0, ANY},
    {WORD("cluster"), WORD("countkeysinslot"), 0, PASS, 0, ANY},
    {WORD("cluster"), WORD("help"), 0, PASS, 0, ANY},
    {WORD("cluster"), ANY, 0, REFUSE, 0, WORD(NOT_SERVED("this subcommand of CLUSTER"))},
    {WORD("readonly"), ANY, 1, ACCEPT, 0, ANY},
    {WORD("readwrite"), ANY, 1, ACCEPT, 0, ANY},
    {WORD("asking"), ANY, 1, ACCEPT, 0, ANY},
    {WORD("select"), ANY, 2, SELECT, 0, ANY},
    {WORD("monitor"), ANY, 0, REFUSE, 0, WORD(NOT_SERVED("MONITOR"))},
    {WORD("sync"), ANY, 0, REFUSE, 0, WORD(NOT_SERVED("SYNC"))},
    {WORD("psync"), ANY, 0, REFUSE, 0, WORD(NOT_SERVED("PSYNC"))},
    {WORD("replconf"), ANY, 0, REFUSE, 0, WORD(NOT_SERVED("REPLCONF"))},
    {WORD("client"), WORD("tracking"), 0, REFUSE, 0, WORD(NOT_SERVED("CLIENT TRACKING"))},
    {WORD("debug"), ANY, 0, REFUSE, 0, WORD(NOT_SERVED("DEBUG"))},
    {WORD("swapdb"), ANY, 3, REFUSE, 0, WORD("-ERR SWAPDB is not allowed in cluster mode\r\n")},
    {WORD("move"), ANY, 3, REFUSE, 0, WORD("-ERR MOVE is not allowed in cluster mode\r\n")},
};

static const struct row *cluster_commands_find(const struct request *request)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (slice_is_word(request->name, rows[i].name) &&
            (rows[i].sub.len > 0 ? request->argc > 1 && slice_is_word(request->args[0], rows[i].sub)
                                 : !slice_eq(rows[i].name, SLICE("cluster")) || request->argc > 1))
            return rows[i].argc == 0 || rows[i].argc == request->argc ? &rows[i] : NULL;
    return NULL;
}

static bool is_cluster_word(const struct request *request)
{
    return slice_is_word(request->name, SLICE("cluster"));
}

/* ---- answers ---- */

/*
 * Finds the address at which the client reaches weir. False if the client came over a unix socket
 * and cluster-announce is not set.
 */
static bool cluster_commands_find_address(const struct client *client, char host[IP_TEXT_MAX],
                                          struct emulated *emulated)
{
    const struct upstream *upstream = client->front->nodes.worker_lanes.upstream;
    struct link_peer local = client_extra(client)->reached;
    if (upstream->cluster_announce_host != NULL) {
        emulated->host = slice_str(upstream->cluster_announce_host);
        emulated->port = upstream->cluster_announce_port;
        return true;
    }
    if (local.ip.family == 0)
        local = link_local(&client->link);
    if (local.ip.family == 0)
        return false;
    emulated->host = slice_of(host, ip_print(&local.ip, host));
    emulated->port = local.port;
    return true;
}

static enum route emulate(struct client *client, struct request *request, enum emulated_word word)
{
    char host[IP_TEXT_MAX];
    struct emulated emulated = {.is_tls = link_tls(&client->link) != NULL,
                                .is_before_7 = front_is_before_7(client->front)};
    struct build out;
    if (!cluster_commands_find_address(client, host, &emulated))
        return answer_text(client, request,
                           "ERR weir has no address to announce: set cluster-announce = HOST:PORT");
    build_init(&out, session_protocol(client) == 3);
    emulated_reply(word, &emulated, &out);
    answer_built(client, &out);
    return client_is_closed(client) ? ROUTE_STOP : ROUTE_TAKEN;
}

static enum route cluster_commands_tell_slot(struct client *client, const struct request *request)
{
    char text[32];
    int n = snprintf(text, sizeof text, ":%u\r\n", slot_of(request->args[1]));
    return answer_with(client, slice_of(text, (size_t)n));
}

/* A cluster has only database 0. */
static enum route select_database(struct client *client, struct lane *lane, struct request *request)
{
    int64_t number;
    bool is_zero = num_parse(request->args[0], &number) && number == 0;
    return is_zero ? answer_with(client, SLICE("+OK\r\n"))
                   : answer_error(client, lane, request,
                                  SLICE("-ERR SELECT is not allowed in cluster mode\r\n"));
}

static enum route answer(struct client *client, struct request *request, const struct row *row)
{
    switch ((enum kind)row->kind) {
    case EMULATE:
        return emulate(client, request, (enum emulated_word)row->word);
    case KEYSLOT:
        return cluster_commands_tell_slot(client, request);
    case SELECT:
        return select_database(client, NULL, request);
    case REFUSE:
        return answer_error(client, NULL, request, row->reply);
    case ACCEPT:
    case PASS:
        break;
    }
    return answer_with(client, SLICE("+OK\r\n"));
}

/* ---- routing ---- */

/*
 * True if Redis answers the request: weir does not emulate the command, or the request is an error
 * in any mode.
 */
static bool is_passed_on(const struct row *row, const struct request *request)
{
    int64_t number;
    return row->kind == PASS || (row->kind == SELECT && !num_parse(request->args[0], &number));
}

/*
 * Inside MULTI the lane must learn of a refused command: Redis then discards the transaction at
 * EXEC.
 */
static enum route answer_in_multi(struct client *client, struct lane *lane, struct request *request,
                                  const struct row *row)
{
    if (row->kind == ACCEPT)
        return ROUTE_GOES_ON;
    if (row->kind == SELECT)
        return slice_eq(request->args[0], SLICE("0")) ? ROUTE_GOES_ON
                                                      : select_database(client, lane, request);
    return answer_error(client, lane, request,
                        row->kind == REFUSE ? row->reply
                                            : SLICE(NOT_SERVED("CLUSTER inside MULTI")));
}

/* Charges the request like any command. */
static enum route cluster_commands_pay(struct client *client, struct request *request)
{
    struct verdict verdict;
    enum route result = answer_unless_passed(client, NULL, request, &verdict);
    if (result != ROUTE_GOES_ON)
        return result;
    charge_answered(client, verdict.counted);
    answer_count(client, request, RESULT_LOCAL);
    return ROUTE_GOES_ON;
}

enum route cluster_commands_answer(struct client *client, struct lane *lane,
                                   struct request *request)
{
    static const struct row disabled = {WORD("cluster"), ANY, 0, REFUSE, 0, WORD(NO_CLUSTER)};
    const struct row *row = client_is_on_cluster(client) ? cluster_commands_find(request) : NULL;
    if (row == NULL)
        return ROUTE_GOES_ON;
    if (is_cluster_word(request) && !client->front->nodes.worker_lanes.upstream->emulates_cluster)
        row = &disabled;
    if (is_passed_on(row, request))
        return ROUTE_GOES_ON;
    if (transaction_is_open(&client->transaction))
        return answer_in_multi(client, lane, request, row);
    if (client_has_own_lane(client) && client->lane_user.in_flight > 0) {
        /* a reply in flight may start or end the client's subscriptions */
        client_wait_for_replies(client);
        return ROUTE_WAIT;
    }
    if (session_may_only_subscribe(client))
        return answer_subscribed(client, request);
    if (session_must_log_in(client))
        return answer_error(client, NULL, request, SLICE("-NOAUTH Authentication required.\r\n"));
    enum route result = cluster_commands_pay(client, request);
    return result == ROUTE_GOES_ON ? answer(client, request, row) : result;
}
