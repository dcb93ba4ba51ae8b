#include "front/commands/limit_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/why.h"
#include "front/client/answer.h"
#include "front/client/client.h"
#include "front/client/read_side.h"
#include "front/commands/decisions.h"
#include "front/commands/limit_people.h"
#include "front/commands/limit_words.h"
#include "front/commands/admin_commands.h"
#include "front/client/meter.h"
#include "front/client/session.h"
#include "front/client/unbound.h"
#include "front/route/reads.h"
#include "front/route/request.h"
#include "limit/command/keys.h"
#include "limit/policy/named_subject.h"
#include "limit/command/own.h"
#include "quota/quota.h"
#include "quota/report.h"
#include "resp/build.h"
#include "resp/emit.h"

#define ROWS_MAX 128 /* most rows of LIMIT TOP (chosen) */
#define OUT_OF_MEMORY SLICE("ERR out of memory")

/* ---- permissions ---- */

static bool limit_command_is_operator(const struct client *client)
{
    if (client_listen_address(client)->is_admin)
        return true;
    return client->bound != NULL && client->bound->is_admin;
}

bool limit_command_needs_proof(const struct client *client, const struct request *request)
{
    return own_row(request->command->own - 1U)->is_operators &&
           !client_listen_address(client)->is_admin && session_login(client) != NULL;
}

static bool fits_arity(int arity, uint32_t argc)
{
    return arity >= 0 ? argc == (uint32_t)arity : argc >= (uint32_t)-arity;
}

static struct slice subcommand_at(const void *arg, size_t i)
{
    const char *bar = strchr(own_row(i)->name, '|');
    (void)arg;
    return bar != NULL ? slice_str(bar + 1) : SLICE("");
}

static int print_unknown(struct slice word, char *out)
{
    struct slice near = near_name(word, own_count(), subcommand_at, NULL);
    if (near.len == 0)
        return snprintf(out, OWN_ERROR_ROOM, "-ERR unknown subcommand '%.*s'. Try LIMIT HELP.",
                        (int)(word.len < 128 ? word.len : 128), word.at);
    int len = snprintf(out, OWN_ERROR_ROOM, "-ERR unknown subcommand '%.*s' (did you mean ",
                       (int)word.len, word.at);
    for (size_t i = 0; i < near.len; i++)
        out[len++] = ascii_upper(near.at[i]);
    return len + snprintf(out + len, OWN_ERROR_ROOM - (size_t)len, "?). Try LIMIT HELP.");
}

size_t limit_command_check(const struct client *client, const struct request *request, char *out)
{
    const struct own *own = own_row(request->command->own - 1U);
    int len = 0;
    if (!client_is_operator(client) && session_must_log_in(client))
        len = snprintf(out, OWN_ERROR_ROOM, "-NOAUTH Authentication required.");
    else if (request->command->has_subcommands && request->argc > 1)
        len = print_unknown(request->args[0], out);
    else if (!fits_arity(own->arity, request->argc))
        len = snprintf(out, OWN_ERROR_ROOM, "-ERR wrong number of arguments for '%s' command%s",
                       own->name, request->command->has_subcommands ? ". Try LIMIT HELP." : "");
    else if (session_may_only_subscribe(client))
        len = snprintf(
            out, OWN_ERROR_ROOM,
            "-ERR Can't execute '%s': only (%s)SUBSCRIBE / (%s)UNSUBSCRIBE / PING / QUIT / RESET are "
            "allowed in this context",
            own->name, answer_subscriber_kinds(client), answer_subscriber_kinds(client));
    else if (own->is_operators && !limit_command_is_operator(client))
        len = snprintf(
            out, OWN_ERROR_ROOM,
            "-NOPERM this command is for operators: a policy with admin = yes, or the admin socket");
    else if (request->is_large)
        len = snprintf(out, OWN_ERROR_ROOM, "-ERR the arguments are too long");
    else if (request->argc > LIMIT_WORDS_MAX && !quota_decides(request->command))
        len = snprintf(out, OWN_ERROR_ROOM, "-ERR too many arguments");
    else if (transaction_is_open(&client->transaction))
        len = snprintf(out, OWN_ERROR_ROOM, "-ERR LIMIT is not allowed in transactions");
    for (int i = 0; i < len; i++)
        if ((unsigned char)out[i] < ' ')
            out[i] = ' ';
    if (len > 0) {
        out[len++] = '\r';
        out[len++] = '\n';
    }
    return (size_t)len;
}

