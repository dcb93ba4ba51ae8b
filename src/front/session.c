#include "front/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "front/account.h"
#include "front/place.h"
#include "resp/argv.h"
#include "upstream/login.h"

struct text {
    char *at; /* NULL: none */
    size_t len;
};

struct session {
    struct login *login; /* NULL: as it connected */
    struct text name;
    uint32_t database;
    uint8_t protocol;
    /* asked for by a request that is not answered yet */
    struct login *asked_login;
    struct text asked_name;
    uint8_t asked_protocol;
    bool has_asked_name;
};

static struct slice known(const struct text *text)
{
    return text->at != NULL ? slice_of(text->at, text->len) : slice_of("", 0);
}

static void set_text(struct text *text, struct slice value)
{
    free(text->at);
    text->at = value.len > 0 ? mem_strndup(value.at, value.len) : NULL;
    text->len = value.len;
}

static struct session *session_of(struct client *client)
{
    if (client->session == NULL) {
        client->session = mem_zalloc(1, sizeof *client->session);
        client->session->protocol = 2;
    }
    return client->session;
}

/* ---- what is known ---- */

/* As whom Redis sees it; NULL: as whomever it takes a stranger for. */
static struct login *login_of(const struct client *client)
{
    const struct session *session = client->session;
    return session != NULL && session->login != NULL ? session->login : lanes_lent(&client->front->lanes);
}

struct lane_key session_key(const struct client *client)
{
    const struct session *session = client->session;
    if (session == NULL)
        return (struct lane_key){.protocol = 2, .login = login_of(client), .epoch = client->epoch};
    return (struct lane_key){session->protocol, session->database, login_of(client), client->epoch};
}

struct slice session_name(const struct client *client)
{
    return client->session != NULL ? known(&client->session->name) : slice_of("", 0);
}

uint8_t session_protocol(const struct client *client)
{
    return client->session != NULL ? client->session->protocol : 2;
}

bool session_has_login(const struct client *client, const struct login *login)
{
    return login_eq(login_of(client), login);
}

bool session_is_anonymous(const struct client *client)
{
    if (login_of(client) != NULL)
        return false;
    /* Redis lets those stay who came before there was a password, and lets everybody in once there is none. */
    return (client->epoch & upstream_epoch(client->front->settings->upstream) & EPOCH_NEEDS_AUTH) != 0;
}

struct slice session_user(const struct client *client)
{
    const struct session *session = client->session;
    if (session == NULL || session->login == NULL || slice_eq(login_user(session->login), SLICE("default")))
        return slice_of("", 0);
    return login_user(session->login);
}

/* ---- what is asked for ---- */

static void forget_asked(struct session *session)
{
    login_put(session->asked_login);
    session->asked_login = NULL;
    session->has_asked_name = false;
    session->asked_protocol = session->protocol;
}

static void ask_login(struct session *session, struct slice user, struct slice password)
{
    login_put(session->asked_login);
    session->asked_login = login_new(user, password);
}

/* AUTH [user] password */
static void note_auth(struct session *session, struct argv_walk *walk)
{
    struct slice first;
    struct slice second;
    if (!argv_next(walk, &first))
        return;
    if (argv_next(walk, &second))
        ask_login(session, first, second);
    else
        ask_login(session, SLICE("default"), first);
}

static void note_name(struct session *session, struct slice name)
{
    set_text(&session->asked_name, name);
    session->has_asked_name = true;
}

/* HELLO [version [AUTH user password] [SETNAME name]] */
static void note_hello(struct session *session, struct argv_walk *walk)
{
    struct slice word;
    struct slice user;
    struct slice value;
    int64_t version;
    if (!argv_next(walk, &word))
        return;
    if (num_parse(word, &version) && (version == 2 || version == 3))
        session->asked_protocol = (uint8_t)version;
    while (argv_next(walk, &word)) {
        if (slice_is_word(word, SLICE("auth")) && argv_next(walk, &user) && argv_next(walk, &value))
            ask_login(session, user, value);
        else if (slice_is_word(word, SLICE("setname")) && argv_next(walk, &value))
            note_name(session, value);
        else
            return;
    }
}

