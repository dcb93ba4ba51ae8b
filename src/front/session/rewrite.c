#include "front/session/rewrite.h"

#include <stdlib.h>

#include "base/num.h"
#include "front/client/session.h"
#include "resp/argv.h"
#include "resp/emit.h"
#include "upstream/lane/owned.h"

#define NOBODYS_ID "9223372036854775807"

/* A shared lane stays what it is: where strangers all are, none of them may ask for another protocol. 0: as before. */
uint8_t rewrite_protocol(const struct lane *lane, const struct hello *hello)
{
    return lane->role == LANE_SHARED && hello->protocol != 0 ? lane->key.protocol : hello->protocol;
}

/* In weir's own words, and without a login: that has been settled. A name is on no lane but its owner's. */
bool rewrite_hello(struct client *client, struct lane *lane, const struct hello *hello)
{
    const bool has_name = hello->has_name && client_has_own_lane(client);
    uint8_t protocol = rewrite_protocol(lane, hello);
    char small[4 * EMIT_HEADER_MAX + 64];
    char *out = has_name ? malloc(sizeof small + hello->name.len) : small; /* a shared lane waits for it for certain */
    if (out == NULL)
        return false;
    const struct slice words[] = {SLICE("HELLO"), protocol == 3 ? SLICE("3") : SLICE("2"), SLICE("SETNAME"),
                                  hello->name};
    size_t n = protocol == 0 ? 1 : has_name ? 4 : 2;
    lane_send(lane, &client->rider, out, emit_array(out, words, n));
    if (out != small)
        free(out);
    return true;
}

/* CLIENT TRACKING on|off {REDIRECT id | PREFIX prefix | word}: which words are ids. */
static bool is_id(const struct slice *words, uint32_t i)
{
    uint32_t at = 3;
    while (at < i) {
        bool is_redirect = slice_is_word(words[at], SLICE("redirect"));
        if (is_redirect && at + 1 == i)
            return true;
        at += is_redirect || slice_is_word(words[at], SLICE("prefix")) ? 2 : 1;
    }
    return false;
}

/* Nobody points at another's lane: an id that is none of his own application's becomes one that nobody has. */
bool rewrite_tracking(struct client *client, struct lane *lane, const struct request *request)
{
    const struct lane_key key = session_key(client, lane_node(lane));
    struct slice *words = malloc(request->argc * sizeof *words);
    char *out = malloc(request->bytes.len + request->argc * (EMIT_HEADER_MAX + sizeof NOBODYS_ID));
    struct argv_walk walk;
    bool is_good = words != NULL && out != NULL;
    argv_walk_init(&walk, request->bytes);
    for (uint32_t i = 0; is_good && i < request->argc && argv_next(&walk, &words[i]); i++) {
        int64_t id;
        if (is_id(words, i) && num_parse(words[i], &id) && id != 0 &&
            !owned_point(lane_node(lane)->owned, id, key.login))
            words[i] = SLICE(NOBODYS_ID);
    }
    if (is_good)
        lane_send(lane, &client->rider, out, emit_array(out, words, request->argc));
    free(words);
    free(out);
    return is_good;
}
