#include "front/commands/admin_commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/slice.h"
#include "base/why.h"
#include "front/client/answer.h"
#include "front/client/client.h"
#include "front/client/session.h"
#include "front/client/timeouts.h"
#include "limit/policy/identity.h"
#include "quota/report.h"
#include "resp/build.h"

#define OUT_OF_MEMORY SLICE("ERR out of memory")

/* ---- making admin commands ---- */

/*
 * Joins the words from `first` to `end` with blanks, like the value of a line. NULL if out of
 * memory.
 */
static char *joined(const struct limit_words *words, size_t first, size_t end)
{
    size_t len = 0;
    for (size_t i = first; i < end; i++)
        len += words->at[i].len + 1;
    char *text = malloc(len + 1);
    char *at = text;
    if (text == NULL)
        return NULL;
    for (size_t i = first; i < end; i++) {
        memcpy(at, words->at[i].at, words->at[i].len);
        at += words->at[i].len;
        *at++ = ' ';
    }
    at[at > text ? -1 : 0] = '\0';
    return text;
}

/* Copies one word, any bytes. */
static void admin_commands_take_word(struct admin_command *admin_command, char **to,
                                     struct slice word)
{
    char *text = malloc(word.len + 1);
    admin_command->is_starved |= text == NULL;
    *to = text;
    if (text == NULL)
        return;
    memcpy(text, word.at, word.len);
    text[word.len] = '\0';
}

static void admin_commands_take_key(struct admin_command *admin_command, struct slice word)
{
    admin_commands_take_word(admin_command, &admin_command->key, word);
    admin_command->key_len = word.len;
}

/*
 * Takes FOR and EX of LIMIT SET policy what expression ... or LIMIT SET LIMIT name line ....
 * Returns the number of words before FOR and EX.
 */
static size_t take_span(struct admin_command *admin_command, const struct limit_words *words)
{
    struct limit_span span;
    if (limit_words_span(words, LIMIT_SET_SPAN, &span) > 0)
        return words->n;
    if (span.time > 0)
        admin_commands_take_word(admin_command, &admin_command->lives, words->at[span.time]);
    if (span.subject > 0)
        admin_commands_take_key(admin_command, words->at[span.subject]);
    return span.end;
}

static void admin_commands_take_rest(struct admin_command *admin_command,
                                     const struct limit_words *words, size_t first, size_t end)
{
    admin_command->expression = joined(words, first, end);
    admin_command->is_starved |= admin_command->expression == NULL;
}

/* Takes "10/s", or "= 10/s" as in the configuration file. */
static void take_value(struct admin_command *admin_command, const struct limit_words *words,
                       size_t end)
{
    struct limit_words rest = *words;
    bool has_sign = words->at[4].len > 0 && words->at[4].at[0] == '=';
    if (has_sign)
        rest.at[4] = slice_of(words->at[4].at + 1, words->at[4].len - 1);
    admin_commands_take_rest(admin_command, &rest, has_sign && rest.at[4].len == 0 ? 5 : 4, end);
}

/* LIMIT BLOCK subject [EX time] [REASON text ...] [EX time] */
static void admin_commands_take_block(struct admin_command *admin_command,
                                      const struct limit_words *words)
{
    size_t first = 3, end = words->n;
    admin_commands_take_key(admin_command, words->at[2]);
    size_t time = limit_word_is(words, first, "ex")     ? first + 1
                  : limit_word_is(words, end - 2, "ex") ? end - 1
                                                        : 0;
    if (time > 0)
        admin_commands_take_word(admin_command, &admin_command->lives, words->at[time]);
    if (time == first + 1)
        first += 2;
    else if (time > 0)
        end -= 2;
    if (first < end)
        admin_commands_take_rest(admin_command, words, first + 1, end);
}

/*
 * Sets the fields of `admin_command` from the words. Out of memory, admin_command->is_starved is
 * set.
 */
