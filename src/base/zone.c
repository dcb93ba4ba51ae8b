/*
 * Reads TZif: a header and a block of data with 4-byte times; from version 2 on a second header and block with 8-byte
 * times, and a footer line with the rule for later (base/zone_rule.h). The last block counts.
 */
#include "base/zone.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/why.h"
#include "base/zone_rule.h"

#define HEADER_BYTES 44
#define TYPE_BYTES 6
#define TIMES_MAX 10000
#define OFFSET_MOST_S (26 * 3600) /* RFC 9636: the largest offsets from UTC */

struct turn {
    int64_t at_s;
    int32_t offset_s; /* from then on */
};

struct zone {
    _Atomic unsigned holders;
    uint64_t id;
    char name[ZONE_NAME_MAX + 1];
    int32_t first_s; /* offset before the first turn */
    bool has_rule;   /* behind the last turn */
    struct zone_rule rule;
    size_t n;
    struct turn turns[]; /* in their order */
};

/* ---- bytes ---- */

static int64_t number_at(const char *at, size_t size)
{
    uint64_t number = ((unsigned char)at[0] & 0x80) != 0 ? UINT64_MAX : 0;
    for (size_t i = 0; i < size; i++)
        number = number << 8 | (unsigned char)at[i];
    return (int64_t)number;
}

/* The counts in a header, in its order. */
enum { IS_UT, IS_STANDARD, LEAPS, TIMES, TYPES, CHARS, COUNTS };

struct block {
    uint32_t n[COUNTS];
    char version;
    size_t time_bytes;
    const char *data;
    size_t len;
};

static size_t block_bytes(const struct block *block)
{
    return (size_t)block->n[TIMES] * (block->time_bytes + 1) + (size_t)block->n[TYPES] * TYPE_BYTES + block->n[CHARS] +
           (size_t)block->n[LEAPS] * (block->time_bytes + 4) + block->n[IS_STANDARD] + block->n[IS_UT];
}

static bool take_block(struct slice *rest, size_t time_bytes, struct block *block)
{
    static const size_t counts_at = 20;
    if (rest->len < HEADER_BYTES || memcmp(rest->at, "TZif", 4) != 0)
        return false;
    block->version = rest->at[4];
    block->time_bytes = time_bytes;
    for (unsigned i = 0; i < COUNTS; i++) {
        int64_t n = number_at(rest->at + counts_at + 4 * i, 4);
        if (n < 0 || n > TIMES_MAX)
            return false;
        block->n[i] = (uint32_t)n;
    }
    block->data = rest->at + HEADER_BYTES;
    block->len = block_bytes(block);
    if (block->len > rest->len - HEADER_BYTES)
        return false;
    *rest = slice_of(block->data + block->len, rest->len - HEADER_BYTES - block->len);
    return true;
}

/* ---- turns ---- */

static bool read_offset(const struct block *block, unsigned type, int32_t *offset_s)
{
    const char *types = block->data + block->n[TIMES] * (block->time_bytes + 1);
    if (type >= block->n[TYPES])
        return false;
    *offset_s = (int32_t)number_at(types + (size_t)type * TYPE_BYTES, 4);
    return *offset_s >= -OFFSET_MOST_S && *offset_s <= OFFSET_MOST_S;
}

static bool read_turns(struct zone *zone, const struct block *block)
{
    const char *kinds = block->data + block->n[TIMES] * block->time_bytes;
    if (!read_offset(block, 0, &zone->first_s))
        return false;
    zone->n = block->n[TIMES];
    for (size_t i = 0; i < zone->n; i++) {
        struct turn *turn = &zone->turns[i];
        turn->at_s = number_at(block->data + i * block->time_bytes, block->time_bytes);
        if (!read_offset(block, (unsigned char)kinds[i], &turn->offset_s) ||
            (i > 0 && turn->at_s <= zone->turns[i - 1].at_s))
            return false;
    }
    return true;
}

/* "\nCET-1CEST,M3.5.0,M10.5.0/3\n"; nothing between the line ends: there is no rule. */
static bool read_footer(struct zone *zone, struct slice rest)
{
    if (rest.len < 2 || rest.at[0] != '\n')
        return false;
    const char *end = memchr(rest.at + 1, '\n', rest.len - 1);
    if (end == NULL)
        return false;
    struct slice text = slice_of(rest.at + 1, (size_t)(end - rest.at - 1));
    zone->has_rule = text.len > 0;
    return !zone->has_rule || zone_rule_parse(text, &zone->rule);
}

static struct zone *new_zone(struct slice name, size_t n)
{
    static _Atomic uint64_t ids;
    struct zone *zone = mem_zalloc(1, sizeof *zone + n * sizeof zone->turns[0]);
    atomic_init(&zone->holders, 1);
    zone->id = atomic_fetch_add_explicit(&ids, 1, memory_order_relaxed) + 1;
    memcpy(zone->name, name.at, name.len < ZONE_NAME_MAX ? name.len : ZONE_NAME_MAX);
    return zone;
}

struct zone *zone_parse(struct slice name, struct slice tzif, char *why, size_t why_size)
{
    struct block block;
    struct slice rest = tzif;
    bool is_whole = take_block(&rest, 4, &block);
    bool has_footer = is_whole && block.version >= '2';
    if (has_footer)
        is_whole = take_block(&rest, 8, &block);
    if (!is_whole) {
        why_set(why, why_size, "the file of the zone %.*s is no whole TZif file", WHY_SLICE(name));
        return NULL;
    }
    if (block.n[LEAPS] > 0) {
        why_set(why, why_size, "the zone %.*s counts leap seconds, which unix time does not", WHY_SLICE(name));
        return NULL;
    }
    struct zone *zone = new_zone(name, block.n[TIMES]);
    if (!read_turns(zone, &block) || (has_footer && !read_footer(zone, rest))) {
        zone_put(zone);
        why_set(why, why_size, "the file of the zone %.*s is damaged", WHY_SLICE(name));
        return NULL;
    }
    return zone;
}

/* ---- use ---- */

struct zone *zone_get(struct zone *zone)
{
    if (zone != NULL)
        atomic_fetch_add_explicit(&zone->holders, 1, memory_order_relaxed);
    return zone;
}

void zone_put(struct zone *zone)
{
    if (zone != NULL && atomic_fetch_sub_explicit(&zone->holders, 1, memory_order_acq_rel) == 1)
        free(zone);
}

const char *zone_name(const struct zone *zone)
{
    return zone != NULL ? zone->name : "UTC";
}

uint64_t zone_id(const struct zone *zone)
{
    return zone != NULL ? zone->id : 0;
}

/* How many turns there have been by then. */
static size_t turns_until(const struct zone *zone, int64_t unix_s)
{
    size_t low = 0, high = zone->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (zone->turns[middle].at_s <= unix_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t zone_offset(const struct zone *zone, int64_t unix_s, int64_t *until_s)
{
    *until_s = INT64_MAX;
    if (zone == NULL)
        return 0;
    size_t made = turns_until(zone, unix_s);
    if (made == zone->n && zone->has_rule)
        return zone_rule_offset(&zone->rule, unix_s, until_s);
    if (made < zone->n)
        *until_s = zone->turns[made].at_s;
    return made > 0 ? zone->turns[made - 1].offset_s : zone->first_s;
}
