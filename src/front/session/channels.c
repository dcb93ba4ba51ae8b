#include "front/session/channels.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "limit/command/slot.h"

/* ---- names ---- */

static struct channel *channel_at(struct list *at)
{
    return container_of(at, struct channel, in_bucket);
}

void channels_init(struct channels *channels)
{
    for (unsigned i = 0; i < CHANNELS_BUCKETS; i++)
        list_init(&channels->buckets[i]);
}

struct channel *channels_find(const struct channels *channels, enum channel_kind kind,
                              struct slice name)
{
    const struct list *bucket = &channels->buckets[slot_of(name) % CHANNELS_BUCKETS];
    for (struct list *at = bucket->next; at != bucket; at = at->next) {
        struct channel *channel = channel_at(at);
        if (channel->kind == kind && slice_eq(channel_name(channel), name))
            return channel;
    }
    return NULL;
}

static uint32_t *channels_count_of(struct channels *channels, enum channel_kind kind)
{
    return kind == CHANNEL_SHARD ? &channels->n : &channels->n_wide;
}

bool channels_add(struct channels *channels, enum channel_kind kind, struct slice name,
                  const void *tap)
{
    struct channel *channel = channels_find(channels, kind, name);
    if (channel != NULL) {
        channels_move(channels, channel, tap);
        return true;
    }
    size_t bytes = sizeof *channel + name.len;
    if (channels->bytes + bytes > CHANNELS_BYTES_MAX || (channel = calloc(1, bytes)) == NULL)
        return false;
    channel->tap = tap;
    channel->len = (uint32_t)name.len;
    channel->slot = (uint16_t)slot_of(name);
    channel->kind = (uint8_t)kind;
    memcpy(channel->name, name.at, name.len);
    list_push(&channels->buckets[channel->slot % CHANNELS_BUCKETS], &channel->in_bucket);
    channels->bytes += bytes;
    ++*channels_count_of(channels, kind);
    channels->n_orphans += kind == CHANNEL_SHARD && tap == NULL;
    return true;
}

void channels_move(struct channels *channels, struct channel *channel, const void *tap)
{
    if (channel->kind == CHANNEL_SHARD)
        channels->n_orphans = channels->n_orphans + (tap == NULL) - (channel->tap == NULL);
    channel->tap = tap;
    channel->is_asked = false;
}

void channels_drop(struct channels *channels, struct channel *channel)
{
    channels_move(channels, channel, channels);
    --*channels_count_of(channels, (enum channel_kind)channel->kind);
    channels->bytes -= sizeof *channel + channel->len;
    list_take(&channel->in_bucket);
    free(channel);
}

struct channel *channels_next(const struct channels *channels, enum channel_kind kind,
                              const struct channel *channel)
{
    unsigned i = channel != NULL ? channel->slot % CHANNELS_BUCKETS : 0;
    const struct list *at = channel != NULL ? channel->in_bucket.next : channels->buckets[0].next;
    for (;;) {
        for (; at != &channels->buckets[i]; at = at->next)
            if (channel_at((struct list *)(uintptr_t)at)->kind == kind)
                return channel_at((struct list *)(uintptr_t)at);
        if (++i == CHANNELS_BUCKETS)
            return NULL;
        at = channels->buckets[i].next;
    }
}

void channels_drop_all(struct channels *channels, enum channel_kind kind)
{
    struct channel *channel;
    while ((channel = channels_next(channels, kind, NULL)) != NULL)
        channels_drop(channels, channel);
}

void channels_orphan(struct channels *channels, const void *tap)
{
    struct channel *channel = NULL;
    while ((channel = channels_next(channels, CHANNEL_SHARD, channel)) != NULL)
        if (channel->tap == tap)
            channels_move(channels, channel, NULL);
}

void channels_fini(struct channels *channels)
{
    channels_drop_all(channels, CHANNEL_SHARD);
    channels_drop_all(channels, CHANNEL_EXACT);
    channels_drop_all(channels, CHANNEL_PATTERN);
}

/* ---- confirmations ---- */

struct reader {
    const char *at;
    const char *end;
};

/* Reads a line that begins with `type`. *text is the part between that byte and CRLF. */
static bool confirmation_read_line(struct reader *reader, char type, struct slice *text)
{
    const char *cr = reader->at < reader->end && *reader->at == type
                         ? memchr(reader->at, '\r', (size_t)(reader->end - reader->at))
                         : NULL;
    if (cr == NULL || reader->end - cr < 2 || cr[1] != '\n')
        return false;
    *text = slice_of(reader->at + 1, (size_t)(cr - reader->at) - 1);
    reader->at = cr + 2;
    return true;
}

static bool confirmation_read_number(struct reader *reader, char type, int64_t *number)
{
    struct slice text;
    return confirmation_read_line(reader, type, &text) && num_parse(text, number);
}

/* Reads a bulk or nil. *has is false for nil. */
static bool read_bulk(struct reader *reader, struct slice *bulk, bool *has)
{
    int64_t len;
    struct slice rest;
    *bulk = slice_of("", 0);
    *has = false;
    if (confirmation_read_line(reader, '_', &rest))
        return rest.len == 0;
    if (!confirmation_read_number(reader, '$', &len))
        return false;
    if (len == -1)
        return true;
    if (len < 0 || reader->end - reader->at < 2 || len > reader->end - reader->at - 2)
        return false;
    *bulk = slice_of(reader->at, (size_t)len);
    *has = true;
    reader->at += len + 2;
    return reader->at[-2] == '\r' && reader->at[-1] == '\n';
}

bool confirmation_read(struct slice frame, struct confirmation *out)
{
    struct reader reader = {frame.at, frame.at + frame.len};
    int64_t n;
    bool has_word;
    bool is_list =
        confirmation_read_number(&reader, '*', &n) || confirmation_read_number(&reader, '>', &n);
    if (!is_list || n != 3 || !read_bulk(&reader, &out->word, &has_word) || !has_word ||
        !read_bulk(&reader, &out->channel, &out->has_channel))
        return false;
    out->count_at = (size_t)(reader.at - frame.at);
    return confirmation_read_number(&reader, ':', &out->count) && reader.at == reader.end;
}
