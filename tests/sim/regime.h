/*
 * Which configuration weir has: that of its start, another configuration since a reload, or a
 * configuration with a line set by an operator. From the change until every worker has run an
 * iteration, either the old or the new configuration may be in force. Afterwards only the new
 * configuration is in force.
 */
#ifndef WEIR_SIM_REGIME_H
#define WEIR_SIM_REGIME_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/limits.h"

#define CONFIG_PATH "/proc/self/fd/900"

/* Creates the configuration files. */
void regime_start(void);

/*
 * Writes another file, chosen by `pick`, and sends SIGHUP. Some files are invalid. Does nothing
 * while a change is under way.
 */
void regime_reload(uint64_t pick);

/* Writes the current password of Redis to its file; sometimes sends SIGHUP. */
void regime_write_password(void);

/* True if weir has had time before since_ns to find out the password of Redis. */
bool regime_is_password_known(uint64_t since_ns);

/*
 * An operator sends a command that makes these the limits. False: a change is under way, so the
 * command must not be sent.
 */
__attribute__((warn_unused_result)) bool regime_order(const struct planned_limits *to);

/*
 * filed: the limits in the file, without later commands. limits: the limits in force, apart from a
 * change under way.
 */
const struct planned_limits *regime_filed(void);
const struct planned_limits *regime_limits(void);

/* True if the file is valid. */
bool regime_is_filed(void);

/* True if the file has been valid since since_ns. Else weir may have read an invalid file. */
bool regime_was_filed(uint64_t since_ns);

/* The operator's command was carried out everywhere; or was refused; or its reply was lost. */
void regime_order_done(void);
void regime_order_refused(void);
void regime_order_lost(void);

/* weir has logged that it could not read the configuration: out of memory, or an invalid file. */
void regime_reload_refused(void);

/* weir has logged a reload: every worker must have the configuration. */
void regime_reload_told(void);

/* Called after every step of the world. */
void regime_look(void);

/* True if the line is in every configuration that may be in force. */
bool regime_says(const char *line);

/* True if the line has been in every configuration that may have been in force since since_ns. */
bool regime_says_since(const char *line, uint64_t since_ns);

/* True if the line is in any configuration of the run. */
bool regime_may_say(const char *line);

#endif
