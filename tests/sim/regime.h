/*
 * Which configuration weir has: the one of its start, another one since a reload, a line that an operator has set. From the
 * order on until every worker has had its turn either may be in force; then only the new one.
 */
#ifndef WEIR_SIM_REGIME_H
#define WEIR_SIM_REGIME_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/limits.h"

#define CONFIG_PATH "/proc/self/fd/900"

/* The files are there, and weir reads them. */
void regime_start(void);

/* Another file, which `pick` chooses, and SIGHUP. Some are bad. Nothing happens while a change is under way. */
void regime_reload(uint64_t pick);

/* The password that Redis wants now is in its file; SIGHUP follows, or does not. */
void regime_write_password(void);

/* True if weir has had the time to find out which password Redis wants, before this moment. */
bool regime_is_password_known(uint64_t since_ns);

/* An operator has said something that makes these the limits. False: a change is under way, say something else. */
__attribute__((warn_unused_result)) bool regime_order(const struct planned_limits *to);

/* What is in the file, without what was set since; and what is in force but for a change that is under way. */
const struct planned_limits *regime_filed(void);
const struct planned_limits *regime_limits(void);

/* Does the file hold what was read of it last? */
bool regime_is_filed(void);

/* And has it, ever since that moment? Else it may have been read while it was a bad one. */
bool regime_was_filed(uint64_t since_ns);

/* That order was carried out, everywhere; or it was not; or nobody will ever know whether it was. */
void regime_order_done(void);
void regime_order_refused(void);
void regime_order_lost(void);

/* weir has said that it could not read the configuration: out of memory, or a bad one. */
void regime_reload_refused(void);

/* weir has said that it has read the configuration again: every worker has it. */
void regime_reload_told(void);

/* To be asked after every step of the world. */
void regime_look(void);

/* Is this line in every configuration that may be in force? */
bool regime_says(const char *line);

/* And was it, without a break, in all since that moment? */
bool regime_says_since(const char *line, uint64_t since_ns);

/* Is it in any that the run has? */
bool regime_may_say(const char *line);

#endif
