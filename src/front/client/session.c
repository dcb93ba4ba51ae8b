#include "front/client/session.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "front/client/client.h"
#include "front/client/read_side.h"
#include "front/cluster/spread.h"
#include "front/route/target.h"
#include "upstream/lane/shared.h"
#include "upstream/login/login.h"

struct text {
    char *at; /* NULL: none */
    size_t len;
};

struct session {
    struct login *login;     /* the client's own credentials; one reference; NULL: no login */
    struct auth_proof proof; /* proof that Redis has accepted `login` */
    struct text name;
    struct library *library; /* one reference; NULL: unknown */
    uint32_t database;
    uint8_t protocol;
    /* the arguments of a request that is not answered yet */
    struct text asked_name;
    struct library *asked_library; /* one reference; NULL: EXEC would leave no library */
    uint8_t asked_protocol;
    bool has_asked_name;
    bool has_asked_library;
    /* no lane could be opened with the user's passwords, and no lane has been found since */
    bool was_doubted;
};

static struct slice known(const struct text *text)
{
    return text->at != NULL ? slice_of(text->at, text->len) : slice_of("", 0);
}

/* Sets the text to a copy of `value`. False: out of memory, and the text is unchanged. */
static bool set_text(struct text *text, struct slice value)
{
    char *copy = value.len > 0 ? malloc(value.len) : NULL;
    if (copy != NULL)
        memcpy(copy, value.at, value.len);
    else if (value.len > 0)
        return false;
    free(text->at);
    *text = (struct text){copy, value.len};
    return true;
}

/* Returns the client's session, allocated on first use. NULL: out of memory. */
static struct session *need_session(struct client *client)
{
    if (client->session == NULL && (client->session = calloc(1, sizeof *client->session)) != NULL)
        client->session->protocol = 2;
    return client->session;
}

/* ---- libraries, each kept once for all clients of a worker ---- */

#define LOOKED_AT 64 /* libraries that are compared before a new copy is made */

struct slice library_name(const struct library *library)
{
    return library != NULL ? slice_of(library->text, library->name_len) : slice_of("", 0);
}

struct slice library_version(const struct library *library)
{
    return library != NULL ? slice_of(library->text + library->name_len, library->version_len)
                           : slice_of("", 0);
}

/* Adds a reference. NULL: nothing to do. */
static struct library *library_get(struct library *library)
{
    if (library != NULL)
        library->holders++;
    return library;
}

/* Drops a reference. NULL: nothing to do. */
static void library_put(struct library *library)
{
    if (library == NULL || --library->holders > 0)
        return;
    list_take(&library->in_known);
    free(library);
}

static struct library *session_find(struct list *known, struct slice name, struct slice version)
{
    unsigned looked_at = 0;
    for (struct list *at = known->next; at != known && looked_at < LOOKED_AT;
         at = at->next, looked_at++) {
        struct library *library = container_of(at, struct library, in_known);
        if (slice_eq(library_name(library), name) && slice_eq(library_version(library), version))
            return library;
    }
    return NULL;
}

/* Makes a library, still without a reference. NULL: out of memory. */
static struct library *session_make(struct list *known, struct slice name, struct slice version)
{
    struct library *library = calloc(1, sizeof *library + name.len + version.len);
    if (library == NULL)
        return NULL;
    library->name_len = name.len;
    library->version_len = version.len;
    memcpy(library->text, name.at, name.len);
    memcpy(library->text + name.len, version.at, version.len);
    list_init(&library->in_known);
    list_push(known, &library->in_known);
    return library;
}

/*
 * Replaces `held` by the library that differs from `held` in the name, or in the version if
 * is_version. False: out of memory, and `held` is unchanged.
 */
static bool library_change(struct list *known, struct library **held, bool is_version,
                           struct slice value)
{
    struct library *old = *held;
    struct slice name = is_version ? library_name(old) : value;
    struct slice version = is_version ? value : library_version(old);
    struct library *library = NULL;
    if (name.len + version.len > 0) {
        library = session_find(known, name, version);
        if (library == NULL)
            library = session_make(known, name, version);
        if (library == NULL)
            return false;
        library->holders++;
    }
    library_put(old);
    *held = library;
    return true;
}

/* ---- the session's values ---- */

/*
 * The login under which the client's requests run: the client's own login, or weir's login, lent to
 * the client. NULL: none.
 */
static struct login *session_login_of(const struct client *client)
{
    const struct session *session = client->session;
    return session != NULL && session->login != NULL
               ? session->login
               : worker_lanes_lent(&client->front->nodes.worker_lanes);
}

struct login *session_login(const struct client *client)
{
    return client->session != NULL ? client->session->login : NULL;
}

/*
 * The client's auth generation at a node. Each node counts generations of its own. If the client
 * has neither a place nor a read_side at the node, the result is the node's present generation.
 */
