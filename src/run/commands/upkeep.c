#include "run/commands/upkeep.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "run/config/secret.h"

#define AGAIN_MS 1000 /* retry of an end that failed for lack of memory */
#define EVERY_NS (10 * NS_PER_S)
/* least time between two reads of the file, however often a login is refused */
#define LEAST_NS (100 * NS_PER_MS)
#define SETTLED_NS (200 * NS_PER_MS) /* a file that was changed later may still be written to */

/* ---- ends in time ---- */

static void upkeep_on_end(uv_timer_t *timer);

/* Starts the timer for the next end. late_ms: the wait if the next end has passed already. */
static void await(struct upkeep *upkeep, uint64_t late_ms)
{
    uint64_t now_ns = clock_ns(), next_ns = config_manager_next_end(upkeep->manager);
    if (next_ns == 0 || uv_is_closing((uv_handle_t *)&upkeep->ending))
        return;
    uv_update_time(upkeep->ending.loop);
    uv_timer_start(&upkeep->ending, upkeep_on_end,
                   next_ns > now_ns ? ns_to_ms_up(next_ns - now_ns) : late_ms, 0);
}

static void upkeep_on_end(uv_timer_t *timer)
{
    struct upkeep *upkeep = timer->data;
    config_manager_end(upkeep->manager, clock_ns());
    await(upkeep, AGAIN_MS);
}

/* ---- the password ---- */

static const struct own_password *present(const struct upkeep *upkeep)
{
    return &config_manager_rules(upkeep->manager)->upstream_password;
}

/*
 * Logs once for each reason that the file cannot be used. False at the first failure: the file may
 * be in the middle of a write.
 */
static bool upkeep_doubt(struct upkeep *upkeep, const char *why)
{
    if (!upkeep->is_doubted) {
        upkeep->is_doubted = true;
        return false;
    }
    if (strncmp(upkeep->why, why, sizeof upkeep->why - 1) == 0)
        return true;
    snprintf(upkeep->why, sizeof upkeep->why, "%s", why);
    journal_log(upkeep->journal, LOG_WARN, "upstream",
                "upstream-password-file: %s: weir keeps using the previous "
                "password",
                why);
    return true;
}

static void upkeep_use(struct upkeep *upkeep, char *secret)
{
    upkeep->why[0] = '\0';
    upkeep->is_doubted = false;
    if (strcmp(secret, present(upkeep)->newest) != 0 &&
        config_manager_set_password(upkeep->manager, secret))
        journal_log(upkeep->journal, LOG_INFO, "upstream",
                    "upstream-password-file has a new password: weir uses it from now on");
}

/* Reads the file. False: the file may be in the middle of a write, and must be read again soon. */
static bool upkeep_look(struct upkeep *upkeep)
{
    char *secret = NULL;
    char why[UPKEEP_WHY];
    uint64_t age_ns;
    if (!secret_read(present(upkeep)->path, &secret, &age_ns, (struct why){why, sizeof why}))
        return upkeep_doubt(upkeep, why);
    bool is_settled = age_ns >= SETTLED_NS;
    if (is_settled)
        upkeep_use(upkeep, secret);
    secret_forget(secret);
    return is_settled;
}

static void upkeep_on_password(uv_timer_t *timer);

static void upkeep_look_in(struct upkeep *upkeep, uint64_t ns)
{
    uv_timer_start(&upkeep->password, upkeep_on_password, ns / NS_PER_MS, 0);
}

static void upkeep_on_password(uv_timer_t *timer)
{
    struct upkeep *upkeep = timer->data;
    upkeep->looked_ns = clock_ns();
    upkeep_look_in(upkeep,
                   upkeep_look(upkeep) ? upstream_time(upkeep->upstream, EVERY_NS) : SETTLED_NS);
}

static void upkeep_on_refused(uv_async_t *async)
{
    struct upkeep *upkeep = async->data;
    uint64_t since_ns = clock_ns() - upkeep->looked_ns;
    upkeep_look_in(upkeep, since_ns < LEAST_NS ? LEAST_NS - since_ns : 0);
}

/* ---- the life of upkeep ---- */

void upkeep_open(struct upkeep *upkeep, struct loop *loop)
{
    uv_timer_init(&loop->uv, &upkeep->ending);
    uv_timer_init(&loop->uv, &upkeep->password);
    uv_async_init(&loop->uv, &upkeep->refused, upkeep_on_refused);
    upkeep->ending.data = upkeep->password.data = upkeep->refused.data = upkeep;
    if (present(upkeep)->path == NULL)
        return;
    upkeep_look_in(upkeep, upstream_time(upkeep->upstream, EVERY_NS));
    upstream_set_on_refusal(upkeep->upstream, &upkeep->refused);
}

void upkeep_await(struct upkeep *upkeep)
{
    await(upkeep, 0);
}

void upkeep_close(struct upkeep *upkeep)
{
    upstream_set_on_refusal(upkeep->upstream, NULL);
    uv_close((uv_handle_t *)&upkeep->ending, NULL);
    uv_close((uv_handle_t *)&upkeep->password, NULL);
    uv_close((uv_handle_t *)&upkeep->refused, NULL);
}
