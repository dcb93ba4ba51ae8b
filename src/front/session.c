#include "front/session.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "resp/argv.h"

struct session {
    char *user; /* NULL: the default user */
    char *name;
    char *asked_user; /* by a request that is not answered yet; NULL: none */
    char *asked_name;
};

static struct slice known(const char *text)
{
    return text != NULL ? slice_str(text) : slice_of("", 0);
}

static struct facts facts_of(const struct client *client)
{
    struct facts facts = {0};
    if (client->session != NULL) {
        facts.user = known(client->session->user);
        facts.name = known(client->session->name);
    }
    struct sockaddr_storage peer;
    link_peer(&client->link, &peer);
    facts.ip = ip_of((const struct sockaddr *)&peer);
    return facts;
}

void session_identify(struct client *client)
{
    struct front *front = client->front;
    struct subjects *subjects = front->settings->subjects;
    struct subject *old = client->subject;
    client->subject = NULL;
    if (policies_count(front->policies) > 0) {
        struct facts facts = facts_of(client);
        const struct policy *policy = policies_match(front->policies, &facts);
        if (policy != NULL) {
            char name[SUBJECT_NAME_MAX];
            size_t len = identity_subject(&front->settings->identity, &facts, name);
            client->policy = policy->index;
            client->subject = subject_get(subjects, policy, slice_of(name, len), clock_ns());
        }
    }
    if (old != NULL)
        subject_put(subjects, old);
}

static struct session *session_of(struct client *client)
{
    if (client->session == NULL)
        client->session = mem_zalloc(1, sizeof *client->session);
    return client->session;
}

static void set_text(char **at, char *text)
{
    free(*at);
    *at = text;
}

/* HELLO [version [AUTH user password] [SETNAME name]] */
static void note_hello(struct session *session, struct argv_walk *walk)
{
    struct slice word;
    if (!argv_next(walk, &word))
        return;
    while (argv_next(walk, &word)) {
        struct slice value;
        struct slice password;
        if (slice_eq_nocase(word, SLICE("auth"))) {
            if (!argv_next(walk, &value) || !argv_next(walk, &password))
                return;
            set_text(&session->asked_user, mem_strndup(value.at, value.len));
        } else if (slice_eq_nocase(word, SLICE("setname"))) {
            if (!argv_next(walk, &value))
                return;
            set_text(&session->asked_name, mem_strndup(value.at, value.len));
        } else {
            return;
        }
    }
}

/* AUTH [user] password */
static void note_auth(struct session *session, struct argv_walk *walk)
{
    struct slice first;
    struct slice second;
    if (!argv_next(walk, &first))
        return;
    bool has_user = argv_next(walk, &second);
    set_text(&session->asked_user, has_user ? mem_strndup(first.at, first.len) : mem_strndup("default", 7));
}

void session_note(struct client *client, enum effect effect, struct slice request)
{
    if (effect != EFFECT_AUTH && effect != EFFECT_HELLO && effect != EFFECT_NAME)
        return;
    struct session *session = session_of(client);
    set_text(&session->asked_user, NULL);
    set_text(&session->asked_name, NULL);

    struct argv_walk walk;
    struct slice word;
    argv_walk_init(&walk, request);
    if (!argv_next(&walk, &word))
        return;
    if (effect == EFFECT_AUTH)
        note_auth(session, &walk);
    else if (effect == EFFECT_HELLO)
        note_hello(session, &walk);
    else if (argv_next(&walk, &word) && argv_next(&walk, &word)) /* CLIENT SETNAME name */
        set_text(&session->asked_name, mem_strndup(word.at, word.len));
}

static void user_holds(struct client *client)
{
    struct session *session = client->session;
    client->has_logged_in = true;
    if (strcmp(session->asked_user, "default") == 0)
        set_text(&session->asked_user, NULL);
    set_text(&session->user, session->asked_user);
    session->asked_user = NULL;
}

static void name_holds(struct session *session)
{
    set_text(&session->name, session->asked_name);
    session->asked_name = NULL;
}

static void forget_all(struct client *client)
{
    session_free(client);
    client->has_logged_in = false;
}

void session_answered(struct client *client, enum effect effect, const struct glimpse *reply)
{
    bool is_ok = glimpse_type(reply) != '-' && !glimpse_starts(reply, SLICE("+QUEUED"));
    /* HELLO logs in before it looks at the name. */
    bool is_half_ok = effect == EFFECT_HELLO && glimpse_starts(reply, SLICE("-ERR Client names cannot"));
    if (!is_ok && !is_half_ok)
        return;
    struct session *session = client->session;
    if (effect == EFFECT_RESET) {
        forget_all(client);
    } else if (session != NULL) {
        if (session->asked_user != NULL)
            user_holds(client);
        if (session->asked_name != NULL && is_ok)
            name_holds(session);
    }
    session_identify(client);
}

void session_print(const struct client *client, char *out)
{
    struct sockaddr_storage peer;
    char host[64];
    char port[8];
    link_peer(&client->link, &peer);
    if (peer.ss_family == AF_UNSPEC || getnameinfo((struct sockaddr *)&peer, sizeof peer, host, sizeof host, port,
                                                   sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        snprintf(out, SESSION_TEXT, "unix");
    else
        snprintf(out, SESSION_TEXT, peer.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
    const char *user = client->session != NULL ? client->session->user : NULL;
    if (user != NULL) {
        size_t len = strlen(out);
        snprintf(out + len, SESSION_TEXT - len, " user:%s", user);
    }
}

void session_free(struct client *client)
{
    struct session *session = client->session;
    client->session = NULL;
    if (session == NULL)
        return;
    free(session->user);
    free(session->name);
    free(session->asked_user);
    free(session->asked_name);
    free(session);
}
