#include "front/cluster/catalog.h"

#include "front/cluster/gather.h"
#include "front/client/session.h"
#include "quota/splice.h"

void catalog_ask(struct client *client, struct slice request)
{
    client_wait(client, WAIT_ANSWER);
    gather_begin(client, request);
}

static void pass_on(struct client *client, struct slice bytes)
{
    size_t before = gathered_before(client);
    struct slice reply = slice_of(bytes.at + before, bytes.len - before);
    struct build spliced;
    build_init(&spliced, session_protocol(client) == 3);
    if (splice_command(gather_request(client), reply, client->front->rules->cell != QUOTA_CELL_OFF, &spliced)) {
        if (before > 0)
            client_output(client, bytes.at, before);
        client_output(client, spliced.at, spliced.len);
        gather_drop(client);
    } else {
        gather_release(client);
    }
    build_fini(&spliced);
}

void catalog_answered(struct client *client)
{
    struct slice bytes = gathered(client);
    if (bytes.len > 0)
        pass_on(client, bytes);
    else
        gather_drop(client);
    client_resume(client, WAIT_ANSWER);
}
