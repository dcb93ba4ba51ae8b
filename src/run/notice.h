/*
 * What an operator should know of: one line to the log, and the same to the journal.
 */
#ifndef WEIR_RUN_NOTICE_H
#define WEIR_RUN_NOTICE_H

#include "base/log.h"
#include "limit/journal.h"

/* `kind` is the journal's word for it; printf's format. */
__attribute__((format(printf, 4, 5))) void notice(struct journal *journal, enum log_level level, const char *kind,
                                                  const char *format, ...);

#endif
