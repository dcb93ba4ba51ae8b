/*
 * The main thread's connections to each node of the topology: a control lane (upstream/control.h), and once clients are
 * served a probe that asks whom Redis takes strangers for (upstream/auth_probe.h).
 */
#ifndef WEIR_RUN_CONTROLS_H
#define WEIR_RUN_CONTROLS_H

#include <stdbool.h>
#include <stddef.h>

#include "upstream/control.h"
#include "upstream/topology.h"

struct controls;

struct controls_ops {
    /* The home node's own command table, which serves for all; the receiver owns the reference. */
    void (*on_table)(void *arg, struct command_table *table);
    /* The first attempt is over for every node, however it went. */
    void (*on_settled)(void *arg);
    /* controls_pulse of a node has changed; the line says how, for people. */
    void (*on_pulse)(void *arg, enum log_level level, const char *line);
};

/* A control lane to each node. The topology, ops and the user outlive it; the password is copied. */
struct controls *controls_open(struct loop *loop, const struct topology *topology,
                               const struct credentials *credentials, const struct controls_ops *ops, void *arg);

/* A probe of each node from now on. */
void controls_probe(struct controls *controls);

/* For when they log in next; copied. */
void controls_set_password(struct controls *controls, const char *password);

/* Has the control lane of this row greeted its node, and not lost it since? */
bool controls_is_up(const struct controls *controls, size_t row);

/* As control_why. */
const char *controls_why(const struct controls *controls, size_t row);

/* As control_is_turned_away. */
bool controls_is_turned_away(const struct controls *controls, size_t row);

/* As control_pulse, control_silence_ns. */
enum pulse_state controls_pulse(const struct controls *controls, size_t row);
uint64_t controls_silence_ns(const struct controls *controls, size_t row, uint64_t now_ns);

/* Asynchronous; frees itself. No callback comes after it. */
void controls_close(struct controls *controls);

#endif
