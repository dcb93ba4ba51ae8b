#include "front/cluster/compound.h"

#include <stdlib.h>

#include "front/client/charge.h"
#include "front/client/answer.h"
#include "front/cluster/compound_parts.h"
#include "front/route/request.h"
#include "front/route/lane_choice.h"
#include "front/client/meter.h"
#include "front/route/places.h"
#include "front/client/read_side.h"
#include "front/client/session.h"
#include "front/cluster/shard_reads.h"
#include "front/client/timing.h"
#include "front/session/wait_coverage.h"
#include "limit/command/keys.h"

#define CROSSING SLICE("-CROSSSLOT Keys in request don't hash to the same slot\r\n")
#define NO_CURSOR SLICE("-ERR invalid cursor\r\n")

/*
 * most compounds of one client at a time (chosen): as many as a client library sends in a few
 * writes
 */
#define COMPOUNDS_MAX 64

static enum fanout fanout_for(const struct request *request)
{
    return (enum fanout)request->command->fanout;
}

/* True if the keys of the request lie in several slots. */
static bool is_crossing(const struct request *request)
{
    return keys_slot(request->command, request->bytes, request->argc) == KEYS_CROSSING;
}

static bool compound_is_for_many(enum fanout fanout)
{
    return fanout == FANOUT_MASTERS || fanout == FANOUT_NODES || fanout == FANOUT_SCAN ||
           fanout == FANOUT_WAIT;
}

/*
 * True if the request is for more than one node, judging by the arguments received so far. SCAN
 * without a cursor goes to Redis, which refuses the command.
 */
static bool is_fanned_out(const struct client *client, const struct request *request)
{
    enum fanout fanout = fanout_for(request);
    return compound_is_for_many(fanout) && !request->is_large &&
           (fanout != FANOUT_SCAN || request->argc > 1) &&
           (fanout != FANOUT_WAIT || parts_has_written(client));
}

bool compound_takes(const struct client *client, const struct request *request)
{
    if (transaction_is_open(&client->transaction) || pin_has(client, PIN_PASSTHROUGH) ||
        request->command->flow != FLOW_ONE || session_may_only_subscribe(client))
        return false;
    return is_fanned_out(client, request) || is_crossing(request);
}

/* ---- compounds of a client ---- */

/* Returns NULL if out of memory; the client is then closed. */
static struct compounds *need_compounds(struct client *client)
{
    struct extra *extra = client_need_extra(client);
    if (extra == NULL || extra->compounds != NULL)
        return extra != NULL ? extra->compounds : NULL;
    extra->compounds = calloc(1, sizeof *extra->compounds);
    if (extra->compounds == NULL)
        client_close_starved(client);
    else
        list_init(&extra->compounds->all);
    return extra->compounds;
}

static struct compound_source *take_source(struct compounds *compounds)
{
    struct compound_source *source = compounds->sources;
    if (source == NULL)
        return calloc(1, sizeof *source);
    compounds->sources = source->next;
    return source;
}

/*
 * True if the reply still has a position among the client's replies: replies_clear may have removed
 * all positions.
 */
static bool has_position(const struct compound *compound)
{
    return compound->source != NULL && compound->source->source.n_runs > 0;
}

/* Gives up the position of the reply. */
static void leave_source(struct compound *compound)
{
    struct compounds *compounds = compound->client->extra->compounds;
    if (compound->source == NULL)
        return;
    compound->source->next = compounds->sources;
    compounds->sources = compound->source;
    compound->source = NULL;
}

static void compound_free(struct compound *compound)
{
    list_take(&compound->in_client);
    leave_source(compound);
    compound->client->extra->n_compounds--;
    client_note_kept_less(compound->client, compound->bytes);
    parts_free(compound);
    slot_split_fini(&compound->split);
    scan_order_fini(&compound->order);
    bytes_fini(&compound->request);
    free(compound);
}

/* ---- the end of a compound ---- */

