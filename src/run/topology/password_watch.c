#include "run/topology/password_watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "limit/figures/journal.h"
#include "run/config/secret.h"

#define EVERY_NS (10 * NS_PER_S)
#define LEAST_NS (100 * NS_PER_MS)   /* between two looks, however often a login is refused */
#define SETTLED_NS (200 * NS_PER_MS) /* a file that was changed later than that may still be being written */

static const struct own_password *present(const struct password_watch *watch)
{
    return &governor_rules(watch->governor)->upstream_password;
}

/* Once for each reason, until the file can be used. False: it may be being written, so look again first. */
static bool doubt(struct password_watch *watch, const char *why)
{
    if (!watch->is_doubted) {
        watch->is_doubted = true;
        return false;
    }
    if (strncmp(watch->why, why, sizeof watch->why - 1) == 0)
        return true;
    snprintf(watch->why, sizeof watch->why, "%s", why);
    journal_log(watch->journal, LOG_WARN, "upstream", "upstream-password-file: %s: the password from before is used",
              why);
    return true;
}

static void use(struct password_watch *watch, char *secret)
{
    watch->why[0] = '\0';
    watch->is_doubted = false;
    if (strcmp(secret, present(watch)->newest) != 0 && governor_set_password(watch->governor, secret))
        journal_log(watch->journal, LOG_INFO, "upstream",
                  "upstream-password-file has another password: it is used from now on");
}

/* False: the file is to be looked at again, when it is written. */
static bool look(struct password_watch *watch)
{
    char *secret = NULL;
    char why[PASSWORD_WATCH_WHY];
    uint64_t age_ns;
    enum secret_result result = secret_look(present(watch)->path, &secret, &age_ns, why, sizeof why);
    if (result == SECRET_BAD)
        return doubt(watch, why);
    bool is_settled = age_ns >= SETTLED_NS;
    if (is_settled)
        use(watch, secret);
    secret_forget(secret);
    return is_settled;
}

static void on_timer(uv_timer_t *timer);

static void look_in(struct password_watch *watch, uint64_t ns)
{
    uv_timer_start(&watch->timer, on_timer, ns / NS_PER_MS, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct password_watch *watch = timer->data;
    watch->looked_ns = clock_ns();
    look_in(watch, look(watch) ? upstream_time(watch->upstream, EVERY_NS) : SETTLED_NS);
}

static void on_refused(uv_async_t *async)
{
    struct password_watch *watch = async->data;
    uint64_t since_ns = clock_ns() - watch->looked_ns;
    look_in(watch, since_ns < LEAST_NS ? LEAST_NS - since_ns : 0);
}

void password_watch_open(struct password_watch *watch, struct loop *loop)
{
    uv_timer_init(&loop->uv, &watch->timer);
    uv_async_init(&loop->uv, &watch->refused, on_refused);
    watch->timer.data = watch->refused.data = watch;
    if (present(watch)->path == NULL)
        return;
    look_in(watch, upstream_time(watch->upstream, EVERY_NS));
    upstream_set_on_refusal(watch->upstream, &watch->refused);
}

void password_watch_close(struct password_watch *watch)
{
    upstream_set_on_refusal(watch->upstream, NULL);
    uv_close((uv_handle_t *)&watch->timer, NULL);
    uv_close((uv_handle_t *)&watch->refused, NULL);
}
