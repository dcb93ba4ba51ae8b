/*
 * A circuit breaker in front of one node. The functions say when a call has timed out, when later
 * calls fail at once, and when a new connection is tried. Time is an argument.
 *
 * A call without an answer within upstream-timeout opens the circuit. While the circuit is open,
 * calls are answered without the node. Probes try to reach the node, whether or not calls arrive.
 * An answer closes the circuit.
 */
#ifndef WEIR_QUOTA_CIRCUIT_H
#define WEIR_QUOTA_CIRCUIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* chosen: more frequent tries do not help a node that refuses */
#define CIRCUIT_AGAIN_NS (500 * NS_PER_MS)

/* Zeroed: closed, without a failure. */
struct circuit {
    uint64_t failed_ns; /* when a connection was refused or failed; 0: not since the last answer */
    bool is_open;       /* a call has timed out, and no answer has arrived since */
};

/* Returns when a call of time asked_ns times out. timeout_ns 0: UINT64_MAX, never. */
static inline uint64_t circuit_due_ns(uint64_t asked_ns, uint64_t timeout_ns)
{
    return timeout_ns > 0 ? asked_ns + timeout_ns : UINT64_MAX;
}

/* A connection was refused, or could not be made. */
static inline void circuit_fail(struct circuit *circuit, uint64_t now_ns)
{
    circuit->failed_ns = now_ns;
}

/* A call has timed out. */
static inline void circuit_open(struct circuit *circuit)
{
    circuit->is_open = true;
}

/* The node has answered. */
static inline void circuit_close(struct circuit *circuit)
{
    *circuit = (struct circuit){0};
}

/* True if a new connection may be tried. */
static inline bool circuit_may_try(const struct circuit *circuit, uint64_t now_ns)
{
    return circuit->failed_ns == 0 || now_ns >= circuit->failed_ns + CIRCUIT_AGAIN_NS;
}

/* Returns when the next probe is due after a probe at now_ns; UINT64_MAX: the circuit is closed. */
static inline uint64_t circuit_probe_ns(const struct circuit *circuit, uint64_t now_ns)
{
    if (!circuit->is_open)
        return UINT64_MAX;
    return (circuit_may_try(circuit, now_ns) ? now_ns : circuit->failed_ns) + CIRCUIT_AGAIN_NS;
}

#endif