static void admin_commands_fill(struct admin_command *admin_command,
                                const struct limit_words *words)
{
    enum admin_kind kind = admin_command->kind;
    if (kind == ADMIN_SET || kind == ADMIN_UNSET) {
        admin_commands_take_word(admin_command, &admin_command->policy, words->at[2]);
        admin_commands_take_word(admin_command, &admin_command->what, words->at[3]);
    }
    if (kind == ADMIN_UNSET && words->n > 4)
        admin_commands_take_key(admin_command, words->at[5]);
    if (kind == ADMIN_INFO && words->n > 1)
        admin_commands_take_word(admin_command, &admin_command->what, words->at[1]);
    if (kind == ADMIN_SET)
        take_value(admin_command, words, take_span(admin_command, words));
    if (kind == ADMIN_SET_LIMIT) {
        admin_commands_take_word(admin_command, &admin_command->policy, words->at[3]);
        admin_commands_take_rest(admin_command, words, 4, take_span(admin_command, words));
        admin_command->kind = admin_command->key != NULL ? ADMIN_SET_KEY : ADMIN_SET_LIMIT;
    }
    if (kind == ADMIN_UNSET_KEY) {
        admin_commands_take_word(admin_command, &admin_command->policy, words->at[3]);
        admin_commands_take_key(admin_command, words->at[5]);
    }
    if (kind == ADMIN_CLIENTS && words->n > 3)
        admin_commands_take_key(admin_command, words->at[3]);
    if (kind == ADMIN_BLOCK)
        admin_commands_take_block(admin_command, words);
    if (kind == ADMIN_UNBLOCK || kind == ADMIN_KICK)
        admin_commands_take_key(admin_command, words->at[2]);
    if (kind == ADMIN_MODE)
        admin_commands_take_word(admin_command, &admin_command->expression, words->at[2]);
}

/* Sends the command to the main thread. Out of memory, appends an error. */
static void give(struct client *client, struct admin_command *admin_command, struct build *out)
{
    struct extra *extra = client_need_extra(client);
    if (extra == NULL || admin_command == NULL || admin_command->is_starved) {
        build_error(out, OUT_OF_MEMORY);
        admin_command_free(admin_command);
        return;
    }
    admin_command->client = client;
    build_init(&admin_command->rows, session_protocol(client) == 3);
    session_print_operator(client, admin_command->by, sizeof admin_command->by);
    extra->admin_command = admin_command;
    client_wait(client, WAIT_ADMIN);
    client->front->settings->give(client->front->worker, admin_command);
}

void admin_commands_give(struct client *client, enum admin_kind kind,
                         const struct limit_words *words, struct build *out)
{
    struct admin_command *admin_command = admin_command_new(kind);
    if (admin_command != NULL)
        admin_commands_fill(admin_command, words);
    give(client, admin_command, out);
}

void admin_commands_give_report(struct client *client, enum admin_kind kind,
                                const struct report_wanted *wanted, struct slice pattern,
                                struct build *out)
{
    struct admin_command *admin_command = admin_command_new(kind);
    if (admin_command != NULL) {
        admin_command->wanted = *wanted;
        admin_commands_take_key(admin_command, pattern);
    }
    give(client, admin_command, out);
}

void admin_commands_give_suggest(struct client *client, const struct limit_words *words,
                                 const struct limit_suggest *found, struct build *out)
{
    int64_t percentile = 0;
    struct admin_command *admin_command = admin_command_new(ADMIN_SUGGEST);
    if (admin_command != NULL && found->policy > 0)
        admin_commands_take_word(admin_command, &admin_command->policy, words->at[found->policy]);
    if (admin_command != NULL && found->class > 0)
        admin_commands_take_word(admin_command, &admin_command->what, words->at[found->class]);
    if (admin_command != NULL && found->except > 0)
        admin_commands_take_rest(admin_command, words, found->except, words->n);
    if (admin_command != NULL && found->percentile > 0 &&
        num_parse(words->at[found->percentile], &percentile))
        admin_command->wanted.percentile = (unsigned)percentile;
    give(client, admin_command, out);
}

/* ---- answering ---- */

/* Builds the reply of LIMIT CLIENTS: the workers' rows, and the number of omitted clients. */
static void tell_clients(struct build *out, const struct admin_command *admin_command)
{
    build_array(out, admin_command->n_rows + (admin_command->n_more > 0));
    build_raw(out, slice_of(admin_command->rows.at, admin_command->rows.len));
    out->is_broken |= admin_command->rows.is_broken;
    if (admin_command->n_more == 0)
        return;
    build_map(out, 1);
    build_bulk_str(out, "more");
    build_int(out, (int64_t)admin_command->n_more);
}

