#include "quota/batch_reply.h"

#include <string.h>

#include "quota/answer.h"
#include "quota/numbers.h"
#include "quota/outcome.h"
#include "upstream/lane/lack.h"

static const struct slice amiss = {"-ERR the upstream has answered amiss",
                                   sizeof "-ERR the upstream has answered amiss" - 1};

struct decision *batch_take(struct batch_entry *entry)
{
    struct decision *decision = container_of(entry->calls.next, struct decision, in_entry);
    list_take(&decision->in_entry);
    decision->is_asking = false;
    return decision;
}

static void fail_entry(const struct batch_owner *owner, struct batch_entry *entry, struct slice error, bool is_down)
{
    while (!list_is_empty(&entry->calls))
        owner->ops->on_failed(batch_take(entry), error, is_down);
}

void batch_fail(const struct batch_owner *owner, struct batch *batch, struct slice error, bool is_down)
{
    for (uint32_t i = 0; i < batch->n; i++)
        fail_entry(owner, &batch->entries[i], error, is_down);
    batch_free(batch);
}

/* Fail an entry with Redis' error text, at most one line of it. */
static void fail_with(const struct batch_owner *owner, const struct script_conn *conn, struct batch_entry *entry,
                      struct slice error)
{
    char line[256] = "-", named[LACK_ERROR_ROOM];
    size_t len = error.len < sizeof line - 1 ? error.len : sizeof line - 1;
    memcpy(line + 1, error.at, len);
    bool is_named = lack_is_in_script(error);
    fail_entry(owner, entry, is_named ? script_conn_explain(conn, error, named) : slice_of(line, 1 + len), false);
}

static void answer_entry(const struct batch_owner *owner, const struct batch *batch, const struct script_conn *conn,
                         struct batch_entry *entry, struct answer *answer)
{
    const struct decision *first = container_of(entry->calls.next, struct decision, in_entry);
    int64_t numbers[QUOTA_NUMBERS_MAX];
    struct quota_hold holds[QUOTA_PARTS_MAX] = {0};
    struct slice error = slice_of(NULL, 0);
    bool is_read = quota_numbers_read(answer, &first->ask, numbers, holds, &error);
    if (is_read && error.at != NULL)
        fail_with(owner, conn, entry, error);
    else if (is_read && quota_numbers_are_sane(&first->ask, numbers, entry->n) &&
             quota_holds_are_sane(&first->ask, numbers, holds, entry->n))
        owner->ops->on_numbers(owner->arg, batch, entry, numbers, holds);
    else
        fail_entry(owner, entry, amiss, false);
}

/* How many entries the script must answer. */
static size_t numbers_of(const struct batch *batch)
{
    size_t n = 0;
    for (uint32_t i = 0; i < batch->n; i++) {
        const struct decision *first = container_of(batch->entries[i].calls.next, struct decision, in_entry);
        n += quota_numbers(&first->ask);
    }
    return n;
}

static void answer_delete(const struct batch_owner *owner, struct batch *batch, struct script_conn *conn,
                          struct slice text)
{
    struct answer answer = answer_of(text);
    int64_t deleted = 0;
    struct slice error = slice_of(NULL, 0);
    bool is_number = answer_number(&answer, &deleted, &error) && error.at == NULL && answer_is_over(&answer);
    node_lacks_no_more(lanes_node(conn->base.lanes), LACK_UNLINK);
    while (!list_is_empty(&batch->entries[0].calls)) {
        struct decision *decision = batch_take(&batch->entries[0]);
        if (is_number && deleted >= 0 && deleted <= (int64_t)decision->n_keys)
            owner->ops->on_deleted(decision, deleted);
        else
            owner->ops->on_failed(decision, amiss, false);
    }
    batch_free(batch);
}

void batch_answer(const struct batch_owner *owner, struct batch *batch, struct script_conn *conn, struct slice reply)
{
    struct answer answer;
    if (batch_script(batch) == SCRIPT_COUNT) {
        answer_delete(owner, batch, conn, reply);
        return;
    }
    script_conn_note_decided(conn);
    if (!answer_begin(reply, numbers_of(batch), &answer)) {
        batch_fail(owner, batch, amiss, false);
        return;
    }
    for (uint32_t i = 0; i < batch->n; i++)
        answer_entry(owner, batch, conn, &batch->entries[i], &answer);
    batch_free(batch);
}

void batch_drop(struct batch *batch)
{
    for (uint32_t i = 0; i < batch->n; i++)
        while (!list_is_empty(&batch->entries[i].calls))
            decision_drop(batch_take(&batch->entries[i]));
    batch_free(batch);
}
