/*
 * Events that an operator should know of: written to the log, and to the journal (LIMIT LOG).
 */
#ifndef WEIR_RUN_LOG_EVENT_H
#define WEIR_RUN_LOG_EVENT_H

#include "base/log.h"
#include "limit/journal.h"

/* `kind` is one word, for the journal; printf's format. */
__attribute__((format(printf, 4, 5))) void log_event(struct journal *journal, enum log_level level, const char *kind,
                                                     const char *format, ...);

#endif
