/*
 * The last slow commands, for LIMIT SLOWLOG: their names and where their time went; no keys and no
 * values.
 *
 * Any thread; a mutex inside, held while an entry is copied. Memory is bounded by the number of
 * entries kept.
 */
#ifndef WEIR_LIMIT_SLOWLOG_H
#define WEIR_LIMIT_SLOWLOG_H

#include <stddef.h>
#include <stdint.h>

#include "limit/command/command.h"

#define SLOWLOG_MOST 10000 /* largest number of entries: 3 MB */
#define SLOWLOG_ADDRESS_MAX 127
#define SLOWLOG_NAME_MAX 63    /* bytes of a client's name */
#define SLOWLOG_OFF UINT64_MAX /* as a threshold: no command is slow */

struct slowlog;

struct slow_entry {
    uint64_t id; /* 0, 1, 2 ...; continues after slowlog_reset */
    uint64_t unix_ms;
    uint64_t total_us;    /* without the wait for limits */
    uint64_t waited_us;   /* wait for limits, in addition to total_us */
    uint64_t upstream_us; /* the part of total_us from sending to Redis until the reply */
    uint64_t share_us;    /* the part of total_us that was a wait for the fair share */
    uint32_t argc;        /* includes the command's name */
    /* set of reasons why the command waited in weir; the reader knows their names */
    uint16_t waits;
    char command[COMMAND_NAME_MAX + 1];
    char address[SLOWLOG_ADDRESS_MAX + 1];
    char client[SLOWLOG_NAME_MAX + 1];  /* from CLIENT SETNAME; "": none */
    char node[SLOWLOG_ADDRESS_MAX + 1]; /* the upstream node that answered; "": none, or several */
};

/* Makes a log without room for entries. Aborts the process if memory is out. */
struct slowlog *slowlog_new(void);
void slowlog_free(struct slowlog *slowlog);

/*
 * Keeps the newest `most` entries from now on, at most SLOWLOG_MOST. If memory is out the number is
 * unchanged.
 */
void slowlog_keep(struct slowlog *slowlog, size_t most);

/* Keeps a copy of the entry, and gives the copy its id. */
void slowlog_add(struct slowlog *slowlog, const struct slow_entry *entry);

/* Copies the newest entries, newest first, at most `max`. Returns the number copied. */
size_t slowlog_last(struct slowlog *slowlog, struct slow_entry *out, size_t max);

size_t slowlog_length(struct slowlog *slowlog);
void slowlog_reset(struct slowlog *slowlog);

#endif
