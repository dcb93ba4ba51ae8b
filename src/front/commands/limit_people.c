#include "front/commands/limit_people.h"

#include <stdio.h>

#include "base/why.h"
#include "front/commands/admin_commands.h"
#include "limit/policy/named_subject.h"
#include "limit/policy/rate.h"

#define BLOCKS_TOLD 1000 /* most rows of a LIMIT BLOCKS without a number (chosen) */
#define WHY_ROOM 512

static bool limit_people_refuse(struct build *out, const char *why)
{
    char text[WHY_ROOM + 8];
    snprintf(text, sizeof text, "ERR %s", why);
    build_error(out, slice_str(text));
    return false;
}

/* ---- one subject ---- */

bool limit_people_is_one(const struct client *client, struct slice name, struct build *out)
{
    char why[WHY_ROOM];
    const struct front_settings *settings = client->front->settings;
    if (!named_subject_is_pattern(name) || subjects_have(settings->subjects, name) ||
        subjects_have(settings->key_subjects, name))
        return true;
    why_set(why, sizeof why, "no such subject: %.*s: write one subject, not a pattern",
            WHY_SLICE(name));
    return limit_people_refuse(out, why);
}

/* ---- blocks ---- */

static bool is_time(struct slice text)
{
    char why[WHY_ROOM];
    uint64_t ns;
    return rate_parse_time(text, &ns, why, sizeof why);
}

/*
 * Returns the index of an EX with a time that would count as text: inside the reason, or a second
 * EX. Returns 0 if no EX would count as text.
 */
static size_t stray_time(const struct limit_words *words, size_t reason, bool has_time)
{
    for (size_t i = reason + 1; i + 1 < words->n; i++)
        if (limit_word_is(words, i, "ex") && is_time(words->at[i + 1]) &&
            (has_time || i + 2 < words->n))
            return i;
    return 0;
}

/*
 * Checks LIMIT BLOCK subject [EX time] [REASON text ...] [EX time]. False if `out` holds an error.
 */
static bool is_block(const struct limit_words *words, struct build *out)
{
    bool has_time = limit_word_is(words, 3, "ex");
    size_t i = has_time ? 5 : 3, stray;
    if (i == words->n)
        return true;
    if (i > words->n || (limit_word_is(words, i, "reason") && i + 1 == words->n)) {
        limit_words_error(words, words->n, out);
    } else if (!limit_word_is(words, i, "reason")) {
        if (limit_word_is(words, i, "ex"))
            limit_words_error(words, i, out);
        else
            limit_words_token_missing(
                words, i, !has_time && limit_word_is_number(words, i) ? "EX" : "REASON", out);
    } else if ((stray = stray_time(words, i, has_time)) > 0) {
        char why[WHY_ROOM];
        why_set(why, sizeof why,
                "syntax error, unexpected 'EX' in the reason (write EX %.*s once, before REASON)",
                WHY_SLICE(words->at[stray + 1]));
        limit_people_refuse(out, why);
    } else {
        return true;
    }
    return false;
}

void limit_people_block(struct client *client, const struct limit_words *words, struct build *out)
{
    if (is_block(words, out) && limit_people_is_one(client, words->at[2], out))
        admin_commands_give(client, ADMIN_BLOCK, words, out);
}

void limit_people_unblock(struct client *client, const struct limit_words *words, struct build *out)
{
    admin_commands_give(client, ADMIN_UNBLOCK, words, out);
}

void limit_people_blocks(struct client *client, const struct limit_words *words, struct build *out)
{
    size_t n;
    if (words->n > 3)
        limit_words_error(words, 3, out);
    else if (limit_words_count(words, 2, BLOCKS_TOLD, &n, out))
        admin_commands_give_report(client, ADMIN_BLOCKS, &(struct report_wanted){.n = n}, SLICE(""),
                                   out);
}

/* ---- connections ---- */

/* True if connections can have a subject of this name. False if `out` holds an error. */
static bool is_of_connections(const struct client *client, struct slice name, struct build *out)
{
    char why[WHY_ROOM];
    struct named_subject named;
    if (!named_subject_read(&named, &client->front->rules->identity, name, why, sizeof why))
        return limit_people_refuse(out, why);
    if (named_subject_is_connected(name))
        return limit_people_is_one(client, name, out);
    return limit_people_refuse(
        out, "commands name such subjects by key: connections do not belong to them");
}

