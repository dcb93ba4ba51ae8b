#include "upstream/witness.h"

#include "upstream/shared.h"

static bool can_tell(struct lane *lane, const struct lane *of)
{
    return lane != of && lane->user != NULL && lane->user == of->user && !lane->is_parted && !lane_is_congested(lane) &&
           !shared_is_sluggish(lane);
}

static struct lane *find(const struct lanes *lanes, enum lane_list in, const struct lane *of, const struct proof *proof,
                         const struct login *login)
{
    const struct list *list = &lanes->lists[in];
    for (struct list *at = list->next; at != list; at = at->next)
        if (can_tell(lanes_at(at), of) && witness_suits_by(&lanes_at(at)->let_in, proof, login))
            return lanes_at(at);
    return NULL;
}

bool witness_ask(struct lane *lane, const struct proof *proof, const struct login *login)
{
    static const enum lane_list lists[] = {LIST_SHARED, LIST_RETIRED};
    if (lane->witness != NULL)
        return true;
    struct lane *witness = NULL;
    for (size_t i = 0; witness == NULL && i < sizeof lists / sizeof lists[0]; i++)
        witness = find(lanes_of(lane), lists[i], lane, proof, login);
    if (witness == NULL || !lane_ask(witness, &lane->witness_call))
        return false;
    lane->witness = witness;
    return true;
}

/* The question is over of all lanes that asked this one, or only of those whose question is that call. */
static void end(struct lane *witness, const uint32_t *call)
{
    const struct lanes *lanes = lanes_of(witness);
    for (int in = LIST_SHARED; in <= LIST_IDLE; in++)
        for (struct list *at = lanes->lists[in].next; at != &lanes->lists[in]; at = at->next) {
            struct lane *lane = lanes_at(at);
            if (lane->witness != witness || (call != NULL && lane->witness_call != *call))
                continue;
            lane->witness = NULL;
            if (call != NULL)
                lane_login_set(&lane->vouched, witness->let_in.by, witness->let_in.number);
            lane_wake_waiting(lane);
        }
}

void witness_answered(struct lane *lane)
{
    end(lane, &lane->calls.head);
}

void witness_lost(struct lane *lane)
{
    end(lane, NULL);
}
