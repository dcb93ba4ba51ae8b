#include "front/route/lane_claim.h"

#include <assert.h>

#include "front/client/client.h"
#include "front/client/session.h"

struct room_share lane_claim_share(const struct rider *rider)
{
    return lane_claim_share_of(container_of((struct rider *)(uintptr_t)rider, struct client, rider));
}

struct room_share lane_claim_share_of(const struct client *client)
{
    const struct hash_key key = client->front->settings->share_key;
    char ip[IP_TEXT_MAX];
    const struct ip *peer = &client->link.peer.ip;
    struct slice text = slice_of(ip, peer->family != 0 ? ip_print(peer, ip) : 0);
    return room_share_of(client->subject != NULL ? client->subject->hash : 0, text.len > 0 ? hash_bytes(key, text) : 0);
}

void lane_claim_audit(const struct rider *rider, const struct lane *lane)
{
    const struct client *client = container_of((struct rider *)(uintptr_t)rider, struct client, rider);
    struct lane_key key = session_key(client, lane_node(lane));
    key.is_apart = lane->key.is_apart;
    /* What began in an earlier generation goes on, as in Redis; and a login is weir's own words. */
    bool is_unseen = lane->user == NULL && client_has_own_lane(client) && session_is_proven(client);
    assert(session_is_witnessed(client) || is_unseen || rider->is_sending || client_waits_for(client, WAIT_LOGIN));
    assert(session_suits(client, lane) || rider->is_sending || client_waits_for(client, WAIT_ANSWER | WAIT_LOGIN));
    if (lane->role == LANE_PRIVATE) {
        assert(client_has_own_lane(client));
    } else {
        assert(lane->role == LANE_SHARED && !client_has_own_lane(client));
        assert(login_same_user(lane->key.login, key.login) && (key.login != NULL || lane->key.epoch == key.epoch));
        assert(lane_key_eq(&lane->key, &key) || client_waits_for(client, WAIT_ANSWER | WAIT_LOGIN));
        assert(!lane_key_eq(&lane->key, &key) || client_waits_for(client, WAIT_ANSWER | WAIT_LOGIN) ||
               rider->lane == lane);
    }
}
