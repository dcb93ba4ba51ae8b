/*
 * What a command with keys in several slots of a Redis Cluster becomes, as the configuration says. Any thread.
 */
#ifndef WEIR_UPSTREAM_CROSS_SLOT_H
#define WEIR_UPSTREAM_CROSS_SLOT_H

enum cross_slot {
    CROSS_SLOT_SPLIT,     /* MGET, DEL, UNLINK, EXISTS, TOUCH: one part for each slot; others: -CROSSSLOT */
    CROSS_SLOT_SPLIT_ALL, /* MSET too, which is not atomic then */
    CROSS_SLOT_REFUSE,    /* -CROSSSLOT, as Redis Cluster */
};

#endif
