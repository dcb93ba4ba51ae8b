#include "upstream/node/offsets.h"

#include <string.h>

#include "base/num.h"

/* ---- INFO replication ---- */

/* Returns the value of the line `name`; empty: no such line. */
static struct slice offsets_value_of(struct slice info, struct slice name)
{
    const char *at = info.at;
    const char *end = info.at + info.len;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline != NULL ? newline : end;
        size_t len = (size_t)(stop - at);
        if (len > 0 && at[len - 1] == '\r')
            len--;
        if (len > name.len && at[name.len] == ':' && memcmp(at, name.at, name.len) == 0)
            return slice_of(at + name.len + 1, len - name.len - 1);
        at = newline != NULL ? newline + 1 : end;
    }
    return slice_of("", 0);
}

static bool offsets_read_offset(struct slice info, struct slice name, uint64_t *offset)
{
    int64_t number;
    if (!num_parse(offsets_value_of(info, name), &number) || number < 0)
        return false;
    *offset = (uint64_t)number;
    return true;
}

bool offsets_read(struct slice info, struct offsets_word *word)
{
    struct slice role = offsets_value_of(info, SLICE("role"));
    struct slice id = offsets_value_of(info, SLICE("master_replid"));
    *word = (struct offsets_word){.role = ROLE_UNKNOWN};
    if (id.len == OFFSETS_ID)
        memcpy(word->id, id.at, OFFSETS_ID);
    if (slice_eq(role, SLICE("master"))) {
        word->role = ROLE_MASTER;
        return offsets_read_offset(info, SLICE("master_repl_offset"), &word->offset);
    }
    if (!slice_eq(role, SLICE("slave")))
        return false;
    word->role = ROLE_REPLICA;
    word->is_linked =
        slice_eq(offsets_value_of(info, SLICE("master_link_status")), SLICE("up")) &&
        !slice_eq(offsets_value_of(info, SLICE("master_sync_in_progress")), SLICE("1"));
    return offsets_read_offset(info, SLICE("slave_repl_offset"), &word->offset);
}

/* ---- offsets of the master ---- */

void offsets_forget(struct offsets *offsets)
{
    offsets->n = 0;
    offsets->id[0] = '\0';
}

/*
 * Drop every second entry of the older half. A replica that has reached a dropped entry, and no
 * later entry, counts as older.
 */
static void offsets_thin_out(struct offsets *offsets)
{
    size_t kept = 0;
    for (size_t i = 0; i < offsets->n; i++)
        if (i >= offsets->n / 2 || i % 2 == 0)
            offsets->told[kept++] = offsets->told[i];
    offsets->n = kept;
}

void offsets_note(struct offsets *offsets, const struct offsets_word *master, uint64_t asked_ns)
{
    if (master->role != ROLE_MASTER || master->id[0] == '\0') {
        offsets_forget(offsets);
        return;
    }
    struct offsets_told *last = offsets->n > 0 ? &offsets->told[offsets->n - 1] : NULL;
    bool goes_on =
        last != NULL && strcmp(offsets->id, master->id) == 0 && last->offset <= master->offset;
    if (goes_on && last->offset == master->offset) {
        last->asked_ns = asked_ns;
        return;
    }
    if (!goes_on) {
        offsets_forget(offsets);
        memcpy(offsets->id, master->id, sizeof offsets->id);
    }
    if (offsets->n == OFFSETS_HISTORY)
        offsets_thin_out(offsets);
    offsets->told[offsets->n++] = (struct offsets_told){asked_ns, master->offset};
}

/* ---- state of a replica ---- */

static bool follows(const struct offsets *offsets, const struct offsets_word *replica)
{
    return replica->role == ROLE_REPLICA && replica->is_linked && offsets->n > 0 &&
           strcmp(offsets->id, replica->id) == 0;
}

uint64_t offsets_as_of(const struct offsets *offsets, const struct offsets_word *replica)
{
    if (!follows(offsets, replica))
        return 0;
    for (size_t i = offsets->n; i > 0; i--)
        if (offsets->told[i - 1].offset <= replica->offset)
            return offsets->told[i - 1].asked_ns;
    return 0;
}

uint64_t offsets_behind(const struct offsets *offsets, const struct offsets_word *replica)
{
    if (!follows(offsets, replica))
        return 0;
    uint64_t last = offsets->told[offsets->n - 1].offset;
    return last > replica->offset ? last - replica->offset : 0;
}
