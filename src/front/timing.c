#include "front/timing.h"

static void note(struct client *client, const struct timed *timed)
{
    struct front *front = client->front;
    answered_add(&front->answered, &front->counts.times, timed);
}

void timing_answered(struct rider *rider, const struct call *call, uint32_t n)
{
    struct client *client = container_of(rider, struct client, rider);
    const struct timed timed = {
        .arrived_ns = call->arrived_ns,
        /* What is large is written at once, and the answer may be here before anything else is. */
        .sent_ns = call->sent_ns != 0 ? call->sent_ns : call->arrived_ns + call->waited_us * NS_PER_US,
        .answered_ns = client->front->loop->now_ns,
        .waited_us = call->waited_us,
        .n = n,
    };
    note(client, &timed);
}

void timing_local(struct client *client, uint32_t tag)
{
    (void)tag;
    const struct timed timed = {
        .arrived_ns = client->rider.arrived_ns,
        .answered_ns = client->front->loop->now_ns,
        .waited_us = client->rider.waited_us,
        .n = 1,
    };
    note(client, &timed);
}

void timing_decided(struct client *client, const struct quota_call *call)
{
    const struct timed timed = {
        .arrived_ns = call->arrived_ns,
        .sent_ns = call->arrived_ns + call->waited_us * NS_PER_US,
        .answered_ns = client->front->loop->now_ns,
        .waited_us = call->waited_us,
        .n = 1,
    };
    if (call->arrived_ns != 0)
        note(client, &timed);
}
