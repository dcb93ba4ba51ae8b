/*
 * The last commands that took long, for LIMIT SLOWLOG: their names and where the time went; no keys and no values.
 *
 * Any thread; a mutex inside, held while an entry is copied. Memory is bounded by the number of entries kept.
 */
#ifndef WEIR_LIMIT_SLOWLOG_H
#define WEIR_LIMIT_SLOWLOG_H

#include <stddef.h>
#include <stdint.h>

#include "limit/command/command.h"

#define SLOWLOG_MOST 10000 /* entries that can be kept: 3 MB */
#define SLOWLOG_ADDRESS_MAX 127
#define SLOWLOG_NAME_MAX 63    /* of a client's name */
#define SLOWLOG_OFF UINT64_MAX /* as a threshold: nothing is slow */

struct slowlog;

struct slow_entry {
    uint64_t id; /* 0, 1, 2 ..., also across slowlog_reset */
    uint64_t unix_ms;
    uint64_t total_us;    /* without what limits made it wait */
    uint64_t waited_us;   /* what limits made it wait, besides */
    uint64_t upstream_us; /* the part of total_us between sending to Redis and the reply */
    uint64_t share_us;    /* the part of it that it waited for its share */
    uint32_t argc;        /* the command's name included */
    uint16_t waits;       /* set of reasons for which the command waited in weir; the reader knows their names */
    char command[COMMAND_NAME_MAX + 1];
    char address[SLOWLOG_ADDRESS_MAX + 1];
    char client[SLOWLOG_NAME_MAX + 1];  /* CLIENT SETNAME; "": none */
    char node[SLOWLOG_ADDRESS_MAX + 1]; /* of the upstream, which has answered; "": none, or several */
};

/* With room for no entries yet. Never fails: out of memory ends the process. */
struct slowlog *slowlog_new(void);
void slowlog_free(struct slowlog *slowlog);

/* Keep the newest `most` entries from now on, at most SLOWLOG_MOST. Out of memory: the number stays as it was. */
void slowlog_keep(struct slowlog *slowlog, size_t most);

/* Keep a copy of the entry; its id is set here. */
void slowlog_add(struct slowlog *slowlog, const struct slow_entry *entry);

/* Copy the newest entries, newest first, at most `max`; returns how many. */
size_t slowlog_last(struct slowlog *slowlog, struct slow_entry *out, size_t max);

size_t slowlog_length(struct slowlog *slowlog);
void slowlog_reset(struct slowlog *slowlog);

#endif
