#include "upstream/lane/weir_lane.h"

void weir_lane_init(struct weir_lane *base, struct lanes *lanes, const struct rider_ops *rider_ops,
                    const struct link_ops *link_ops)
{
    base->lanes = lanes;
    base->rider.ops = rider_ops;
    list_init(&base->rider.waiting);
    link_init_hollow(&base->hollow, lanes_loop(lanes), link_ops);
}

bool weir_lane_open(struct weir_lane *base, struct login *login, enum lane_role role)
{
    const struct lane_key key = {.protocol = 2, .login = login, .epoch = node_epoch(lanes_node(base->lanes))};
    base->is_open = lanes_open_for_weir(base->lanes, &key, role, &base->rider) != NULL;
    return base->is_open;
}

void weir_lane_lost(struct weir_lane *base)
{
    base->is_open = false;
    base->rider.lane = NULL;
    base->rider.in_flight = 0;
}

void weir_lane_close(struct weir_lane *base)
{
    list_take(&base->rider.waiting);
    if (base->rider.lane != NULL)
        lane_forget(base->rider.lane, &base->rider);
    weir_lane_lost(base);
}

void weir_lane_fini(struct weir_lane *base)
{
    weir_lane_close(base);
    list_take(&base->hollow.woken);
}