bool limit_people_may_name(const struct limit_words *words, struct build *out)
{
    bool has_for = limit_word_is(words, 2, "for");
    if (words->n == 2 || (words->n == 4 && has_for))
        return true;
    if (words->n == 3 && !has_for)
        limit_words_token_missing(words, 2, "FOR", out);
    else
        limit_words_error(words, !has_for ? 2 : words->n < 4 ? 3 : 4, out);
    return false;
}

void limit_people_clients(struct client *client, const struct limit_words *words, struct build *out)
{
    if (!limit_people_may_name(words, out))
        return;
    if (words->n == 2 || is_of_connections(client, words->at[3], out))
        admin_commands_give(client, ADMIN_CLIENTS, words, out);
}

void limit_people_kick(struct client *client, const struct limit_words *words, struct build *out)
{
    if (is_of_connections(client, words->at[2], out))
        admin_commands_give(client, ADMIN_KICK, words, out);
}

/* ---- the state of a subject ---- */

/* Sets the holders of all limits of the policy. False if out of memory. */
static bool make_target(struct report_subject *subject, const struct policy *policy,
                        struct subject *holder)
{
    subject->target = (struct charge_target){policy, {holder, NULL, NULL}};
    if (policy == NULL)
        return true;
    subject->target.holders[PER_POLICY] = policy->policy_state->everybody;
    if (policy->of_scope[PER_CONNECTION] == 0)
        return true;
    subject->target.holders[PER_CONNECTION] =
        subject_new_detached(policy->policy_state, PER_CONNECTION);
    return subject->target.holders[PER_CONNECTION] != NULL;
}

/* Makes a subject from its name alone, with empty funnels. False if `out` holds an error. */
static bool imagine(struct client *client, struct slice name, struct found *found,
                    struct build *out)
{
    char why[WHY_ROOM];
    struct named_subject named;
    const struct rules *rules = client->front->rules;
    if (!named_subject_read(&named, &rules->identity, name, why, sizeof why))
        return limit_people_refuse(out, why);
    if (!limit_people_is_one(client, name, out))
        return false;
    const struct policy *policy =
        exceptions_bind(rules->exceptions, policies_match(rules->policies, &named.facts), name);
    struct subject *holder =
        policy != NULL ? subject_new_detached(policy->policy_state, PER_SUBJECT) : NULL;
    if ((policy == NULL || holder != NULL) && make_target(&found->subject, policy, holder))
        return true;
    subject_free_detached(holder);
    return limit_people_refuse(out, "out of memory");
}

bool limit_people_find(struct client *client, struct slice name, struct found *found,
                       struct build *out)
{
    struct front *front = client->front;
    *found = (struct found){.subject.name = name, .table = front->settings->subjects};
    found->subject.block = blocks_find(exceptions_blocks(front->rules->exceptions), name);
    struct subject *holder = subject_find(found->table, name);
    if (holder == NULL) {
        found->table = front->settings->key_subjects;
        holder = subject_find(found->table, name);
    }
    if (holder == NULL) {
        found->table = NULL;
        return imagine(client, name, found, out);
    }
    const struct policy *policy =
        policies_find(front->rules->policies, slice_str(holder->policy_state->name));
    policy = exceptions_bind(front->rules->exceptions, policy, name);
    if (make_target(&found->subject, policy, holder))
        return true;
    subject_put(found->table, holder);
    return limit_people_refuse(out, "out of memory");
}

void limit_people_forget(struct found *found)
{
    struct subject *const *holders = found->subject.target.holders;
    subject_free_detached(holders[PER_CONNECTION]);
    if (found->table != NULL)
        subject_put(found->table, holders[PER_SUBJECT]);
    else
        subject_free_detached(holders[PER_SUBJECT]);
}

bool limit_people_is_name(const struct client *client, struct slice name, struct build *out)
{
    char why[WHY_ROOM];
    struct named_subject named;
    if (!named_subject_read(&named, &client->front->rules->identity, name, why, sizeof why))
        return limit_people_refuse(out, why);
    return limit_people_is_one(client, name, out);
}
