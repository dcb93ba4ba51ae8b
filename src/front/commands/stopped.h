/*
 * Whom a limit has refused or delayed, or in shadow mode would have refused: noted by name, for the log.
 */
#ifndef WEIR_FRONT_STOPPED_H
#define WEIR_FRONT_STOPPED_H

#include "front/front.h"
#include "limit/ask.h"

/* The limit is of this account's policy. */
static inline void stopped_note(struct front *front, const struct account *account, const struct limit *limit,
                                enum whom_kind kind)
{
    const struct subject *subject = account->holders[PER_SUBJECT];
    whom_note(front->whom, limit->id, kind, subject_name(subject), subject->hash);
}

#endif