/* ---- LIMIT EXPLAIN: the destination of a request and the reason; nothing is sent ---- */

static int32_t slot_of_request(struct client *client, const struct request *request)
{
    return quota_decides(request->command)
               ? decisions_slot(client, request)
               : keys_slot(request->command, request->bytes, request->argc);
}

static bool limit_command_is_for_many(const struct command *command)
{
    return command->fanout == FANOUT_MASTERS || command->fanout == FANOUT_NODES ||
           command->fanout == FANOUT_SCAN;
}

static void tell_row(struct explained_call *call, const struct nodes_row *row, const char *why)
{
    call->server = slice_str(row != NULL ? lanes_node(&row->lanes)->text : "none");
    call->server_why = slice_str(row != NULL ? why : "no node serves the slot");
}

static void tell_destination_on_cluster(struct client *client, const struct request *request,
                                        struct explained_call *call)
{
    const struct nodes *nodes = &client->front->nodes;
    const struct command *command = request->command;
    bool is_own = command->flow == FLOW_OWN && !quota_decides(command);
    int32_t slot = is_own ? KEYS_NO_SLOT : slot_of_request(client, request);
    call->has_slot = slot >= 0;
    call->slot = slot >= 0 ? (uint16_t)slot : 0;
    if (is_own) {
        call->server = SLICE("none");
        call->server_why = SLICE("weir itself answers");
    } else if (slot == KEYS_CROSSING || limit_command_is_for_many(command)) {
        call->server = SLICE("several");
        call->server_why = slot == KEYS_CROSSING ? SLICE("its keys have different slots")
                                                 : SLICE("the command goes to all masters");
    } else if (slot >= 0) {
        tell_row(call, nodes_slot_row(nodes, (uint16_t)slot), "the node serves the slot");
    } else if ((command->flags & CMD_PUBSUB) != 0) {
        tell_row(call, nodes_pubsub_row(nodes),
                 "the node serves all channels except shard channels");
    } else {
        tell_row(call, nodes_default_row(nodes),
                 "the node is the default node, and the command has no key");
    }
}

/*
 * Sets slot, server and server_why. On a single server these fields stay empty, unless reads may go
 * to replicas.
 */
static void tell_destination(struct client *client, const struct request *request,
                             struct explained_call *call)
{
    const char *why;
    call->is_of_cluster = client->front->nodes.worker_lanes.upstream->is_cluster;
    if (call->is_of_cluster) {
        tell_destination_on_cluster(client, request, call);
        return;
    }
    if (read_side_of(client) == NULL)
        return;
    call->server = slice_str(reads_explain(client, request->command, &why)->text);
    call->server_why = slice_str(why);
}

/* ---- commands answered at once ---- */

/* Calls `tell` for the client's own subject, or for the subject `other` named behind FOR. */
static void about(struct client *client, struct build *out, struct slice other, bool has_other,
                  void (*tell)(struct client *client, struct build *out,
                               const struct report_subject *subject, void *arg),
                  void *arg)
{
    struct report_subject subject = {.target = payer_of(client),
                                     .name = subject_name(client->subject)};
    if (!has_other) {
        subject.block =
            blocks_find(exceptions_blocks(client->front->rules->exceptions), subject.name);
        tell(client, out, &subject, arg);
        return;
    }
    struct found found;
    if (!limit_command_is_operator(client)) {
        build_error(out, SLICE("NOPERM only operators may use FOR with another subject"));
        return;
    }
    if (!limit_people_find(client, other, &found, out))
        return;
    tell(client, out, &found.subject, arg);
    limit_people_forget(&found);
}

static void tell_status(struct client *client, struct build *out,
                        const struct report_subject *subject, void *arg)
{
    (void)arg;
    report_status(out, client->front->rules->policies, subject, client->front->loop->now_ns);
}