static void compound_answer(struct compound *compound)
{
    struct client *client = compound->client;
    struct build out;
    build_init(&out, false);
    parts_join(compound, &out);
    charge_answered(client, compound->counted);
    timing_not_sent(client, compound->tag, compound->arrived_ns, compound->waited_us);
    if (out.is_broken)
        client_close_starved(client);
    else if (!compound->is_muted)
        charge_bytes_out(client, out.len, compound->counted);
    if (!client_is_closed(client) && has_position(compound))
        client_answer_apart(client, &compound->source->source,
                            slice_of(out.at, compound->is_muted ? 0 : out.len));
    build_fini(&out);
}

/* Resumes a client that waits until its calls are answered. */
static void compound_go_on(struct client *client, bool was_alone)
{
    if (client_is_closed(client))
        return;
    if (was_alone)
        client_resume(client, WAIT_ANSWER);
    if (client_waits_for(client, WAIT_REPLIES))
        client_resume(client, WAIT_REPLIES);
    else if (client_is_leaving(client))
        link_wake(&client->link);
}

/* Calls `done`, after the compound is freed. */
static void tell_done(struct compound *compound)
{
    struct build out;
    build_init(&out, false);
    bool has_reply = !compound->is_lost && !client_is_closed(compound->client);
    if (has_reply)
        parts_join(compound, &out);
    if (out.is_broken)
        client_close_starved(compound->client);
    void (*done)(void *arg, struct slice reply) = compound->done;
    void *arg = compound->arg;
    compound_free(compound);
    done(arg, slice_of(out.at, out.is_broken ? 0 : out.len));
    build_fini(&out);
}

void compound_over(struct compound *compound)
{
    struct client *client = compound->client;
    bool was_alone = compound->is_lent;
    if (compound->done != NULL) {
        tell_done(compound);
        return;
    }
    if (!compound->is_lost && !client_is_closed(client))
        compound_answer(compound);
    compound_free(compound);
    compound_go_on(client, was_alone);
}

/* ---- the start of a compound ---- */

/*
 * Orders the masters by address: the order is then equal in every weir in front of the cluster.
 * False if out of memory.
 */
static bool order_masters(struct compound *compound)
{
    const struct topology *topology = compound->client->front->nodes.topology;
    struct slice *names = malloc(topology->n_masters * sizeof *names);
    for (size_t i = 0; names != NULL && i < topology->n_masters; i++)
        names[i] = slice_str(topology->rows[i].node->text);
    bool is_done =
        names != NULL && scan_order_init(&compound->order, names, (uint32_t)topology->n_masters);
    free(names);
    return is_done;
}

/* Copies and splits the request; for SCAN, orders the masters. False if out of memory. */
static bool compound_fill(struct compound *compound, const struct request *request)
{
    if (!bytes_add(&compound->request, request->bytes, SIZE_MAX))
        return false;
    if (compound->fanout == FANOUT_SCAN)
        return order_masters(compound);
    struct slice bytes = bytes_slice(&compound->request);
    return compound_is_for_many((enum fanout)compound->fanout) ||
           slot_split_init(&compound->split, request->command, bytes, request->argc);
}

/* Returns a new compound, NULL if out of memory; the client is then closed. */
static struct compound *compound_make(struct client *client, const struct request *request)
{
    struct compounds *compounds = need_compounds(client);
    struct compound *compound = compounds != NULL ? calloc(1, sizeof *compound) : NULL;
    if (compound == NULL) {
        client_close_starved(client);
        return NULL;
    }
    const struct command *command = request->command;
    *compound = (struct compound){
        .client = client,
        .tag = timing_tag(client, command, request->argc),
        .arrived_ns = client->lane_user.arrived_ns,
        .waited_us = client->lane_user.waited_us,
        .fanout = command->fanout,
        .join = command->join,
        .counted = request->counted,
        .is_lent = compound_is_for_many(fanout_for(request)) && !command->is_shareable,
    };
    list_push(&compounds->all, &compound->in_client);
    client->extra->n_compounds++;
    return compound;
}

