#include "front/client/facts.h"

#include "front/client/session.h"

/* What was known when it came, and nothing it says can change. */
struct facts facts_on_arrival(const struct client *client)
{
    struct facts facts = {.tls = link_tls_name(&client->link), .ip = client->link.peer.ip};
    facts.listener = slice_str(client_entrance(client)->listener);
    return facts;
}

struct facts facts_of(const struct client *client)
{
    struct facts facts = facts_on_arrival(client);
    facts.user = session_user(client);
    facts.name = session_name(client);
    return facts;
}
