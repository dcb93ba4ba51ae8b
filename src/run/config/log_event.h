/*
 * Events that an operator should know of: written to the log, and to the journal (LIMIT LOG).
 */
#ifndef WEIR_RUN_LOG_EVENT_H
#define WEIR_RUN_LOG_EVENT_H

#include "base/log.h"
#include "front/commands/order.h"
#include "limit/figures/journal.h"

/* `kind` is one word, for the journal; printf's format. */
__attribute__((format(printf, 4, 5))) void log_event(struct journal *journal, enum log_level level, const char *kind,
                                                     const char *format, ...);

/* The same of an order that has been carried out: who gave it stands behind the text. */
__attribute__((format(printf, 4, 5))) void log_order(struct journal *journal, const struct order *order,
                                                     const char *kind, const char *format, ...);

/* `about` and `text`: as journal_add_about has them. */
void log_event_about(struct journal *journal, enum log_level level, const char *kind, const char *about,
                     const char *text);

#endif
