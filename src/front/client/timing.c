#include "front/client/timing.h"

#include <stdio.h>

#include "front/client/session.h"
#include "limit/figures/slowlog.h"
#include "quota/quota.h"

/*
 * Most entries of one worker in a second. When all commands are slow, the slow log must not make
 * commands even slower.
 */
#define SLOW_PER_S 100

/* ---- the slow log ---- */

static bool may_log(struct slow *slow, uint64_t now)
{
    if (now - slow->since_ns >= NS_PER_S)
        *slow = (struct slow){.since_ns = now, .table_ns = slow->table_ns, .waits = slow->waits};
    return slow->n++ < SLOW_PER_S;
}

/* The name in a tag; "unknown" if the tag is of an older command table. */
static struct slice timing_name_of(const struct front *front, uint64_t tag, uint64_t arrived_ns)
{
    size_t id = tag >> 16 & UINT16_MAX;
    if (id == 0 || arrived_ns <= front->slow.table_ns || id >= command_table_count(front->commands))
        return SLICE("unknown");
    const struct command *command = command_table_row(front->commands, id);
    return slice_of(command->name, command->name_len);
}

static void timing_print(char *out, size_t room, struct slice text)
{
    snprintf(out, room, "%.*s", (int)(text.len < room ? text.len : room), text.at);
}

/* The time of a command without its wait for a limit, which does not count as slow. */
static uint64_t undelayed_ns(const struct timed *timed)
{
    uint64_t total_ns = timed->answered_ns - timed->arrived_ns;
    uint64_t waited_ns = timed->waited_us * NS_PER_US;
    return total_ns > waited_ns ? total_ns - waited_ns : 0;
}

static void add_entry(const struct client *client, const struct timed *timed, uint64_t tag,
                      const struct node *node)
{
    const struct front *front = client->front;
    uint64_t upstream_ns = timed->sent_ns != 0 && timed->answered_ns > timed->sent_ns
                               ? timed->answered_ns - timed->sent_ns
                               : 0;
    char address[SESSION_TEXT];
    struct slow_entry entry = {
        .unix_ms = clock_unix_ms(),
        .total_us = undelayed_ns(timed) / NS_PER_US,
        .waited_us = timed->waited_us,
        .upstream_us = upstream_ns / NS_PER_US,
        .share_us = timed->share_us,
        .argc = tag & UINT16_MAX,
        .waits = (uint16_t)(tag >> 32),
    };
    session_print_address(client, address);
    timing_print(entry.command, sizeof entry.command,
                 timing_name_of(front, tag, timed->arrived_ns));
    timing_print(entry.address, sizeof entry.address, slice_str(address));
    timing_print(entry.client, sizeof entry.client, session_name(client));
    timing_print(entry.node, sizeof entry.node, slice_str(node != NULL ? node->text : ""));
    slowlog_add(front->settings->slowlog, &entry);
}

/*
 * Logs a slow command. `node` has answered; NULL: none, or several nodes. False: this second has
 * SLOW_PER_S entries.
 */
static bool log_slow(struct client *client, const struct timed *timed, uint64_t tag,
                     const struct node *node)
{
    if (!may_log(&client->front->slow, timed->answered_ns))
        return false;
    add_entry(client, timed, tag, node);
    return true;
}

/* ---- answered commands ---- */

/* Adds the times to the histograms. Returns true if the commands were slow. */
static bool note(struct client *client, const struct timed *timed)
{
    struct front *front = client->front;
    answered_add(&front->answered, &front->counts.times, timed);
    return undelayed_ns(timed) >= front->rules->slow_ns;
}

/* Writes one entry for each run of requests that differ only in their arguments. */
static void log_run(struct client *client, const struct lane *lane, const struct timed *timed)
{
    const struct tags *tags = &lane->tags;
    bool goes_on = true;
    for (uint32_t i = 0; i < timed->n && goes_on; i++)
        if (i == 0 || tags_at(tags, i) != tags_at(tags, i - 1))
            goes_on = log_slow(client, timed, tags_at(tags, i), lane_node(lane));
}

void timing_answered(struct lane_user *lane_user, const struct call *call, uint32_t n)
{
    timing_note(container_of(lane_user, struct client, lane_user), lane_user->lane, call, n);
}

void timing_note(struct client *client, const struct lane *lane, const struct call *call,
                 uint32_t n)
{
    const struct timed timed = {
        .arrived_ns = call->arrived_ns,
        /*
         * The bytes of a large request are written at once, so its reply may come before sent_ns is
         * set.
         */
        .sent_ns =
            call->sent_ns != 0 ? call->sent_ns : call->arrived_ns + call->waited_us * NS_PER_US,
        .answered_ns = client->front->loop->now_ns,
        .waited_us = call->waited_us,
        .share_us = (call->flags & CALL_LOOK) == 0 ? call->share_us : 0,
        .n = n,
    };
    if (note(client, &timed))
        log_run(client, lane, &timed);
}

void timing_not_sent(struct client *client, uint64_t tag, uint64_t arrived_ns, uint32_t waited_us)
{
    const struct timed timed = {
        .arrived_ns = arrived_ns,
        .sent_ns = arrived_ns + waited_us * NS_PER_US,
        .answered_ns = client->front->loop->now_ns,
        .waited_us = waited_us,
        .n = 1,
    };
    if (note(client, &timed))
        (void)log_slow(client, &timed, tag, NULL);
}

void timing_local(struct client *client, uint64_t tag, uint32_t n)
{
    const struct timed timed = {
        .arrived_ns = client->lane_user.arrived_ns,
        .answered_ns = client->front->loop->now_ns,
        .waited_us = client->lane_user.waited_us,
        .share_us = client->front->nodes.worker_lanes.share_us,
        .n = n,
    };
    if (note(client, &timed)) /* one entry for all n, as in log_run */
        (void)log_slow(client, &timed, tag, NULL);
}

void timing_decided(struct client *client, const struct decision *call)
{
    const struct timed timed = {
        .arrived_ns = call->arrived_ns,
        .sent_ns = call->arrived_ns + call->waited_us * NS_PER_US,
        .answered_ns = client->front->loop->now_ns,
        .waited_us = call->waited_us,
        .share_us = call->share_us,
        .n = 1,
    };
    if (call->arrived_ns != 0 && note(client, &timed))
        (void)log_slow(client, &timed, call->tag, quota_node(call));
}

/* ---- waiting for a fair share ---- */

void timing_share_waited(struct client *client)
{
    struct front *front = client->front;
    struct subject *subject = client->subject;
    uint64_t now_ns = front->loop->now_ns;
    uint64_t waited_ns =
        now_ns > client->lane_user.arrived_ns ? now_ns - client->lane_user.arrived_ns : 0;
    uint64_t waited_us = waited_ns / NS_PER_US;
    front->nodes.worker_lanes.share_us = waited_us < UINT32_MAX ? (uint32_t)waited_us : UINT32_MAX;
    histo_add(&front->counts.times.share, waited_ns, 1);
    if (subject == NULL)
        return;
    const uint64_t amounts[TOP_BY_COUNT] = {[TOP_SHARE] = waited_us};
    subject_count_share_wait(subject, waited_us);
    top_add_each(front->top, slice_str(subject->policy_state->name), subject_name(subject),
                 subject->hash, amounts, TOP_NO_LIMIT, now_ns);
}

void timing_written(struct loop *loop)
{
    struct front *front = loop->owner;
    answered_written(&front->answered, &front->counts.times, loop->written_ns);
}