static void status(struct client *client, const struct limit_words *words, struct build *out)
{
    if (limit_people_may_name(words, out))
        about(client, out, words->n == 4 ? words->at[3] : SLICE(""), words->n == 4, tell_status,
              NULL);
}

/*
 * Returns why connections of the subject are refused. NULL if no connection is refused, or if the
 * subject's name contains no address.
 */
static const char *refuser_of(struct client *client, const struct report_subject *subject)
{
    char why[256];
    struct named_subject named;
    struct front *front = client->front;
    if (subject->target.holders[PER_SUBJECT] == client->subject)
        return client_is_operator(client) ? NULL : unbound_refuser(front, &client->link.peer.ip);
    if (!named_subject_read(&named, &front->rules->identity, subject->name, why, sizeof why) ||
        !named.is_whole)
        return NULL;
    bool is_unix = slice_eq(subject->name, SLICE("ip:unix"));
    return is_unix || named.facts.ip.family != 0 ? unbound_refuser(front, &named.facts.ip) : NULL;
}

static void tell_explained(struct client *client, struct build *out,
                           const struct report_subject *subject, void *arg)
{
    struct front *front = client->front;
    const struct request *request = arg;
    struct report_subject explained = *subject;
    if (subject->target.holders[PER_SUBJECT] == client->subject)
        explained.target = payer_for(client, request);
    if (explained.target.holders[PER_SUBJECT] != subject->target.holders[PER_SUBJECT] &&
        /* the request's key names another subject */
        explained.target.holders[PER_SUBJECT] != NULL) {
        explained.name = subject_name(explained.target.holders[PER_SUBJECT]);
        explained.block = blocks_find(exceptions_blocks(front->rules->exceptions), explained.name);
    }
    struct explained_call call = {
        .command = request->command,
        .request = request->bytes,
        .argc = request->argc,
        .lane = report_lane(request->command,
                            client_has_own_lane(client) || front->settings->lanes_private),
        .now_ns = front->loop->now_ns,
        .refuser = refuser_of(client, subject),
    };
    if (subject->target.holders[PER_SUBJECT] == client->subject)
        tell_destination(client, request, &call);
    report_explain(out, front->rules->policies, front->commands, &explained, &call);
}

/*
 * Checks that FOR and a subject stand only at the end, behind a command. False if `out` holds an
 * error.
 */
static bool is_explicable(struct client *client, const struct limit_words *words, struct build *out)
{
    char why[256];
    struct named_subject named;
    for (size_t i = 2; limit_command_is_operator(client) && i + 1 < words->n; i++) {
        if (!limit_word_is(words, i, "for") || (i > 2 && i + 2 == words->n) ||
            !named_subject_read(&named, &client->front->rules->identity, words->at[i + 1], why,
                                sizeof why))
            continue;
        if (i == 2)
            build_error(out, SLICE("ERR syntax error, a command is missing before 'FOR'"));
        else
            limit_words_error(words, i + 2, out);
        return false;
    }
    return true;
}

/* LIMIT EXPLAIN command [arg ...] [FOR subject] */
static void limit_command_explain(struct client *client, const struct limit_words *words,
                                  struct build *out)
{
    size_t n = words->n - 2;
    bool has_other =
        n >= 3 && limit_command_is_operator(client) && limit_word_is(words, words->n - 2, "for");
    if (has_other)
        n -= 2;
    if (!is_explicable(client, words, out))
        return;
    size_t room = EMIT_HEADER_MAX * (n + 1);
    for (size_t i = 0; i < n; i++)
        room += words->at[2 + i].len + 2;
    char *bytes = malloc(room);
    if (bytes == NULL) {
        out->is_broken = true;
        return;
    }
    struct request request = {.argc = (uint32_t)n, .name = words->at[2]};
    request.bytes = slice_of(bytes, emit_array(bytes, words->at + 2, n));
    request.command =
        request_as_configured(client->front, command_find(client->front->commands, words->at[2],
                                                          n > 1 ? words->at[3] : SLICE("")));
    about(client, out, words->at[words->n - 1], has_other, tell_explained, &request);
    free(bytes);
}

