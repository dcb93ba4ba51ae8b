#include "upstream/lane/lane_open.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "upstream/lane/calls.h"
#include "upstream/lane/deliver.h"
#include "upstream/lane/passthrough_end.h"

static struct lane *lane_open_lane_of(struct link *link)
{
    return container_of(link, struct lane, link);
}

static void become_ready(struct lane *lane)
{
    lane_become(lane, LANE_READY);
    lane->base->ops->on_ready(lane);
    lane_wake_waiting(lane);
}

static void refuse_greeting(struct lane *lane, enum greeting_verdict verdict, struct slice reply)
{
    static const struct {
        enum lane_end end;
        const char *why;
    } ends[] = {
        [GREETING_LOGIN_REFUSED] = {END_LOGIN_REFUSED, "it no longer accepts a user's password"},
        [GREETING_TURNED_AWAY] = {END_TURNED_AWAY, "it refuses new connections"},
        [GREETING_NO_RESET] = {END_NO_RESET,
                               "its user may not run RESET, so no other client can use it"},
        [GREETING_UNCLEAN] = {END_UNCLEAN, "its state was not clean after its client had left"},
        [GREETING_NONSENSE] = {END_NONSENSE, "its replies are not those of a Redis"},
        [GREETING_REFUSED] = {END_REFUSED, "it refuses a command that the connection needs"},
    };
    lane_refuse(lane, ends[verdict].end, ends[verdict].why,
                verdict == GREETING_REFUSED ? reply : slice_of("", 0));
}

static bool say_more(struct lane *lane)
{
    size_t n;
    char *words = greeting_say(&lane->greeting, &lane->key, &lane->nonce, &n);
    if (words == NULL)
        return false;
    outbox_send(&lane->base->worker_lanes->outbox, &lane->link, words, n);
    explicit_bzero(words, n);
    free(words);
    return true;
}

/* A whole answer has arrived. False: the lane is closed. */
static bool end_answer(struct lane *lane)
{
    struct slice reply = bytes_slice(&lane->held);
    enum greeting_verdict verdict = greeting_judge(&lane->greeting, &lane->nonce, &lane->glimpse);
    if (verdict == GREETING_TELLS_ID) {
        lane->id = greeting_id(reply);
    } else if (verdict != GREETING_GOOD) {
        refuse_greeting(lane, verdict, reply);
        return false;
    }
    if (!greeting_is_again((enum greeting_kind)lane->greeting.kind) &&
        glimpse_type(&lane->glimpse) != '+')
        node_note_role(lane_node(lane), greeting_role(reply));
    lane->held.len = 0;
    glimpse_reset(&lane->glimpse);
    if (greeting_goes_on(&lane->greeting) && !say_more(lane)) {
        lane_fail(lane, END_LOST, "out of memory");
        return false;
    }
    if (greeting_is_over(&lane->greeting))
        become_ready(lane);
    return !lane_is_closed(lane);
}

static const char *take_greeting(struct lane *lane, const char *p, const char *end)
{
    size_t used;
    enum scan_result result = reply_scan(&lane->scan, p, (size_t)(end - p), &used);
    if (result == SCAN_BAD || lane->held.len + used > GREETED_MAX) {
        lane_fail(lane, END_NONSENSE, "it does not speak RESP");
        return NULL;
    }
    if (!bytes_add(&lane->held, slice_of(p, used), GREETED_MAX)) {
        lane_fail(lane, END_LOST, "out of memory");
        return NULL;
    }
    glimpse_feed(&lane->glimpse, p, used);
    if (result == SCAN_FRAME && !end_answer(lane))
        return NULL;
    return p + used;
}

/* ---- the connection ---- */

static void lane_open_on_data(struct link *link, const char *data, size_t n)
{
    struct lane *lane = lane_open_lane_of(link);
    const char *p = data;
    const char *end = data + n;
    lane->moved_ns = link_loop(link)->now_ns;
    while (p != NULL && p < end) {
        if (lane->state == LANE_GREETING)
            p = take_greeting(lane, p, end);
        else
            p = deliver(lane, p, end);
    }
    deliver_end_run(lane);
}

static struct link *lane_open_on_passing(struct link *link, size_t *most)
{
    struct lane *lane = lane_open_lane_of(link);
    return lane_is_ready(lane) ? deliver_passing(lane, most) : NULL;
}

static void lane_open_on_passed(struct link *link, size_t n)
{
    struct lane *lane = lane_open_lane_of(link);
    lane->moved_ns = link_loop(link)->now_ns;
    deliver_passed(lane, n);
}

/*
 * Returns weir's present login, or for a user the login with the password that Redis accepted last,
 * from any client.
 */
static struct login *present_login(const struct lane *lane)
{
    struct login *login = lane->key.login;
    if (login == NULL)
        return NULL;
    struct login *newest =
        login->is_weirs ? worker_lanes_login(lane->base->worker_lanes)
                        : auth_user_newest(auth_users_find(&lane->base->users, login_user(login)));
    return newest != NULL ? newest : login;
}