void session_note(struct client *client, enum effect effect, bool is_queued, struct slice request)
{
    struct session *session = session_of(client);
    if (!is_queued)
        forget_asked(session);
    struct argv_walk walk;
    struct slice word;
    argv_walk_init(&walk, request);
    if (!argv_next(&walk, &word))
        return;
    if (effect == EFFECT_AUTH)
        note_auth(session, &walk);
    else if (effect == EFFECT_HELLO)
        note_hello(session, &walk);
    else if (effect == EFFECT_NAME && argv_next(&walk, &word) && argv_next(&walk, &word)) /* CLIENT SETNAME name */
        note_name(session, word);
}

/* ---- what holds ---- */

static void hold_login(struct session *session)
{
    if (session->asked_login == NULL)
        return;
    login_put(session->login);
    session->login = session->asked_login;
    session->asked_login = NULL;
}

static void hold_asked(struct session *session)
{
    hold_login(session);
    session->protocol = session->asked_protocol;
    if (session->has_asked_name)
        set_text(&session->name, known(&session->asked_name));
    forget_asked(session);
}

/* The lane of its session is another now, unless it has a lane of its own, which has changed along. */
static void session_changed(struct client *client)
{
    client->shared = NULL;
    if (client->has_own_lane && client->rider.lane != NULL) {
        struct lane_key key = session_key(client);
        lane_set_key(client->rider.lane, &key);
    }
    if (!account_identify(client))
        client_turn_away(client);
}

void session_reset(struct client *client, uint32_t epoch)
{
    session_free(client);
    client->epoch = epoch;
    session_changed(client);
}

void session_answered(struct client *client, enum effect effect, uint32_t argument, const struct glimpse *reply)
{
    bool is_ok = glimpse_type(reply) != '-' && !glimpse_starts(reply, SLICE("+QUEUED"));
    struct session *session = session_of(client);
    if (is_ok && effect == EFFECT_RESET) {
        /* To Redis its own lane is a stranger's now, and so none for it. */
        if (client->has_own_lane && lanes_lent(&client->front->lanes) != NULL)
            place_abandon(client);
        session_reset(client, argument);
        return;
    }
    if (is_ok && effect == EFFECT_SELECT)
        session->database = argument;
    else if (is_ok)
        hold_asked(session);
    else if (effect == EFFECT_HELLO && glimpse_starts(reply, SLICE("-ERR Client names cannot")))
        hold_login(session); /* HELLO logs in before it looks at the name */
    else
        return;
    session_changed(client);
}

/* Is `whoami` ("$5\r\nalice\r\n", cut where a glimpse ends) this user? */
static bool is_user(const struct glimpse *whoami, struct slice user)
{
    char text[GLIMPSE_BYTES + 1];
    int header = snprintf(text, sizeof text, "$%zu\r\n", user.len);
    size_t room = GLIMPSE_BYTES - (size_t)header;
    size_t part = user.len < room ? user.len : room;
    memcpy(text + header, user.at, part);
    return glimpse_starts(whoami, slice_of(text, (size_t)header + part));
}

bool session_confirm(struct client *client, const struct glimpse *whoami)
{
    struct session *session = session_of(client);
    const struct login *login = login_of(client);
    struct slice now = login != NULL ? login_user(login) : SLICE("default");
    if (session->asked_login != NULL && is_user(whoami, login_user(session->asked_login)))
        hold_login(session);
    else if (!is_user(whoami, now))
        return false;
    forget_asked(session);
    session_changed(client);
    return true;
}

void session_print_address(const struct client *client, char *out)
{
    struct client_address address = announced_address(client);
    char ip[IP_TEXT_MAX];
    if (address.ip.family == 0)
        snprintf(out, SESSION_TEXT, "unix");
    else
        snprintf(out, SESSION_TEXT, address.ip.family == 6 ? "[%.*s]:%u" : "%.*s:%u", (int)ip_print(&address.ip, ip),
                 ip, (unsigned)address.port);
}

void session_print(const struct client *client, char *out)
{
    session_print_address(client, out);
    if (client->session == NULL || client->session->login == NULL)
        return;
    struct slice user = login_user(client->session->login);
    size_t len = strlen(out);
    snprintf(out + len, SESSION_TEXT - len, " user:%.*s", (int)(user.len < 128 ? user.len : 128), user.at);
}

void session_free(struct client *client)
{
    struct session *session = client->session;
    client->session = NULL;
    if (session == NULL)
        return;
    login_put(session->login);
    login_put(session->asked_login);
    free(session->name.at);
    free(session->asked_name.at);
    free(session);
}
