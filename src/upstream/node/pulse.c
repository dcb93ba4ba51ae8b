#include "upstream/node/pulse.h"

enum pulse_act pulse_tick(struct pulse *pulse, uint64_t now_ns)
{
    if (pulse->asked_ns == 0) {
        pulse->asked_ns = now_ns;
        pulse->misses = 0;
        return PULSE_ASK;
    }
    if (pulse->misses < PULSE_MISSES)
        pulse->misses++;
    if (pulse->misses >= PULSE_MISSES)
        pulse->state = PULSE_SILENT;
    return pulse->misses >= PULSE_DOUBTS ? PULSE_LOOK : PULSE_WAIT;
}

void pulse_answer(struct pulse *pulse, bool is_busy)
{
    pulse->asked_ns = 0;
    pulse->misses = 0;
    pulse->state = is_busy ? PULSE_BUSY : PULSE_WELL;
}

void pulse_look(struct pulse *pulse)
{
    if (pulse->asked_ns == 0)
        return;
    pulse->misses = 0;
    pulse->state = PULSE_HELD;
}

uint64_t pulse_silence_ns(const struct pulse *pulse, uint64_t now_ns)
{
    return pulse->asked_ns != 0 && now_ns > pulse->asked_ns ? now_ns - pulse->asked_ns : 0;
}