static bool take_by(struct slice word, enum top_by *by)
{
    *by = TOP_SHARE;
    if (slice_eq_nocase(word, SLICE("turns"))) /* old name of share */
        return true;
    for (unsigned i = 0; i < TOP_BY_COUNT; i++)
        if (slice_eq_nocase(word, slice_str(top_name((enum top_by)i)))) {
            *by = (enum top_by)i;
            return true;
        }
    return false;
}

/* Appends an error for the words from index `i` on. */
static void refuse_top(const struct limit_words *words, size_t i, struct build *out)
{
    const char *known[TOP_BY_COUNT + 1] = {"limited"};
    for (unsigned by = 0; by < TOP_BY_COUNT; by++)
        known[by + 1] = top_name((enum top_by)by);
    if (!limit_word_is(words, i, "by") || words->n > i + 2)
        limit_words_error(words, limit_word_is(words, i, "by") ? i + 2 : i, out);
    else
        limit_words_unknown(words, i + 1, known, TOP_BY_COUNT + 1, out);
}

/* LIMIT TOP [n] [BY what] */
static void top(struct client *client, const struct limit_words *words, struct build *out)
{
    enum top_by by = TOP_COMMANDS;
    size_t n = 10;
    size_t i = 2;
    if (i < words->n && !limit_word_is(words, i, "by") &&
        !limit_words_count(words, i++, n, &n, out))
        return;
    bool has_by = words->n == i + 2 && limit_word_is(words, i, "by");
    bool is_of_keys = has_by && limit_word_is(words, i + 1, "limited");
    n = n < ROWS_MAX ? n : ROWS_MAX;
    if (i < words->n && !is_of_keys && !(has_by && take_by(words->at[i + 1], &by)))
        refuse_top(words, i, out);
    else
        admin_commands_give_report(
            client, ADMIN_TOP,
            &(struct report_wanted){.by = is_of_keys ? TOP_BY_COUNT : by, .n = n}, SLICE(""), out);
}

/* LIMIT LOG [n] */
static void tell_log(struct client *client, const struct limit_words *words, struct build *out)
{
    size_t n;
    if (words->n > 3)
        limit_words_error(words, 3, out);
    else if (limit_words_count(words, 2, 10, &n, out))
        report_log(out, client->front->settings->journal, n < JOURNAL_EVENTS ? n : JOURNAL_EVENTS);
}

/* LIMIT SLOWLOG subcommand [count] */
static void tell_slow(struct client *client, const struct limit_words *words, struct build *out)
{
    _Static_assert(CLIENT_WAITS_ROOM <= SLOW_WAITS_ROOM, "the names of all waits have room");
    report_slowlog(out, client->front->settings->slowlog, words->at + 2, words->n - 2,
                   client_waits_print);
}

/*
 * Rejects a pattern that is a policy's name, or a misspelt REFUSING, because no limit has such a
 * name. False if `out` holds an error, which names the likely intention.
 */
static bool is_name_of_limits(const struct rules *rules, const struct limit_words *words,
                              struct build *out)
{
    char text[160];
    const struct policy *policy = policies_find(rules->policies, words->at[2]);
    if (named_find(rules->named, words->at[2]) != NULL)
        return true;
    if (policy != NULL) {
        int len = snprintf(text, sizeof text, "ERR no limit is called %s (did you mean %s/*?)",
                           policy->name, policy->name);
        build_error(out, slice_of(text, (size_t)len));
        return false;
    }
    if (words->at[2].len < 5 || !slice_eq_nocase(slice_of(words->at[2].at, 5), SLICE("refus")))
        return true;
    limit_words_token_meant(words, 2, "REFUSING", out);
    return false;
}

/* LIMIT LIST [pattern] [REFUSING] */
static void limit_command_list(struct client *client, const struct limit_words *words,
                               struct build *out)
{
    size_t n = words->n;
    bool is_refusing = n > 2 && limit_word_is(words, n - 1, "refusing");
    n -= is_refusing;
    const struct report_filter filter = {.glob = n > 2 ? words->at[2] : SLICE("")};
    if (n > 3)
        limit_words_error(words, 3, out);
    else if (n == 3 && !is_name_of_limits(client->front->rules, words, out))
        return;
    else if (!report_filter_is_good(&filter))
        build_error(out, SLICE("ERR invalid pattern: at most 128 bytes, and each [ needs its ]"));
    else
        admin_commands_give_report(client, ADMIN_LIST,
                                   &(struct report_wanted){.is_refusing = is_refusing}, filter.glob,
                                   out);
}