/*
 * Notes the keys of parts with several keys (struct key_filter). Redis may refuse a part with
 * several keys, and run a later command with one of these keys.
 */
static void note_keys(const struct compound *compound, const struct command *command)
{
    const struct slot_split *split = &compound->split;
    struct key_filter *several = &compound->client->extra->spread->several;
    for (uint32_t i = 0; i < split->n_keys; i++) {
        const struct slot_split_key *key = &split->keys[i];
        if (split->parts[key->part].n_keys > 1)
            key_filter_add(several, slice_of(split->request.at + key->key_off, key->key_len),
                           keep_kind(command) == KEPT_READ);
    }
}

/* Called when the gate has let the request pass. */
static enum route compound_start(struct client *client, const struct request *request)
{
    struct compound *compound = compound_make(client, request);
    if (compound == NULL)
        return ROUTE_STOP;
    if (!compound_fill(compound, request) ||
        (compound->source = take_source(client->extra->compounds)) == NULL) {
        compound_free(compound);
        client_close_starved(client);
        return ROUTE_STOP;
    }
    if (compound->fanout == FANOUT_SCAN &&
        !scan_cursor_read(&compound->order, request->args[0], &compound->place)) {
        compound_free(compound);
        charge_answered(client, request->counted);
        return answer_with(client, NO_CURSOR);
    }
    if (!client_begin_apart(client, &compound->source->source)) {
        compound_free(compound);
        return ROUTE_STOP;
    }
    compound->run = client_extra(client)->spread->order++;
    compound->is_muted = reply_mode_take(&client->reply_mode);
    if (client->reader == READER_NEW && (request->command->flags & CMD_READONLY) != 0)
        client->reader = READER_ASKS; /* also if the client has a private lane */
    if (compound->is_lent)
        client_wait(client, WAIT_ANSWER);
    note_keys(compound, request->command);
    if (request->command->is_pausable)
        coverage_note_write(client);
    if (!parts_start(compound, request))
        compound_free(compound);
    return client_is_closed(client) ? ROUTE_STOP : ROUTE_TAKEN;
}

/*
 * ROUTE_GOES_ON: the gate has let the request pass. If `is_sent`, the request is counted as sent.
 */
static enum route compound_ask_gate(struct client *client, struct request *request, bool is_sent)
{
    struct verdict verdict;
    bool has_waited = meter_is_waiting(client);
    enum route result = answer_unless_passed(client, NULL, request, &verdict);
    if (result != ROUTE_GOES_ON)
        return result;
    request->counted = verdict.counted;
    if (is_sent)
        answer_count(client, request,
                     has_waited            ? RESULT_DELAYED
                     : verdict.is_shadowed ? RESULT_SHADOW
                                           : RESULT_FORWARDED);
    return ROUTE_GOES_ON;
}

/*
 * True if weir may split the request by its keys. MSET with a missing value is not split: Redis
 * Cluster, too, replies CROSSSLOT before it checks the number of values.
 */
static bool may_split(const struct client *client, const struct request *request)
{
    enum cross_slot how = client->front->nodes.worker_lanes.upstream->cross_slot;
    bool fits = !request->is_large && request->bytes.len <= LARGE_REQUEST &&
                slot_split_fits(request->command, request->argc);
    switch (fanout_for(request)) {
    case FANOUT_SLOTS:
        return how != CROSS_SLOT_REFUSE && fits;
    case FANOUT_WRITTEN:
        return how == CROSS_SLOT_SPLIT_ALL && fits;
    default:
        return false;
    }
}

static enum route compound_refuse(struct client *client, struct request *request)
{
    enum route result = compound_ask_gate(client, request, false);
    if (result != ROUTE_GOES_ON)
        return result;
    charge_answered(client, request->counted);
    return answer_error(client, NULL, request, CROSSING);
}

