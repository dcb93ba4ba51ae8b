/* CLIENT TRACKING, CACHING and TRACKINGINFO. */
#include "tests/sim/redis_client.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_reply.h"
#include "tests/sim/redis_tracking.h"

struct tracking_wish {
    unsigned flags;
    uint64_t redirect;
};

static bool read_redirect(struct redis_conn *conn, struct slice arg, struct tracking_wish *wish)
{
    int64_t id;
    if (wish->redirect != 0) {
        reply_error(conn, "ERR A client can only redirect to a single other client");
        return false;
    }
    if (!text_to_number(arg, &id)) {
        reply_not_integer(conn);
        return false;
    }
    wish->redirect = (uint64_t)id;
    if (client_by_id(conn->redis, wish->redirect) != NULL)
        return true;
    reply_error(conn, "ERR The client ID you want redirect to does not exist");
    return false;
}

static unsigned tracking_flag_of(struct slice word)
{
    static const struct {
        const char *word;
        unsigned flag;
    } flags[] = {
        {"optin", TRACKING_OPTIN}, {"optout", TRACKING_OPTOUT}, {"noloop", TRACKING_NOLOOP}};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (text_is(word, flags[i].word))
            return flags[i].flag;
    return 0;
}

static bool read_wish(struct redis_conn *conn, const struct slice *argv, size_t argc,
                      struct tracking_wish *wish)
{
    for (size_t i = 3; i < argc; i++) {
        unsigned flag = tracking_flag_of(argv[i]);
        bool has_next = i + 1 < argc;
        wish->flags |= flag;
        if (flag != 0)
            continue;
        if (text_is(argv[i], "redirect") && has_next) {
            if (!read_redirect(conn, argv[++i], wish))
                return false;
        } else {
            reply_syntax(conn);
            return false;
        }
    }
    return true;
}

static const char *wish_complaint(const struct redis_conn *conn, const struct tracking_wish *wish)
{
    unsigned flags = wish->flags;
    if ((flags & TRACKING_OPTIN) && (flags & TRACKING_OPTOUT))
        return "You can't specify both OPTIN mode and OPTOUT mode";
    if (((flags & TRACKING_OPTIN) && (conn->tracking & TRACKING_OPTOUT)) ||
        ((flags & TRACKING_OPTOUT) && (conn->tracking & TRACKING_OPTIN)))
        return "You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it "
               "with a different mode.";
    return NULL;
}

void cmd_client_tracking(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct tracking_wish wish = {0};
    if (!read_wish(conn, argv, argc, &wish))
        return;
    if (text_is(argv[2], "on")) {
        const char *complaint = wish_complaint(conn, &wish);
        if (complaint != NULL) {
            reply_error(conn, "ERR %s", complaint);
            return;
        }
        tracking_start(conn, wish.flags, wish.redirect);
    } else if (text_is(argv[2], "off")) {
        tracking_stop(conn);
    } else {
        reply_syntax(conn);
        return;
    }
    reply_ok(conn);
}

void cmd_client_caching(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    bool is_yes = text_is(argv[2], "yes");
    if (!(conn->tracking & TRACKING_ON)) {
        reply_error(
            conn,
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or "
            "OPTOUT mode enabled");
        return;
    }
    if (!is_yes && !text_is(argv[2], "no")) {
        reply_syntax(conn);
        return;
    }
    if (!(conn->tracking & (is_yes ? TRACKING_OPTIN : TRACKING_OPTOUT))) {
        reply_error(conn,
                    "ERR CLIENT CACHING %s is only valid when tracking is enabled in %s mode.",
                    is_yes ? "YES" : "NO", is_yes ? "OPTIN" : "OPTOUT");
        return;
    }
    conn->tracking |= TRACKING_CACHING;
    reply_ok(conn);
}

static int64_t redirect_of(const struct redis_conn *conn)
{
    return conn->tracking & TRACKING_ON ? (int64_t)conn->redirect : -1;
}

void cmd_client_trackinginfo(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    const char *words[8];
    size_t n = 0;
    bool is_caching = conn->tracking & TRACKING_CACHING;
    words[n++] = conn->tracking & TRACKING_ON ? "on" : "off";
    if (conn->tracking & TRACKING_OPTIN) {
        words[n++] = "optin";
        if (is_caching)
            words[n++] = "caching-yes";
    }
    if (conn->tracking & TRACKING_OPTOUT) {
        words[n++] = "optout";
        if (is_caching)
            words[n++] = "caching-no";
    }
    if (conn->tracking & TRACKING_NOLOOP)
        words[n++] = "noloop";
    if (conn->tracking & TRACKING_BROKEN)
        words[n++] = "broken_redirect";
    reply_map(conn, 3);
    reply_word(conn, "flags");
    reply_set(conn, n);
    for (size_t i = 0; i < n; i++)
        reply_word(conn, words[i]);
    reply_word(conn, "redirect");
    reply_number(conn, redirect_of(conn));
    reply_word(conn, "prefixes");
    reply_array(conn, 0);
}
