#include "run/commands/order_info.h"

#include "admin/info.h"

void order_info(struct order *order, const struct census *census)
{
    struct snapshot *snapshot = census_look(census);
    order->is_starved = snapshot == NULL;
    if (snapshot == NULL)
        return;
    struct text text = {0};
    info_write(&text, snapshot, order->what != NULL ? slice_str(order->what) : SLICE(""));
    order->is_starved = text.is_broken;
    order->text = text.at;
    order->text_len = text.len;
    snapshot_put(snapshot);
}
