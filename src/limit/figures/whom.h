/*
 * The subjects that limits have stopped lately: names for the log.
 *
 * Problem: how many subjects a limit refuses, and which, is known to each worker for a moment only.
 * Mechanism: a table of fixed size notes each (limit, kind, subject) once. The writer of the log
 * takes all of them out now and then. What does not fit until then is not noted, and that is told.
 * Price: 30 ns for one that is there, 3 ns for the one noted last; 40 KB for one table.
 *
 * A struct whom belongs to one worker, which adds to it; another thread takes: a mutex inside, held briefly.
 */
#ifndef WEIR_LIMIT_WHOM_H
#define WEIR_LIMIT_WHOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define WHOM_ROWS 512
#define WHOM_NAME_MAX 48 /* bytes of a subject's name; longer ones are cut, and end in "..." */

/* What has become of the subject's commands or connections. */
enum whom_kind { WHOM_REFUSED, WHOM_DELAYED, WHOM_SHADOWED, WHOM_KINDS };

struct whom_row {
    uint64_t hash; /* of the subject */
    uint16_t limit;
    uint8_t kind;
    uint8_t name_len;
    char name[WHOM_NAME_MAX];
};

struct whom;

/* Never fails: out of memory ends the process. */
struct whom *whom_new(void);
void whom_free(struct whom *whom);

/* The limit with this id has stopped this subject. `hash` is always the same for a subject, and others' are different. */
void whom_note(struct whom *whom, unsigned limit, enum whom_kind kind, struct slice name, uint64_t hash);

/* Take out all rows, the first noted first, into `rows`, which has WHOM_ROWS; is_cut: there were more than that. */
size_t whom_take(struct whom *whom, struct whom_row *rows, bool *is_cut);

#endif
