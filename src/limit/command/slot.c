#include "limit/command/slot.h"

#include <stdlib.h>
#include <string.h>

#include "resp/argv.h"

/*
 * remainders[k][byte]: the remainder of the byte followed by 2 + k zero bytes, by the polynomial
 * 0x1021. Four bytes take four independent look-ups. The remainder of a byte is the sum of the
 * remainders of its bits, x^(16 + 8k) and up.
 */
#define BIT(byte, i, remainder) ((byte) >> (i)&1 ? (remainder) : 0)
#define SUM(b, r0, r1, r2, r3, r4, r5, r6, r7)                                                     \
    (BIT(b, 0, r0) ^ BIT(b, 1, r1) ^ BIT(b, 2, r2) ^ BIT(b, 3, r3) ^ BIT(b, 4, r4) ^               \
     BIT(b, 5, r5) ^ BIT(b, 6, r6) ^ BIT(b, 7, r7))
#define OF_4(b, ...)                                                                               \
    SUM(b, __VA_ARGS__), SUM((b) + 1, __VA_ARGS__), SUM((b) + 2, __VA_ARGS__),                     \
        SUM((b) + 3, __VA_ARGS__)
#define OF_16(b, ...)                                                                              \
    OF_4(b, __VA_ARGS__), OF_4((b) + 4, __VA_ARGS__), OF_4((b) + 8, __VA_ARGS__),                  \
        OF_4((b) + 12, __VA_ARGS__)
#define OF_64(b, ...)                                                                              \
    OF_16(b, __VA_ARGS__), OF_16((b) + 16, __VA_ARGS__), OF_16((b) + 32, __VA_ARGS__),             \
        OF_16((b) + 48, __VA_ARGS__)
#define OF_256(...)                                                                                \
    OF_64(0, __VA_ARGS__), OF_64(64, __VA_ARGS__), OF_64(128, __VA_ARGS__), OF_64(192, __VA_ARGS__)

static const uint16_t remainders[4][256] = {
    {OF_256(0x1021, 0x2042, 0x4084, 0x8108, 0x1231, 0x2462, 0x48c4, 0x9188)},
    {OF_256(0x3331, 0x6662, 0xccc4, 0x89a9, 0x0373, 0x06e6, 0x0dcc, 0x1b98)},
    {OF_256(0x3730, 0x6e60, 0xdcc0, 0xa9a1, 0x4363, 0x86c6, 0x1dad, 0x3b5a)},
    {OF_256(0x76b4, 0xed68, 0xcaf1, 0x85c3, 0x1ba7, 0x374e, 0x6e9c, 0xdd38)},
};

static uint16_t crc16(struct slice bytes)
{
    const unsigned char *at = (const unsigned char *)bytes.at, *end = at + bytes.len;
    unsigned crc = 0;
    for (; end - at >= 4; at += 4)
        crc = remainders[3][crc >> 8 ^ at[0]] ^ remainders[2][(crc & 0xff) ^ at[1]] ^
              remainders[1][at[2]] ^ remainders[0][at[3]];
    for (; at < end; at++)
        crc = (crc << 8 & 0xffff) ^ remainders[0][crc >> 8 ^ *at];
    return (uint16_t)crc;
}

static struct slice hashed_part(struct slice key)
{
    const char *open = key.len > 0 ? memchr(key.at, '{', key.len) : NULL;
    if (open == NULL)
        return key;
    const char *tag = open + 1;
    const char *close = memchr(tag, '}', key.len - (size_t)(tag - key.at));
    return close != NULL && close > tag ? slice_of(tag, (size_t)(close - tag)) : key;
}

uint16_t slot_of(struct slice key)
{
    return crc16(hashed_part(key)) % SLOT_COUNT;
}

/* ---- slot split ---- */

#define SMALL_PARTS 16 /* with at most this many keys, parts are searched one by one */

/* The bytes of the arguments between the two walks: headers, texts, line ends. */
static struct slice whole_argument(const struct argv_walk *before, const struct argv_walk *behind)
{
    return slice_of(before->at, (size_t)(behind->at - before->at));
}

static uint32_t new_part(struct slot_split *split, uint16_t slot)
{
    split->parts[split->n_parts] =
        (struct slot_split_part){SLOT_SPLIT_END, SLOT_SPLIT_END, 0, slot};
    return split->n_parts++;
}

/*
 * Finds or makes the part of the slot. With many keys by_slot holds 1 + the part of each slot. If
 * by_slot is NULL, the parts are searched one by one.
 */
