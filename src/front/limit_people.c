#include "front/limit_people.h"

#include <stdio.h>

#include "base/why.h"
#include "front/orders.h"
#include "limit/named_subject.h"

#define BLOCKS_TOLD 1000 /* by LIMIT BLOCKS alone */
#define WHY_ROOM 512

static bool refuse(struct build *out, const char *why)
{
    char text[WHY_ROOM + 8];
    snprintf(text, sizeof text, "ERR %s", why);
    build_error(out, slice_str(text));
    return false;
}

/* ---- who is blocked ---- */

/* Which word is wrong; 0: none. */
static size_t fault_of_block(const struct limit_words *words)
{
    size_t i = 3;
    if (limit_word_is(words, i, "ex"))
        i += 2;
    if (i >= words->n)
        return i > words->n ? words->n : 0;
    if (!limit_word_is(words, i, "reason"))
        return i;
    return i + 1 == words->n ? words->n : 0;
}

void limit_people_block(struct client *client, const struct limit_words *words, struct build *out)
{
    size_t fault = fault_of_block(words);
    if (fault > 0)
        limit_words_error(words, fault, out);
    else
        orders_give(client, ORDER_BLOCK, words, out);
}

void limit_people_unblock(struct client *client, const struct limit_words *words, struct build *out)
{
    orders_give(client, ORDER_UNBLOCK, words, out);
}

void limit_people_blocks(struct client *client, const struct limit_words *words, struct build *out)
{
    size_t n;
    if (words->n > 3)
        limit_words_error(words, 3, out);
    else if (!limit_words_count(words, 2, BLOCKS_TOLD, &n))
        build_error(out, SLICE("ERR value is not an integer or out of range"));
    else
        report_blocks(out, exceptions_blocks(client->front->rules->exceptions), n, client->front->loop->now_ns);
}

/* ---- who is connected ---- */

/* One that connections have. False: `out` is an error. */
static bool is_of_connections(const struct client *client, struct slice name, struct build *out)
{
    char why[WHY_ROOM];
    struct named_subject named;
    if (!named_subject_read(&named, &client->front->rules->identity, name, why, sizeof why))
        return refuse(out, why);
    if (named_subject_is_connected(name))
        return true;
    return refuse(out, "keys of commands name such subjects: they are no connections");
}

void limit_people_clients(struct client *client, const struct limit_words *words, struct build *out)
{
    if (words->n != 2 && !(words->n == 4 && limit_word_is(words, 2, "for")))
        limit_words_error(words, !limit_word_is(words, 2, "for") ? 2 : words->n < 4 ? 3 : 4, out);
    else if (words->n == 2 || is_of_connections(client, words->at[3], out))
        orders_give(client, ORDER_CLIENTS, words, out);
}

void limit_people_kick(struct client *client, const struct limit_words *words, struct build *out)
{
    if (is_of_connections(client, words->at[2], out))
        orders_give(client, ORDER_KICK, words, out);
}

/* ---- asking about others ---- */

/* Holders for all that its policy counts. False: out of memory. */
static bool make_account(struct report_subject *subject, const struct policy *policy, struct subject *holder)
{
    subject->account = (struct account){policy, {holder, NULL, NULL}};
    if (policy == NULL)
        return true;
    subject->account.holders[PER_POLICY] = policy->record->everybody;
    if (policy->of_scope[PER_CONNECTION] == 0)
        return true;
    subject->account.holders[PER_CONNECTION] = subject_new_detached(policy->record, PER_CONNECTION);
    return subject->account.holders[PER_CONNECTION] != NULL;
}

/* By what its name says; its funnels are empty. */
static bool imagine(struct client *client, struct slice name, struct found *found, struct build *out)
{
    char why[WHY_ROOM];
    struct named_subject named;
    const struct rules *rules = client->front->rules;
    if (!named_subject_read(&named, &rules->identity, name, why, sizeof why))
        return refuse(out, why);
    const struct policy *policy =
        exceptions_bind(rules->exceptions, policies_match(rules->policies, &named.facts), name);
    struct subject *holder = policy != NULL ? subject_new_detached(policy->record, PER_SUBJECT) : NULL;
    if ((policy == NULL || holder != NULL) && make_account(&found->subject, policy, holder))
        return true;
    subject_free_detached(holder);
    return refuse(out, "out of memory");
}

bool limit_people_find(struct client *client, struct slice name, struct found *found, struct build *out)
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
    const struct policy *policy = policies_find(front->rules->policies, slice_str(holder->record->name));
    policy = exceptions_bind(front->rules->exceptions, policy, name);
    if (make_account(&found->subject, policy, holder))
        return true;
    subject_put(found->table, holder);
    return refuse(out, "out of memory");
}

void limit_people_forget(struct found *found)
{
    struct subject *const *holders = found->subject.account.holders;
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
    return named_subject_read(&named, &client->front->rules->identity, name, why, sizeof why) || refuse(out, why);
}
