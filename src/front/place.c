#include "front/place.h"

#include <stdlib.h>

struct place *place_get(struct client *client, struct nodes_row *row)
{
    (void)row;
    client_close_starved(client);
    return NULL;
}

enum finding place_find_lane(struct place *place, const struct command *command, struct lane **lane)
{
    (void)place;
    (void)command;
    (void)lane;
    return LANE_NONE;
}

enum err place_lack(const struct place *place)
{
    return lanes_why_none(&place->row->lanes);
}

struct slice place_why_none(const struct place *place)
{
    return place->refusal != NULL ? slice_str(place->refusal) : err_text(place_lack(place));
}

void place_forget_refusal(struct place *place)
{
    free(place->refusal);
    place->refusal = NULL;
    place->was_refused = false;
}
