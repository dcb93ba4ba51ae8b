/*
 * What an operator should know of: one line to the log, and the same to the journal.
 */
#ifndef WEIR_RUN_LOG_EVENT_H
#define WEIR_RUN_LOG_EVENT_H

#include "base/log.h"
#include "limit/journal.h"

/* `kind` is the journal's word for it; printf's format. */
__attribute__((format(printf, 4, 5))) void log_event(struct journal *journal, enum log_level level, const char *kind,
                                                     const char *format, ...);

#endif