/* False: out of memory. */
static bool lane_open_greet(struct lane *lane, enum greeting_kind kind)
{
    struct lane_key key = lane->key;
    struct login *login = worker_lanes_login(lane->base->worker_lanes);
    key.login = present_login(lane);
    lane_set_key(lane, &key);
    lane_become(lane, LANE_GREETING);
    glimpse_reset(&lane->glimpse);
    memset(&lane->scan, 0, sizeof lane->scan);
    if (greeting_is_again(kind) && !nonce_draw(&lane->nonce, node_nonce_form(lane_node(lane))))
        return false;
    const struct greeting_cover cover = {lane->cover, login};
    greeting_init(&lane->greeting, &lane->key, kind, &cover);
    if (atomic_load_explicit(&lane_node(lane)->asks_lanes, memory_order_relaxed) &&
        lane->role != LANE_AUTH)
        greeting_ask_role(&lane->greeting);
    if (node_is_read_only(lane_node(lane)) && lane->role == LANE_SHARED && kind == GREETING_FRESH)
        greeting_read_only(&lane->greeting);
    if (greeting_is_over(&lane->greeting)) {
        become_ready(lane);
        return true;
    }
    lane->base->ops->on_greeting(lane);
    return say_more(lane);
}

static void lane_open_on_connected(struct link *link, int status)
{
    struct lane *lane = lane_open_lane_of(link);
    if (status != 0)
        lane_fail(lane, END_LOST, link_why(link, status));
    else if (!lane_open_greet(lane, lane->role == LANE_PRIVATE ? GREETING_OWNED : GREETING_FRESH))
        lane_fail(lane, END_LOST, "out of memory");
}

static void lane_open_on_end(struct link *link, int status)
{
    struct lane *lane = lane_open_lane_of(link);
    if (lane->state == LANE_ENDING)
        passthrough_end_flush(lane);
    if (lane_is_closed(lane))
        return;
    if (status == UV_EOF && lane_is_ending(lane))
        lane_end(lane);
    else
        lane_fail(lane, END_LOST,
                  status == UV_EOF ? "it closed the connection" : link_why(link, status));
}

/* Calls noted since the last flush are sent now. */
static void on_flush(struct link *link)
{
    struct lane *lane = lane_open_lane_of(link);
    inflight_send(&lane->base->counts, &lane->calls, link_loop(link)->writing_ns);
    lane->base->ops->on_watched(lane);
}

static void lane_open_on_drained(struct link *link)
{
    lane_wake_waiting(lane_open_lane_of(link));
}

static void lane_open_on_wake(struct link *link)
{
    (void)link;
}

static void lane_open_on_closed(struct link *link)
{
    struct lane *lane = lane_open_lane_of(link);
    calls_fini(&lane->calls);
    tags_fini(&lane->tags);
    bytes_fini(&lane->held);
    free(lane->cover);
    login_put(lane->key.login);
    login_put(lane->last_login);
    login_put(lane->let_in.by);
    login_put(lane->vouched.by);
    struct lane_base *base = lane->base;
    lane_end_link(lane);
    if (--base->n_links == 0)
        base->ops->on_empty(base);
}

static const struct link_ops link_ops = {
    .on_connected = lane_open_on_connected,
    .on_data = lane_open_on_data,
    .on_passing = lane_open_on_passing,
    .on_passed = lane_open_on_passed,
    .on_end = lane_open_on_end,
    .on_wake = lane_open_on_wake,
    .on_flush = on_flush,
    .on_drained = lane_open_on_drained,
    .on_closed = lane_open_on_closed,
};

struct lane *lane_open(struct lane_base *base, const struct lane_key *key, enum lane_role role,
                       struct lane_user *owner, int *error)
{
    *error = UV_ENOMEM;
    struct lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL)
        return NULL;
    lane->base = base;
    lane->calls.pool = lane->tags.pool = &base->worker_lanes->loop->pool;
    lane->owner = owner;
    lane->role = (uint8_t)role;
    lane->keeps = role == LANE_SHARED && upstream_keeps(base->worker_lanes->upstream);
    list_init(&lane->in_list);
    list_init(&lane->waiting);
    *error = node_connect(base->node, &lane->link, base->worker_lanes->loop, &link_ops);
    if (*error != 0) {
        free(lane);
        return NULL;
    }
    assert(owner == NULL || !link_is_closed(lane_user_link(owner)));
    base->n_links++;
    lane_set_key(lane, key);
    if (owner != NULL)
        owner->lane = lane;
    return lane;
}

bool lane_renew(struct lane *lane, const struct lane_key *key, struct lane_user *owner,
                struct slice written)
{
    assert(owner == NULL || !link_is_closed(lane_user_link(owner)));
    lane_cover(lane, written);
    login_put(lane->last_login);
    lane->last_login = login_get(lane->key.login);
    lane_set_key(lane, key);
    lane_leave_user(lane, false);
    lane_end_leases(lane);
    lane->owner = owner;
    lane->use = USE_AGAIN;
    lane_forget_session(lane);
    if (owner != NULL)
        owner->lane = lane;
    /*
     * A connection without a login got no id from Redis. A connection that logs in now can ask for
     * its id.
     */
    return lane_open_greet(lane,
                           lane->id == 0 && key->login != NULL ? GREETING_NAMED : GREETING_AGAIN);
}