static uint32_t auth_generation_at(const struct client *client, const struct node *node)
{
    const struct read_side *reading = read_side_of(client);
    const struct place *place = spread_place_at(client_extra(client)->spread, node);
    if (node == front_default_node(client->front))
        return client->auth_generation;
    if (place != NULL)
        return place->auth_generation;
    return reading != NULL && reading->node == node ? reading->auth_generation
                                                    : node_auth_generation(node);
}

struct lane_key session_key(const struct client *client, const struct node *node)
{
    return (struct lane_key){.protocol = session_protocol(client),
                             .database = session_database(client),
                             .login = session_login_of(client),
                             .auth_generation = auth_generation_at(client, node)};
}

uint32_t session_database(const struct client *client)
{
    return client->session != NULL ? client->session->database : 0;
}

struct slice session_name(const struct client *client)
{
    return client->session != NULL ? known(&client->session->name) : slice_of("", 0);
}

uint8_t session_protocol(const struct client *client)
{
    return client->session != NULL ? client->session->protocol : 2;
}

bool session_may_only_subscribe(const struct client *client)
{
    return client_is_subscribed(client) && session_protocol(client) == 2;
}

bool session_has_no_login(const struct client *client)
{
    return session_login_of(client) == NULL;
}

/* ---- the proof of the login ---- */

struct nodes_row *session_row(const struct client *client)
{
    bool has_lane = client_has_own_lane(client) && client->lane_user.lane != NULL;
    if (has_lane)
        return nodes_row_of(client->lane_user.lane);
    return client_is_on_cluster(client) ? target_row(client) : front_default_row(client->front);
}

/*
 * The client's proof at this node. A client without a place at the node has only the default node's
 * proof, which does not hold at other nodes.
 */
static struct auth_proof *proof_at(const struct client *client, const struct nodes_row *row)
{
    struct place *place = row != front_default_row(client->front)
                              ? spread_place(client_extra(client)->spread, row)
                              : NULL;
    return place != NULL ? &place->proof : &client->session->proof;
}

const struct auth_proof *session_proof(const struct client *client)
{
    return &client->session->proof;
}

static const struct auth_users *users_of(const struct client *client)
{
    return &session_row(client)->lanes.base.users;
}

bool session_is_proven(const struct client *client)
{
    struct session *session = client->session;
    return session == NULL || session->login == NULL ||
           auth_proof_holds(proof_at(client, session_row(client)), users_of(client),
                            session->login);
}

bool session_is_witnessed(const struct client *client)
{
    struct session *session = client->session;
    return session == NULL || session->login == NULL ||
           auth_proof_is_witnessed(proof_at(client, session_row(client)), users_of(client),
                                   session->login);
}

bool session_must_prove(const struct client *client)
{
    bool has_lane = client_has_own_lane(client) && client->lane_user.lane != NULL &&
                    lane_is_ready(client->lane_user.lane);
    return has_lane ? !session_is_witnessed(client) : !session_is_proven(client);
}

bool session_is_of(const struct client *client, const struct auth_user *user)
{
    return client->session != NULL && client->session->proof.user == user;
}

void session_prove(struct client *client, const struct auth_proof *proof)
{
    const struct nodes *nodes = &client->front->nodes;
    struct auth_proof *at = &client->session->proof;
    for (size_t i = 1; client_is_on_cluster(client) && i < nodes->n; i++)
        if (proof->user != NULL && proof->user->users == &nodes->rows[i]->lanes.base.users)
            at = proof_at(client, nodes->rows[i]);
    auth_proof_copy(at, proof);
}

bool session_doubt(struct client *client)
{
    struct session *session = client->session;
    if (session == NULL || session->login == NULL || session->was_doubted)
        return false;
    auth_proof_void(proof_at(client, session_row(client)));
    lease_drop(&client->shared);
    session->was_doubted = true;
    return true;
}

/* The proof at the node that gets the client's requests. */
static struct auth_proof *proof_now(const struct client *client)
{
    if (client_is_on_cluster(client))
        return proof_at(client, session_row(client));
    return read_side_is_at_replica(client) ? &read_side_of(client)->proof : &client->session->proof;
}

bool session_suits(const struct client *client, const struct lane *lane)
{
    struct session *session = client->session;
    return session == NULL || session->login == NULL ||
           witness_suits(lane, proof_now(client), session->login);
}

bool session_ask_witness(struct client *client, struct lane *lane)
{
    struct session *session = client->session;
    if (witness_ask(lane, proof_now(client), session->login))
        return true;
    auth_proof_void(proof_now(client));
    lease_drop(&client->shared);
    return false;
}

void session_note_lane(struct client *client)
{
    if (client->session != NULL)
        client->session->was_doubted = false;
}