static void help(struct client *client, const struct limit_words *words, struct build *out)
{
    (void)client;
    (void)words;
    report_help(out);
}

#define SHOWN 100 /* most bytes of an operator's input in a log line */

static void note_forgiven(const struct client *client, struct slice name, size_t n)
{
    char by[ADMIN_BY_ROOM];
    char text[SHOWN + sizeof by + 64];
    session_print_operator(client, by, sizeof by);
    snprintf(text, sizeof text, "forgiven: %.*s (%zu subject%s), by %s",
             (int)(name.len < SHOWN ? name.len : SHOWN), name.at, n, n == 1 ? "" : "s", by);
    log_at(LOG_SITE_OPERATOR, LOG_INFO, "%s", text);
    journal_add(client->front->settings->journal, clock_unix_ms(), "forgive", "%s", text);
}

static void forgive(struct client *client, const struct limit_words *words, struct build *out)
{
    const struct front_settings *settings = client->front->settings;
    size_t n = subjects_forgive(settings->subjects, words->at[2]) +
               subjects_forgive(settings->key_subjects, words->at[2]);
    if (n == 0 && !limit_people_is_name(client, words->at[2], out))
        return;
    note_forgiven(client, words->at[2], n);
    build_int(out, (int64_t)n);
}

/* LIMIT MODE without an argument */
static void mode(struct client *client, const struct limit_words *words, struct build *out)
{
    (void)words;
    build_bulk_str(out, policies_is_shadow(client->front->rules->policies) ? "shadow" : "enforce");
}

/* ---- admin commands, carried out on the main thread ---- */

/* LIMIT UNSET LIMIT name FOR key, LIMIT UNSET policy what FOR subject */
static void unset_for(struct client *client, const struct limit_words *words, struct build *out)
{
    enum admin_kind kind = limit_word_is(words, 2, "limit") ? ADMIN_UNSET_KEY : ADMIN_UNSET;
    if (words->n == 6 && limit_word_is(words, 4, "for"))
        admin_commands_give(client, kind, words, out);
    else
        limit_words_error(words, !limit_word_is(words, 4, "for") ? 4 : words->n < 6 ? 5 : 6, out);
}

/*
 * LIMIT SET policy what expression ..., LIMIT SET LIMIT name line ..., each with [FOR subject] [EX
 * time]
 */
static void limit_command_set(struct client *client, const struct limit_words *words,
                              struct build *out)
{
    struct limit_span span;
    bool is_named = limit_word_is(words, 2, "limit");
    size_t fault = limit_words_span(words, LIMIT_SET_SPAN, &span);
    if (fault == 0 && is_named && span.time > 0 && span.subject == 0)
        build_error(out, SLICE("ERR EX needs FOR key: only rates of one key can expire"));
    else if (fault > 0)
        limit_words_span_error(words, fault, &span, out);
    else if (is_named || span.subject == 0 ||
             limit_people_is_one(client, words->at[span.subject], out))
        admin_commands_give(client, is_named ? ADMIN_SET_LIMIT : ADMIN_SET, words, out);
}

/* Checks PERCENTILE and the names behind EXCEPT. False if `out` holds an error. */
static bool is_suggestible(const struct client *client, const struct limit_words *words,
                           const struct limit_suggest *found, struct build *out)
{
    int64_t percentile;
    char text[160];
    struct slice word = found->percentile > 0 ? words->at[found->percentile] : SLICE("1");
    if (!num_parse(word, &percentile) || percentile < 1 || percentile > 100) {
        int len = snprintf(text, sizeof text,
                           "ERR value is not an integer or out of range: '%.*s' must be 1 to 100",
                           WHY_SLICE(word));
        build_error(out, slice_of(text, (size_t)len));
        return false;
    }
    for (size_t i = found->except; i > 0 && i < words->n; i++)
        if (!limit_people_is_name(client, words->at[i], out))
            return false;
    return true;
}

