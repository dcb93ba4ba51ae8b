#include "limit/command/slot_split.h"

#include <stdlib.h>

#include "limit/command/slot.h"
#include "resp/argv.h"

#define SMALL_PARTS 16 /* of so few the one of a slot is looked for one by one */

/* Where arguments begin that are keys: header, bytes, line end. */
static struct slice whole_argument(const struct argv_walk *before, const struct argv_walk *behind)
{
    return slice_of(before->at, (size_t)(behind->at - before->at));
}

static uint32_t new_part(struct slot_split *split, uint16_t slot)
{
    split->parts[split->n_parts] = (struct slot_split_part){SLOT_SPLIT_END, SLOT_SPLIT_END, 0, slot};
    return split->n_parts++;
}

/* By `by_slot`, one more than the part of each slot, once there are more than a few parts. NULL: not yet. */
static uint32_t part_of(struct slot_split *split, uint32_t *by_slot, uint16_t slot)
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
    uint32_t part = part_of(split, by_slot, slot_of(key));
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

/* Keys and values, in order. The request is whole: no argument is missing. */
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

bool slot_split_init(struct slot_split *split, const struct command *command, struct slice request, uint32_t argc)
{
    uint32_t per_key = slot_split_args(command);
    uint32_t n_keys = (argc - 1) / per_key;
    struct argv_walk walk;
    struct slice name;
    argv_walk_init(&walk, request);
    struct argv_walk before = walk;
    if (!argv_next(&walk, &name))
        return false;
    *split = (struct slot_split){
        .request = request, .name = whole_argument(&before, &walk), .args_per_key = (uint8_t)per_key};
    split->keys = malloc(n_keys * sizeof *split->keys);
    split->parts = malloc((n_keys < SLOT_COUNT ? n_keys : SLOT_COUNT) * sizeof *split->parts);
    uint32_t *by_slot = n_keys > SMALL_PARTS ? calloc(SLOT_COUNT, sizeof *by_slot) : NULL;
    bool is_there = split->keys != NULL && split->parts != NULL && (n_keys <= SMALL_PARTS || by_slot != NULL);
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
    for (uint32_t key = split->parts[part].first; key != SLOT_SPLIT_END; key = split->keys[key].next)
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