static void tell_lines(struct build *out, const struct admin_command *admin_command)
{
    struct slice rest = slice_of(admin_command->lines, admin_command->lines_len);
    struct slice line;
    size_t n = 0;
    for (size_t i = 0; i < rest.len; i++)
        n += rest.at[i] == '\n';
    build_array(out, n);
    for (; n > 0 && split_next(&rest, '\n', &line); n--)
        build_bulk(out, line);
}

/*
 * Builds a verbatim string, as Redis does for INFO: client programs print such a string unchanged.
 */
static void tell_text(struct build *out, const struct admin_command *admin_command)
{
    struct slice text = slice_of(admin_command->text, admin_command->text_len);
    char head[48];
    if (!out->is_resp3) {
        build_bulk(out, text);
        return;
    }
    snprintf(head, sizeof head, "=%zu\r\ntxt:", text.len + 4);
    build_raw(out, slice_str(head));
    build_raw(out, text);
    build_raw(out, SLICE("\r\n"));
}

static void tell_restart(struct build *out, const struct admin_command *admin_command)
{
    char text[512];
    int len = snprintf(text, sizeof text, "OK, but needs a restart: %.400s", admin_command->text);
    build_status(out, slice_of(text, (size_t)len));
}

/*
 * Builds the reply of LIMIT BLOCK. The reply says if no subject has the name yet, because the
 * operator may have misspelt the name.
 */
static void tell_block(struct build *out, const struct front *front,
                       const struct admin_command *admin_command)
{
    char text[512];
    struct slice subject = slice_of(admin_command->key, admin_command->key_len);
    if (subjects_have(front->settings->subjects, subject) ||
        subjects_have(front->settings->key_subjects, subject)) {
        build_status(out, SLICE("OK"));
        return;
    }
    int len = snprintf(text, sizeof text,
                       "OK, but weir has not seen %.*s yet: the block applies when it appears",
                       WHY_SLICE(subject));
    build_status(out, slice_of(text, (size_t)len));
}

/* True if `rows` holds the complete reply. */
static bool is_report(const struct admin_command *admin_command)
{
    return admin_command->kind == ADMIN_LIST || admin_command->kind == ADMIN_TOP ||
           admin_command->kind == ADMIN_BLOCKS || admin_command->kind == ADMIN_DIFF ||
           admin_command->kind == ADMIN_UPSTREAM;
}

void front_admin_command_done(struct front *front, struct admin_command *admin_command)
{
    struct client *client = admin_command->client;
    if (client != NULL && is_report(admin_command) && !admin_command->is_starved &&
        admin_command->error == NULL) {
        client->extra->admin_command = NULL;
        answer_built(client, &admin_command->rows);
        client_resume(client, WAIT_ADMIN);
    } else if (client != NULL) {
        struct build out;
        build_init(&out, session_protocol(client) == 3);
        client->extra->admin_command = NULL;
        if (admin_command->is_starved)
            build_error(&out, OUT_OF_MEMORY);
        else if (admin_command->error != NULL)
            build_error(&out, slice_str(admin_command->error));
        else if (admin_command->kind == ADMIN_INFO)
            tell_text(&out, admin_command);
        else if (admin_command->kind == ADMIN_RELOAD && admin_command->text != NULL)
            tell_restart(&out, admin_command);
        else if (admin_command->kind == ADMIN_BLOCK)
            tell_block(&out, front, admin_command);
        else if (admin_command->kind == ADMIN_CLIENTS)
            tell_clients(&out, admin_command);
        else if (admin_command->kind == ADMIN_KICK)
            build_int(&out, (int64_t)admin_command->n_rows);
        else if (admin_command->kind == ADMIN_SUGGEST)
            tell_lines(&out, admin_command);
        else
            build_status(&out, SLICE("OK"));
        answer_built(client, &out);
        client_resume(client, WAIT_ADMIN);
    }
    admin_command_free(admin_command);
}

/* ---- each worker's part of LIMIT CLIENTS and LIMIT KICK ---- */

#define FIELDS 13

