/*
 * Whether a node still answers, and how fast: a state machine over the times of probes and answers.
 * Time is an argument.
 *
 * The owner probes on a permanent connection (control.h), and calls pulse_tick once in every
 * period. One probe is in flight at a time. A node is silent after three periods without an answer,
 * and well after one answer. During CLIENT PAUSE Redis is up but does not answer: only a second
 * connection can show that Redis is up (heartbeat.h).
 */
#ifndef WEIR_UPSTREAM_PULSE_H
#define WEIR_UPSTREAM_PULSE_H

#include <stdbool.h>
#include <stdint.h>

#define PULSE_MISSES 3 /* chosen: periods without an answer until the node is silent */
#define PULSE_DOUBTS 2 /* chosen: periods without an answer until a second look */

enum pulse_state {
    PULSE_WELL,
    PULSE_BUSY,   /* answers, but runs a script, and no other command meanwhile */
    PULSE_HELD,   /* up, but commands are paused */
    PULSE_SILENT, /* does not answer */
};

/* The action for the caller. */
enum pulse_act {
    PULSE_WAIT,
    PULSE_ASK,
    PULSE_LOOK, /* open a second connection, unless one is in progress */
};

/* Zeroed: well, and no probe in flight. */
struct pulse {
    uint64_t asked_ns; /* when the unanswered probe was sent; 0: no probe is in flight */
    uint8_t misses;    /* periods ended since asked_ns, or since a second look found the node up */
    uint8_t state;     /* enum pulse_state */
};

/* A period is over. After PULSE_ASK the probe counts as sent. */
__attribute__((warn_unused_result)) enum pulse_act pulse_tick(struct pulse *pulse, uint64_t now_ns);

/* The answer has arrived. */
void pulse_answer(struct pulse *pulse, bool is_busy);

/* The node has answered a second connection with a reply that it gives even while paused. */
void pulse_look(struct pulse *pulse);

/* How long the probe in flight has been unanswered; 0: no probe is in flight. */
uint64_t pulse_silence_ns(const struct pulse *pulse, uint64_t now_ns);

#endif
