#include "front/client/held_up.h"

void held_up_end(struct client *client)
{
    struct front *front = client->front;
    struct subject *subject = client->subject;
    uint64_t now_ns = front->loop->now_ns;
    uint64_t waited_ns = now_ns > client->rider.arrived_ns ? now_ns - client->rider.arrived_ns : 0;
    uint64_t waited_us = waited_ns / NS_PER_US;
    front->nodes.commons.share_us = waited_us < UINT32_MAX ? (uint32_t)waited_us : UINT32_MAX;
    histo_add(&front->counts.times.share, waited_ns, 1);
    if (subject == NULL)
        return;
    const uint64_t amounts[TOP_BY_COUNT] = {[TOP_SHARE] = waited_us};
    subject_count_share_wait(subject, waited_us);
    top_add_each(front->top, slice_str(subject->record->name), subject_name(subject), subject->hash, amounts,
                 TOP_NO_LIMIT, now_ns);
}