/* Returns the client's own subject name, even if the client shares the overflow subject. */
static struct slice admin_commands_name_of(const struct client *client, char *text)
{
    if (!subject_is_overflow(client->subject))
        return subject_name(client->subject);
    const struct facts facts = facts_of(client);
    return slice_of(text, identity_subject(&client->front->rules->identity, &facts, text));
}

static bool admin_commands_is_meant(const struct client *client,
                                    const struct admin_command *admin_command)
{
    char text[SUBJECT_NAME_MAX];
    if (client->subject == NULL)
        return false; /* the client has no subject yet, or is being closed */
    return admin_command->key == NULL ||
           slice_eq(admin_commands_name_of(client, text),
                    slice_of(admin_command->key, admin_command->key_len));
}

/* ---- LIMIT CLIENTS ---- */

static void field_library(struct build *out, const struct client *client)
{
    char text[2 * LIBRARY_TEXT_MAX + 2];
    const struct library *library = session_library(client);
    struct slice name = library_name(library), version = library_version(library);
    int len = snprintf(text, sizeof text, "%.*s%s%.*s", (int)name.len, name.at,
                       version.len > 0 ? " " : "", (int)version.len, version.at);
    report_field(out, "library",
                 slice_of(text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1));
}

static struct slice admin_commands_lane_of(const struct client *client)
{
    if (client_has_own_lane(client))
        return SLICE("private");
    return client_has_calls(client) ? SLICE("shared") : SLICE("none");
}

static void tell_client(struct build *out, const struct client *client)
{
    char address[SESSION_TEXT], name[SUBJECT_NAME_MAX], waits[CLIENT_WAITS_ROOM];
    session_print_address(client, address);
    build_map(out, FIELDS);
    report_field(out, "address", slice_str(address));
    report_field(out, "name", session_name(client));
    report_field(out, "user", session_user(client));
    field_library(out, client);
    report_number(out, "age_s", timeouts_age_s(client));
    report_number(out, "idle_s", timeouts_idle_s(client));
    build_bulk_str(out, "policy");
    if (client->bound != NULL && client->bound->name[0] != '\0')
        build_bulk_str(out, client->bound->name);
    else
        build_nil(out);
    report_field(out, "subject", admin_commands_name_of(client, name));
    report_field(out, "lane", admin_commands_lane_of(client));
    report_number(out, "in_flight",
                  client->lane_user.in_flight + spread_in_flight(client_extra(client)->spread));
    report_number(out, "bytes_in", client->link.n_read);
    report_number(out, "bytes_out", client->link.n_written);
    report_field(out, "waits", slice_of(waits, client_waits_print(client->waits, waits)));
}

static void list_client(struct client *client, struct admin_command *admin_command)
{
    if (admin_command->n_rows < ROUND_ROWS_MAX) {
        admin_command->n_rows++;
        tell_client(&admin_command->rows, client);
    } else {
        admin_command->n_more++;
    }
}

/* ---- LIMIT KICK ---- */

/*
 * Closes the client, unless the client gave the command and must receive the reply. Only the worker
 * of admin_command->client may compare the pointer.
 */
static void admin_commands_kick(struct client *client, struct admin_command *admin_command)
{
    const void *giver =
        admin_command->worker == client->front->worker ? admin_command->client : NULL;
    if (client == giver || client_is_closed(client))
        return;
    admin_command->n_rows++;
    client_close_for(client, CLOSED_KICKED);
}

static void admin_commands_look_at(struct list *item, void *arg)
{
    struct client *client = container_of(item, struct client, in_front);
    struct admin_command *admin_command = arg;
    if (!admin_commands_is_meant(client, admin_command))
        return;
    if (admin_command->kind == ADMIN_KICK)
        admin_commands_kick(client, admin_command);
    else
        list_client(client, admin_command);
}

bool front_round_some(struct front *front, struct admin_command *admin_command)
{
    front->loop->now_ns = clock_ns();
    if (!walk_is_on(&front->round_walk))
        walk_begin(&front->round_walk, &front->clients);
    if (!walk_step(&front->round_walk, &front->clients, admin_commands_look_at, admin_command))
        return false;
    timeouts_go_on(front);
    return true;
}