bool session_is_anonymous(const struct client *client)
{
    if (session_login_of(client) != NULL)
        return false;
    /*
     * Redis goes on serving connections that were made before a password was set. If Redis no
     * longer has a password, Redis serves all connections.
     */
    return (client->auth_generation & node_auth_generation(front_default_node(client->front)) &
            AUTH_GENERATION_NEEDS_AUTH) != 0;
}

bool session_must_log_in(const struct client *client)
{
    if (!session_is_anonymous(client))
        return false;
    node_doubt(front_default_node(client->front));
    return true;
}

struct slice session_user(const struct client *client)
{
    const struct session *session = client->session;
    if (session == NULL || session->login == NULL ||
        slice_eq(login_user(session->login), SLICE("default")))
        return slice_of("", 0);
    return login_user(session->login);
}

const struct library *session_library(const struct client *client)
{
    return client->session != NULL ? client->session->library : NULL;
}

bool session_set_library(struct client *client, bool is_version, struct slice value)
{
    struct session *session = need_session(client);
    return session != NULL &&
           library_change(&client->front->libraries, &session->library, is_version, value);
}

void session_forget_library(struct client *client)
{
    if (client->session == NULL)
        return;
    library_put(client->session->library);
    client->session->library = NULL;
}

/* ---- arguments that Redis has yet to accept ---- */

bool session_has_asked_library(const struct client *client)
{
    return client->session != NULL && client->session->has_asked_library;
}

bool session_ask_library(struct client *client, bool is_version, struct slice value)
{
    struct session *session = need_session(client);
    if (session == NULL)
        return false;
    if (!session->has_asked_library)
        session->asked_library = library_get(session->library);
    session->has_asked_library = true;
    return library_change(&client->front->libraries, &session->asked_library, is_version, value);
}

void session_take_asked_library(struct client *client)
{
    struct session *session = client->session;
    library_put(session->library);
    session->library = session->asked_library;
    session->asked_library = NULL;
    session->has_asked_library = false;
}

void session_drop_asked_library(struct client *client)
{
    if (!session_has_asked_library(client))
        return;
    library_put(client->session->asked_library);
    client->session->asked_library = NULL;
    client->session->has_asked_library = false;
}

bool session_ask(struct client *client, uint8_t protocol, bool has_name, struct slice name)
{
    struct session *session = need_session(client);
    if (session == NULL || (has_name && !set_text(&session->asked_name, name)))
        return false;
    session->asked_protocol = protocol != 0 ? protocol : session->protocol;
    session->has_asked_name = has_name;
    return true;
}

/* ---- changes of the session ---- */

/* Frees everything but the library. */
static void drop_texts(struct session *session)
{
    login_put(session->login);
    auth_proof_drop(&session->proof);
    free(session->name.at);
    free(session->asked_name.at);
    library_put(session->asked_library);
}

/* Drops the lease on a kept lane that has logged in with another user or password. */
static void drop_kept(struct client *client)
{
    struct lease *kept = client->extra != NULL ? &client->extra->kept : NULL;
    if (kept != NULL && lease_holds(kept) &&
        !login_same(kept->lane->key.login, client->session->login))
        lease_drop(kept);
}

/*
 * The key of the session has changed: drops the leases on lanes of the old key. Redis has changed
 * the session of a private lane too, so the lane gets the new key.
 */
static void change_lane(struct client *client, bool has_logged_in)
{
    read_side_end_session(client);
    spread_end_session(client_extra(client)->spread, has_logged_in);
    lease_drop(&client->shared);
    if (has_logged_in)
        drop_kept(client);
    if (client_has_own_lane(client) && client->lane_user.lane != NULL) {
        struct lane *lane = client->lane_user.lane;
        struct lane_key key = session_key(client, lane_node(lane));
        if (!has_logged_in && login_same_user(key.login, lane->key.login))
            /* the lane may have logged in with another password of the user */
            key.login = lane->key.login;
        lane_set_key(lane, &key);
    }
}

bool session_log_in(struct client *client, struct login *login, const struct auth_proof *proof)
{
    struct session *session = need_session(client);
    if (session == NULL)
        return false;
    read_side_end_login(client);
    login_get(login);
    login_put(session->login);
    session->login = login;
    session->was_doubted = false;
    auth_proof_copy(&session->proof, proof);
    change_lane(client, true);
    return true;
}

void session_begin(struct client *client)
{
    client->auth_generation = node_auth_generation(front_default_node(client->front));
    spread_renew_auth_generations(client_extra(client)->spread);
}

void session_reset(struct client *client)
{
    struct session *session = client->session;
    read_side_reset(client);
    if (session != NULL) {
        drop_texts(session);
        *session = (struct session){.protocol = 2, .library = session->library};
    }
    session_begin(client);
    change_lane(client, false);
}