/* LIMIT SUGGEST [policy] [CLASS class] [PERCENTILE n] [EXCEPT subject ...] */
static void limit_command_suggest(struct client *client, const struct limit_words *words,
                                  struct build *out)
{
    struct limit_suggest found;
    bool is_policy =
        words->n > 2 && policies_find(client->front->rules->policies, words->at[2]) != NULL;
    size_t fault = limit_words_suggest(words, is_policy, &found);
    if (fault == 3 && words->n == 4 && found.policy > 0)
        limit_words_token_missing(words, fault, "CLASS", out);
    else if (fault > 0)
        limit_words_error(words, fault, out);
    else if (is_suggestible(client, words, &found, out))
        admin_commands_give_suggest(client, words, &found, out);
}

/* ---- the table ---- */

static const struct {
    const char *name;
    /* answers; NULL: weir sends an admin command of kind `admin_command` */
    void (*tell)(struct client *client, const struct limit_words *words, struct build *out);
    enum admin_kind admin_command;
} subcommands[] = {
    {"help", help, 0},
    {"status", status, 0},
    {"explain", limit_command_explain, 0},
    {"list", limit_command_list, 0},
    {"top", top, 0},
    {"log", tell_log, 0},
    {"slowlog", tell_slow, 0},
    {"forgive", forgive, 0},
    {"block", limit_people_block, 0},
    {"unblock", limit_people_unblock, 0},
    {"blocks", limit_people_blocks, 0},
    {"clients", limit_people_clients, 0},
    {"kick", limit_people_kick, 0},
    {"suggest", limit_command_suggest, 0},
    {"upstream", NULL, ADMIN_UPSTREAM},
    {"mode", NULL, ADMIN_MODE},
    {"set", limit_command_set, 0},
    {"unset", NULL, ADMIN_UNSET},
    {"diff", NULL, ADMIN_DIFF},
    {"reload", NULL, ADMIN_RELOAD},
};

static void run(struct client *client, const struct limit_words *words, struct build *out)
{
    for (size_t i = 0; i < sizeof subcommands / sizeof subcommands[0]; i++) {
        if (!limit_word_is(words, 1, subcommands[i].name))
            continue;
        bool is_admin_command = subcommands[i].tell == NULL;
        if (is_admin_command && subcommands[i].admin_command == ADMIN_MODE && words->n == 2)
            mode(client, words, out);
        else if (is_admin_command && subcommands[i].admin_command == ADMIN_UNSET && words->n > 4)
            unset_for(client, words, out);
        else if (is_admin_command)
            admin_commands_give(client, subcommands[i].admin_command, words, out);
        else
            subcommands[i].tell(client, words, out);
        return;
    }
}

bool limit_command_is_info(const struct client *client, const struct request *request)
{
    static const char *const sections[] = {"limits", "clients", "upstream"};
    bool is_info = !request->is_large && !pin_has(client, PIN_PASSTHROUGH) &&
                   transaction_is_none(&client->transaction) &&
                   !session_may_only_subscribe(client) &&
                   strcmp(request->command->name, "info") == 0;
    for (size_t i = 0; is_info && request->argc == 2 && i < sizeof sections / sizeof sections[0];
         i++)
        if (slice_eq_nocase(request->args[0], slice_str(sections[i])))
            return true;
    return is_info && request->argc == 1;
}

void limit_command_info(struct client *client, const struct request *request)
{
    struct build out;
    struct limit_words words;
    limit_words_read(&words, request->bytes);
    build_init(&out, session_protocol(client) == 3);
    admin_commands_give(client, ADMIN_INFO, &words, &out);
    if (client_extra(client)->admin_command == NULL)
        answer_built(client, &out);
    else
        build_fini(&out);
}

void limit_command_run(struct client *client, const struct request *request)
{
    struct build out;
    struct limit_words words;
    limit_words_read(&words, request->bytes);
    build_init(&out, session_protocol(client) == 3);
    run(client, &words, &out);
    if (client_extra(client)->admin_command == NULL)
        answer_built(client, &out);
    else
        build_fini(&out);
}
