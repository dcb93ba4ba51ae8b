/*
 * Recent offenders: the subjects that limits have stopped lately, for the log.
 *
 * Problem: each worker knows only for a moment which subjects a limit refuses, and how many.
 * Mechanism: a table of fixed size holds each (limit, kind, subject) once. The writer of the log
 * takes all rows out from time to time. When the table is full, further offenders are dropped, and
 * is_cut reports the drop. Price: 30 ns to note an offender that is in the table, 3 ns for the
 * offender noted last; 40 KB for one table.
 *
 * A struct offenders belongs to one worker, which adds to it. Another thread takes rows: a mutex
 * inside, held briefly.
 */
#ifndef WEIR_LIMIT_OFFENDERS_H
#define WEIR_LIMIT_OFFENDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define OFFENDERS_MAX 512
#define OFFENDER_NAME_MAX 48 /* bytes of a subject's name; longer ones are cut and end in "..." */

/* What happened to the subject's commands or connections. */
enum offender_kind { OFFENDER_REFUSED, OFFENDER_DELAYED, OFFENDER_SHADOWED, OFFENDER_KINDS };

struct offender {
    uint64_t hash; /* of the subject */
    uint16_t limit;
    uint8_t kind;
    uint8_t name_len;
    char name[OFFENDER_NAME_MAX];
};

struct offenders;

/* Aborts the process if memory is out. */
struct offenders *offenders_new(void);
void offenders_free(struct offenders *offenders);

/*
 * Notes that the limit with this id has stopped the subject. A subject always has the same `hash`,
 * and no two subjects have the same `hash`.
 */
void offenders_note(struct offenders *offenders, unsigned limit, enum offender_kind kind,
                    struct slice name, uint64_t hash);

/*
 * Takes out all rows, oldest first, into `rows`, which has OFFENDERS_MAX. is_cut: true if the table
 * had no room for all.
 */
size_t offenders_take(struct offenders *offenders, struct offender *rows, bool *is_cut);

#endif