bool session_take_asked(struct client *client)
{
    struct session *session = client->session;
    bool has_other_name = session->has_asked_name;
    session->protocol = session->asked_protocol;
    if (has_other_name) {
        free(session->name.at);
        session->name = session->asked_name;
        session->asked_name = (struct text){NULL, 0};
    }
    session->has_asked_name = false;
    change_lane(client, false);
    return has_other_name;
}

bool session_select(struct client *client, uint32_t database)
{
    struct session *session = need_session(client);
    if (session == NULL)
        return false;
    session->database = database;
    change_lane(client, false);
    return true;
}

void session_print_address(const struct client *client, char *out)
{
    const struct link_peer address = client->link.peer;
    char ip[IP_TEXT_MAX];
    if (address.ip.family == 0)
        snprintf(out, SESSION_TEXT, "unix");
    else
        snprintf(out, SESSION_TEXT, address.ip.family == 6 ? "[%.*s]:%u" : "%.*s:%u",
                 (int)ip_print(&address.ip, ip), ip, (unsigned)address.port);
}

void session_print(const struct client *client, char *out)
{
    session_print_address(client, out);
    if (client->session == NULL || client->session->login == NULL)
        return;
    struct slice user = login_user(client->session->login);
    size_t len = strlen(out);
    snprintf(out + len, SESSION_TEXT - len, " user:%.*s", (int)(user.len < 128 ? user.len : 128),
             user.at);
}

void session_print_operator(const struct client *client, char *out, size_t room)
{
    char text[SESSION_TEXT] = "the operators' socket";
    if (!client_listen_address(client)->is_admin)
        session_print(client, text);
    snprintf(out, room, "%.*s", (int)(room - 1), text);
}

void session_log_closed(const struct client *client, enum log_site site, const char *why)
{
    char name[SESSION_TEXT];
    session_print(client, name);
    log_at(site, LOG_WARN, "client %s is closed: %s", name, why);
}

void session_free(struct client *client)
{
    struct session *session = client->session;
    client->session = NULL;
    if (session == NULL)
        return;
    drop_texts(session);
    library_put(session->library);
    free(session);
}

/* ---- what policies match ---- */

struct facts facts_on_arrival(const struct client *client)
{
    struct facts facts = {.tls = link_tls_name(&client->link), .ip = client->link.peer.ip};
    facts.listener = slice_str(client_listen_address(client)->listener);
    return facts;
}

struct facts facts_of(const struct client *client)
{
    struct facts facts = facts_on_arrival(client);
    facts.user = session_user(client);
    facts.name = session_name(client);
    return facts;
}

/* ---- lanes, for lane_user_ops ---- */

struct room_share session_lane_share(const struct lane_user *lane_user)
{
    return session_share(
        container_of((struct lane_user *)(uintptr_t)lane_user, struct client, lane_user));
}

struct room_share session_share(const struct client *client)
{
    const struct hash_key key = client->front->settings->share_key;
    char ip[IP_TEXT_MAX];
    const struct ip *peer = &client->link.peer.ip;
    struct slice text = slice_of(ip, peer->family != 0 ? ip_print(peer, ip) : 0);
    return room_share_of(client->subject != NULL ? client->subject->hash : 0,
                         text.len > 0 ? hash_bytes(key, text) : 0);
}

void session_audit_lane(const struct lane_user *lane_user, const struct lane *lane)
{
    const struct client *client =
        container_of((struct lane_user *)(uintptr_t)lane_user, struct client, lane_user);
    struct lane_key key = session_key(client, lane_node(lane));
    key.is_apart = lane->key.is_apart;
    /*
     * A private lane may be used in a later generation of the user, as in Redis. While the client
     * waits for a login, weir sends only bytes of its own.
     */
    bool is_unseen = lane->user == NULL && client_has_own_lane(client) && session_is_proven(client);
    assert(session_is_witnessed(client) || is_unseen || lane_user->is_sending ||
           client_waits_for(client, WAIT_LOGIN));
    assert(session_suits(client, lane) || lane_user->is_sending ||
           client_waits_for(client, WAIT_ANSWER | WAIT_LOGIN));
    if (lane->role == LANE_PRIVATE) {
        assert(client_has_own_lane(client));
    } else {
        assert(lane->role == LANE_SHARED && !client_has_own_lane(client));
        assert(login_same_user(lane->key.login, key.login) &&
               (key.login != NULL || lane->key.auth_generation == key.auth_generation));
        assert(lane_key_eq(&lane->key, &key) || client_waits_for(client, WAIT_ANSWER | WAIT_LOGIN));
        assert(!lane_key_eq(&lane->key, &key) ||
               client_waits_for(client, WAIT_ANSWER | WAIT_LOGIN) || lane_user->lane == lane);
    }
}