/*
 * True if the request must wait because the size of its reply is unknown. A client's second read
 * waits for the reply to its first. Huge replies are read one at a time.
 */
static bool compound_must_ask_first(struct client *client, const struct request *request)
{
    bool is_asked = client->reader == READER_ASKS || lane_choice_reads_huge(client);
    if ((request->command->flags & CMD_READONLY) == 0 || !is_asked)
        return false;
    if (client_has_calls(client) || client_extra(client)->n_compounds > 0)
        return true;
    if (client->reader == READER_ASKS)
        client->reader = READER_KNOWN;
    return false;
}

/* True if earlier requests must be answered first. */
static bool compound_must_wait(struct client *client, const struct request *request)
{
    bool is_lent = compound_is_for_many(fanout_for(request)) && !request->command->is_shareable;
    return client->lane_user.in_flight > 0 || client_extra(client)->n_compounds >= COMPOUNDS_MAX ||
           (is_lent && spread_in_flight(client_extra(client)->spread) > 0) ||
           places_must_not_overtake(client, request) || compound_must_ask_first(client, request) ||
           (request->command->is_pausable && read_side_of(client) != NULL &&
            shard_reads_are_under_way(client));
}

enum route compound_run(struct client *client, struct request *request)
{
    if (!compound_is_for_many(fanout_for(request)) && !may_split(client, request))
        return compound_refuse(client, request);
    if (compound_must_wait(client, request)) {
        client_wait_for_replies(client);
        return ROUTE_WAIT;
    }
    enum route result = compound_ask_gate(client, request, true);
    return result == ROUTE_GOES_ON ? compound_start(client, request) : result;
}

/* ---- one request for each key ---- */

bool compound_by_keys(struct client *client, struct slice bytes,
                      void (*done)(void *arg, struct slice reply), void *arg)
{
    struct request_scan scan = {0};
    struct request request = {0};
    size_t used;
    if (request_scan(&scan, &request_limits_normal, bytes.at, bytes.len, &used) != SCAN_FRAME)
        return false;
    describe_request(&request, client->front, &scan, bytes);
    if (!may_split(client, &request) || request.argc <= 1U + slot_split_args(request.command))
        return false;
    struct compound *compound = compound_make(client, &request);
    if (compound == NULL)
        return false;
    compound->done = done;
    compound->arg = arg;
    if (compound_fill(compound, &request) && compound->split.n_parts == 1 &&
        parts_start_keys(compound))
        return true;
    compound_free(compound);
    return false;
}

/* ---- events of the client ---- */

static struct compound *compound_at(struct list *at)
{
    return container_of(at, struct compound, in_client);
}

void compounds_go_on(struct client *client)
{
    struct compounds *compounds = client_extra(client)->compounds;
    if (compounds == NULL)
        return;
    for (struct list *at = compounds->all.next, *next; at != &compounds->all; at = next) {
        next = at->next;
        parts_go_on(compound_at(at));
        if (client_is_closed(client))
            return;
    }
}

void compounds_hurry(struct client *client)
{
    struct compounds *compounds = client_extra(client)->compounds;
    if (compounds == NULL)
        return;
    for (struct list *at = compounds->all.next, *next; at != &compounds->all; at = next) {
        next = at->next;
        parts_hurry(compound_at(at));
        if (client_is_closed(client))
            return;
    }
}

void compounds_leave(struct client *client)
{
    struct compounds *compounds = client_extra(client)->compounds;
    if (compounds == NULL)
        return;
    for (struct list *at = compounds->all.next, *next; at != &compounds->all; at = next) {
        next = at->next;
        parts_leave(compound_at(at));
    }
}

void compounds_free(struct client *client)
{
    struct compounds *compounds = client_extra(client)->compounds;
    if (compounds == NULL)
        return;
    for (struct compound_source *source = compounds->sources, *next; source != NULL;
         source = next) {
        next = source->next;
        free(source);
    }
    free(compounds);
    client->extra->compounds = NULL;
}
