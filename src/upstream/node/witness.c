#include "upstream/node/witness.h"

#include "upstream/lane/shared.h"

static bool can_tell(const struct lane *lane, const struct lane *of)
{
    return lane != of && lane->user != NULL && lane->user == of->user && !lane->is_parted && !lane_is_congested(lane);
}

/* One that is slow to answer, if there is no better: to a client whose password has lapsed its own words are of no use. */
static struct lane *find(const struct lane *of, const struct proof *proof, const struct login *login)
{
    static const enum lane_list lists[] = {LIST_SHARED, LIST_RETIRED};
    struct lane *sluggish = NULL;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const struct list *list = &lanes_of(of)->lists[lists[i]];
        for (struct list *at = list->next; at != list; at = at->next) {
            struct lane *lane = lanes_at(at);
            if (!can_tell(lane, of) || !witness_suits_by(&lane->let_in, proof, login))
                continue;
            if (!shared_is_sluggish(lane))
                return lane;
            sluggish = lane;
        }
    }
    return sluggish;
}

bool witness_is_last(const struct lane *lane)
{
    const struct auth_user *user = lane->user;
    if (user == NULL || user->n_proofs == 0 || user->proven[1] == NULL)
        return false;
    const struct list *list = &lanes_of(lane)->lists[LIST_SHARED];
    for (struct list *at = list->next; at != list; at = at->next)
        if (can_tell(lanes_at(at), lane))
            return false;
    return true;
}

bool witness_ask(struct lane *lane, const struct proof *proof, const struct login *login)
{
    if (lane->witness != NULL)
        return true;
    struct lane *witness = find(lane, proof, login);
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
