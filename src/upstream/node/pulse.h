/*
 * Whether a node still answers, and how soon: what follows from when it was asked, and when it answered. Time is an
 * argument.
 *
 * Its owner asks on a connection that stays (control.h), and calls pulse_tick once in every period. One question is
 * under way at a time. A node is silent after three periods without its answer, and well with one answer. That Redis
 * is there though it does not answer, as CLIENT PAUSE has it, only another connection can tell (heartbeat.h).
 */
#ifndef WEIR_UPSTREAM_PULSE_H
#define WEIR_UPSTREAM_PULSE_H

#include <stdbool.h>
#include <stdint.h>

#define PULSE_MISSES 3 /* periods without an answer: silent */
#define PULSE_DOUBTS 2 /* periods without one: somebody is to look from elsewhere */

enum pulse_state {
    PULSE_WELL,
    PULSE_BUSY,   /* it answers, but runs a script, and nothing else meanwhile */
    PULSE_HELD,   /* it is there, but holds commands back */
    PULSE_SILENT, /* it does not answer */
};

/* What is to be done now. */
enum pulse_act {
    PULSE_WAIT,
    PULSE_ASK,
    PULSE_LOOK, /* from another connection, unless that is under way */
};

/* Zeroed: well, and nothing asked. */
struct pulse {
    uint64_t asked_ns; /* when the question was asked that has no answer yet; 0: none is under way */
    uint8_t misses;    /* periods that have ended since then, or since somebody looked and found it there */
    uint8_t state;     /* enum pulse_state */
};

/* A period is over. After PULSE_ASK the question counts as asked. */
__attribute__((warn_unused_result)) enum pulse_act pulse_tick(struct pulse *pulse, uint64_t now_ns);

/* The answer has come. */
void pulse_answer(struct pulse *pulse, bool is_busy);

/* The node has answered another connection something that it says even when it holds commands back. */
void pulse_look(struct pulse *pulse);

/* How long the question that is under way has had no answer; 0: none is. */
uint64_t pulse_silence_ns(const struct pulse *pulse, uint64_t now_ns);

#endif