static uint32_t slot_part_of(struct slot_split *split, uint32_t *by_slot, uint16_t slot)
{
    if (by_slot != NULL) {
        if (by_slot[slot] == 0)
            by_slot[slot] = new_part(split, slot) + 1;
        return by_slot[slot] - 1;
    }
    for (uint32_t i = 0; i < split->n_parts; i++)
        if (split->parts[i].slot == slot)
            return i;
    return new_part(split, slot);
}

static void add_key(struct slot_split *split, uint32_t *by_slot, struct slice all, struct slice key)
{
    const char *begin = split->request.at;
    uint32_t part = slot_part_of(split, by_slot, slot_of(key));
    struct slot_split_part *in = &split->parts[part];
    uint32_t at = split->n_keys++;
    split->keys[at] = (struct slot_split_key){(uint32_t)(all.at - begin),
                                              (uint32_t)all.len,
                                              (uint32_t)(key.at - begin),
                                              (uint32_t)key.len,
                                              part,
                                              in->n_keys++,
                                              SLOT_SPLIT_END};
    if (in->first == SLOT_SPLIT_END)
        in->first = at;
    else
        split->keys[in->last].next = at;
    in->last = at;
}

/* Takes keys and values in order. The request is whole: no argument is missing. */
static void take_keys(struct slot_split *split, uint32_t *by_slot, struct argv_walk walk)
{
    struct slice key;
    struct slice value;
    for (;;) {
        struct argv_walk before = walk;
        if (!argv_next(&walk, &key) || (split->args_per_key == 2 && !argv_next(&walk, &value)))
            return;
        add_key(split, by_slot, whole_argument(&before, &walk), key);
    }
}

uint32_t slot_split_args(const struct command *command)
{
    return command->key_step == 2 ? 2 : 1;
}

bool slot_split_fits(const struct command *command, uint32_t argc)
{
    return argc > 1 && (argc - 1) % slot_split_args(command) == 0;
}

bool slot_split_init(struct slot_split *split, const struct command *command, struct slice request,
                     uint32_t argc)
{
    uint32_t per_key = slot_split_args(command);
    uint32_t n_keys = (argc - 1) / per_key;
    struct argv_walk walk;
    struct slice name;
    argv_walk_init(&walk, request);
    struct argv_walk before = walk;
    if (!argv_next(&walk, &name))
        return false;
    *split = (struct slot_split){.request = request,
                                 .name = whole_argument(&before, &walk),
                                 .args_per_key = (uint8_t)per_key};
    split->keys = malloc(n_keys * sizeof *split->keys);
    split->parts = malloc((n_keys < SLOT_COUNT ? n_keys : SLOT_COUNT) * sizeof *split->parts);
    uint32_t *by_slot = n_keys > SMALL_PARTS ? calloc(SLOT_COUNT, sizeof *by_slot) : NULL;
    bool is_there =
        split->keys != NULL && split->parts != NULL && (n_keys <= SMALL_PARTS || by_slot != NULL);
    if (is_there)
        take_keys(split, by_slot, walk);
    else
        slot_split_fini(split);
    free(by_slot);
    return is_there;
}

void slot_split_fini(struct slot_split *split)
{
    free(split->keys);
    free(split->parts);
    *split = (struct slot_split){0};
}

static struct slice key_bytes(const struct slot_split *split, uint32_t key)
{
    return slice_of(split->request.at + split->keys[key].off, split->keys[key].len);
}

static void put_head(const struct slot_split *split, uint32_t n_keys, struct build *out)
{
    build_array(out, 1 + (size_t)n_keys * split->args_per_key);
    build_raw(out, split->name);
}

void slot_split_put_part(const struct slot_split *split, uint32_t part, struct build *out)
{
    put_head(split, split->parts[part].n_keys, out);
    for (uint32_t key = split->parts[part].first; key != SLOT_SPLIT_END;
         key = split->keys[key].next)
        build_raw(out, key_bytes(split, key));
}

void slot_split_put_key(const struct slot_split *split, uint32_t key, struct build *out)
{
    put_head(split, 1, out);
    build_raw(out, key_bytes(split, key));
}

static struct slice key_text(const struct slot_split *split, uint32_t key)
{
    return slice_of(split->request.at + split->keys[key].key_off, split->keys[key].key_len);
}

bool slot_split_is_overwritten(const struct slot_split *split, uint32_t key)
{
    for (uint32_t at = split->keys[key].next; at != SLOT_SPLIT_END; at = split->keys[at].next)
        if (slice_eq(key_text(split, at), key_text(split, key)))
            return true;
    return false;
}
