#include "run/commands/live_rules.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "admin/http.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "limit/gate.h"

/* dropped overrides logged one by one at a time; further ones are logged as a number */
#define NAMED_DROPPED 16

/* ---- max-clients and the limit on open files ---- */

#define PROCESS_FILES 32 /* for the main thread's loop and connections, the log, files being read */
/* per worker: loop, shared lanes of a few users, auth lanes, spare lanes, scripts */
#define WORKER_FILES 24
#define PRIVATE_SHARE 8 /* with shared lanes one client in eight has a private lane */

/* Returns how many open files weir needs with that many clients. */
static rlim_t files_for(const struct config *config, rlim_t clients)
{
    rlim_t lanes = config->lanes_private ? clients : clients / PRIVATE_SHARE;
    rlim_t operators = config->admin_listen.host != NULL ? HTTP_GUESTS : 0;
    return clients + lanes + operators + PROCESS_FILES +
           config->workers * (WORKER_FILES + config->n_listens);
}

/*
 * Raises the limit on open files as far as needed and possible. Returns `clients` if that many
 * clients fit. Else logs and returns the number of clients that fit.
 */
static unsigned fit(const struct config *config, unsigned clients)
{
    rlim_t most = files_for(config, clients);
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= most)
        return clients;
    limit.rlim_cur = limit.rlim_max < most ? limit.rlim_max : most;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= most)
        return clients;
    rlim_t fixed = files_for(config, 0), room = limit.rlim_cur > fixed ? limit.rlim_cur - fixed : 0;
    rlim_t fits = config->lanes_private ? room / 2 : room * PRIVATE_SHARE / (PRIVATE_SHARE + 1);
    fits = fits > 0 ? fits : 1;
    log_warn(
        "max-clients is lowered from %u to %lu: the system allows this process %lu open files (ulimit -n)",
        clients, (unsigned long)fits, (unsigned long)limit.rlim_cur);
    return (unsigned)fits;
}

/*
 * Returns the number of clients that fit, at most `asked`. The limit on open files is raised only
 * when the setting changes, so that the warning is not repeated.
 */
static unsigned fit_clients(struct live_rules *live, unsigned asked)
{
    if (live->asked_clients != asked)
        live->max_clients = fit(live->start, asked);
    live->asked_clients = asked;
    return live->max_clients;
}

/* ---- installing new rules ---- */

static void install(struct live_rules *live, struct rules *rules)
{
    struct rules *before = live->rules;
    live->rules = rules;
    if (live->on_change != NULL)
        live->on_change(live->arg);
    if (before != NULL)
        rules_put(before);
}

/*
 * Installs new rules with new exceptions. Takes over the reference on `policies`, for which
 * policies_bind has been called with live->commands. `before`: as in exceptions_of.
 */
static void live_rules_renew(struct live_rules *live, const struct rules *model,
                             struct policies *policies, const struct exceptions *before)
{
    const struct exceptions_of of = {.policies = policies,
                                     .table = live->commands,
                                     .unlimited = live->unlimited,
                                     .blocks = live->blocks,
                                     .variants = &live->variants,
                                     .block_id = live->block.id,
                                     .before = before};
    struct rules rules;
    rules_copy(&rules, model);
    rules.exceptions = exceptions_new(&of);
    rules.block_id = live->has_block ? live->block.id : TOP_NO_LIMIT;
    install(live, rules_new(&rules, policies));
    exceptions_put(rules.exceptions);
}

/*
 * Returns the passwords after a change: `newest`, and the running password as the previous one. The
 * strings stay owned by the caller and by `running`.
 */
static struct own_password followed_by(const struct own_password *running, char *newest, char *path)
{
    struct own_password password = *running;
    if (strcmp(newest, running->newest) != 0)
        password = (struct own_password){
            .newest = newest, .before = running->newest, .number = running->number + 1};
    password.path = path;
    return password;
}

/* Returns the passwords after a reload, which may change the password, but not add or remove it. */
static struct own_password password_of(const struct live_rules *live, const struct config *config)
{
    const struct own_password *fresh = &config->rules.upstream_password;
    if (live->start->rules.upstream_password.newest == NULL || live->rules == NULL)
        return live->start->rules.upstream_password;
    if (fresh->newest == NULL)
        return live->rules->upstream_password;
    return followed_by(&live->rules->upstream_password, fresh->newest, fresh->path);
}

/* Returns the TLS context after a reload. Only a restart adds TLS to a listener, or removes TLS. */
static struct tls_context *kept(struct tls_context *fresh, struct tls_context *running)
{
    return fresh != NULL ? fresh : running;
}

/* Logs the overrides of `before` that are not in `kept`. */
static void name_dropped(const struct named_limit *before, const struct shared_set *kept,
                         uint64_t now_ns, struct journal *journal)
{
    size_t dropped = 0;
    for (size_t i = 0; kept != before->overrides && i < shared_set_count(before->overrides); i++) {
        const struct override *one = overrides_at(before->overrides, i);
        if (override_is_over(one, now_ns) || overrides_find(kept, one->key, now_ns) != NULL ||
            ++dropped > NAMED_DROPPED)
            continue;
        journal_log(journal, LOG_WARN, "reload",
                    "dropped at the reload, because it was only SET: [limit %s] %s = "
                    "%.*s for %.*s",
                    before->name, quota_algorithm(before->rule.kind)->name, WHY_SLICE(one->rates),
                    override_shown(one->key), one->key.at);
    }
    if (dropped > NAMED_DROPPED)
        journal_log(
            journal, LOG_WARN, "reload",
            "dropped at the reload, because they were only SET: rates of %zu more keys of [limit %s]",
            dropped - NAMED_DROPPED, before->name);
}

/*
 * Copies overrides from `before` to `fresh`, which is not shared yet, for limits that still exist
 * with the same algorithm. After a reload only overrides with an end are kept. Dropped overrides
 * are logged.
 */
static void inherit_overrides(struct named *fresh, const struct named *before, bool is_reload,
                              uint64_t now_ns, struct journal *journal)
{
    for (size_t i = 0; i < named_count(before); i++) {
        const struct named_limit *was = named_at(before, i);
        const struct named_limit *is = named_find(fresh, slice_str(was->name));
        if (was->overrides == NULL)
            continue;
        bool stays = is != NULL && is->rule.kind == was->rule.kind;
        struct shared_set *kept = !stays      ? NULL
                                  : is_reload ? shared_set_living(was->overrides, true, now_ns)
                                              : shared_set_get(was->overrides);
        name_dropped(was, kept, now_ns, journal);
        if (stays)
            named_override(fresh, slice_str(was->name), kept);
    }
}

/*
 * Named limits keep their counters. Keys of a limit with a new algorithm start anew at their next
 * request.
 */
static void live_rules_inherit(struct live_rules *live, struct named *fresh, bool is_reload)
{
    named_inherit(fresh, live->rules->named);
    inherit_overrides(fresh, live->rules->named, is_reload, clock_ns(), live->journal);
    for (size_t i = 0; i < named_count(fresh); i++) {
        const struct named_limit *limit = named_at(fresh, i);
        const struct named_limit *before = named_find(live->rules->named, slice_str(limit->name));
        if (before != NULL && before->rule.kind != limit->rule.kind)
            journal_log(live->journal, LOG_WARN, "limit",
                        "[limit %s] changes to %s from %s: its keys start empty", limit->name,
                        quota_algorithm(limit->rule.kind)->name,
                        quota_algorithm(before->rule.kind)->name);
    }
}

/*
 * Enters the limits of each variant into the policy state of the variant's policy, which is in the
 * registry already.
 */
static bool enroll(const struct variants *variants, const struct policies *policies,
                   struct registry *registry)
{
    for (size_t i = 0; i < variants->n; i++) {
        struct policy *policy = variants->at[i].policy;
        policy->policy_state = policies_at(policies, policy->index)->policy_state;
        for (size_t j = 0; j < policy->n_limits; j++)
            if (!registry_enter(registry, policy->policy_state, limit_line(&policy->limits[j]),
                                &policy->limits[j]))
                return false;
    }
    return true;
}

/*
 * Sets the rates by which debts run off, once all limits have their index. Limits of a variant use
 * the variant's own rates, except limits that all subjects share.
 */
static void rate(const struct variants *variants, struct policies *policies)
{
    policies_rate(policies);
    for (size_t i = 0; i < variants->n; i++) {
        struct policy *variant = variants->at[i].policy;
        policy_rate(variant, policies_at(policies, variant->index)->rates, policies);
    }
}

bool live_rules_adopt(struct live_rules *live, const struct config *config,
                      const struct variants *variants, bool is_reload)
{
    if (!policies_enroll(config->rules.policies, live->registry) ||
        !enroll(variants, config->rules.policies, live->registry))
        return false;
    if (variants->n > 0)
        rate(variants, config->rules.policies);
    live->is_changed |=
        registry_take_changed(live->registry) || variants->n > 0 || live->variants.n > 0;
    if (live->rules != NULL)
        live_rules_inherit(live, config->rules.named, is_reload);
    struct rules model = config->rules;
    model.unbound_limit = live->unbound;
    model.unbound_limit.rate.count = model.unbound_limit.rate.burst = config->rules.unauthenticated;
    model.unbound_state = live->addresses;
    model.max_clients = fit_clients(live, config->rules.max_clients);
    model.upstream_password = password_of(live, config);
    if (live->rules != NULL) {
        if (networks_are_none(&model.proxies))
            model.proxies = live->rules->proxies;
        model.tls = kept(model.tls, live->rules->tls);
        model.upstream_tls = kept(model.upstream_tls, live->rules->upstream_tls);
    }
    log_set_format(config->log_format);
    log_set_level(config->log_level);
    variants_fini(&live->variants);
    live->variants = *variants;
    live_rules_renew(live, &model, policies_rebind(config->rules.policies, live->commands), NULL);
    return true;
}

/* ---- debts of subjects without clients ---- */

struct settling {
    const struct live_rules *live;
    /* by number of the policy state; NULL: the policy no longer exists */
    const struct policy **of_state;
    size_t n_states;
    uint64_t now_ns;
};

static void settle_subject(void *arg, struct subject *subject)
{
    const struct settling *settling = arg;
    uint16_t number = subject->policy_state->number;
    const struct policy *policy = number < settling->n_states ? settling->of_state[number] : NULL;
    if (policy == NULL)
        return;
    const struct policy *own =
        variants_find(&settling->live->variants, subject_name(subject), policy);
    gate_settle_holder(own != NULL ? own : policy, subject, PER_SUBJECT, settling->now_ns);
}

static void settle_common(const struct settling *settling, const struct policy *policy)
{
    struct policy_state *policy_state = policy->policy_state;
    gate_settle_holder(policy, policy_state->overflow, PER_SUBJECT, settling->now_ns);
    if (policy_state->everybody != NULL)
        gate_settle_holder(policy, policy_state->everybody, PER_POLICY, settling->now_ns);
}

void live_rules_settle(struct live_rules *live, struct subjects *const tables[2])
{
    const struct policies *policies = live->rules->policies;
    if (!live->is_changed)
        return;
    live->is_changed = false;
    struct settling settling = {
        .live = live, .n_states = registry_count(live->registry), .now_ns = clock_ns()};
    settling.of_state = mem_zalloc(settling.n_states, sizeof(struct policy *));
    for (size_t i = 0; i < policies_count(policies); i++) {
        settling.of_state[policies_at(policies, i)->policy_state->number] =
            policies_at(policies, i);
        settle_common(&settling, policies_at(policies, i));
    }
    for (int i = 0; i < 2; i++)
        subjects_look(tables[i], settle_subject, &settling);
    free(settling.of_state);
}

void live_rules_rebind(struct live_rules *live, struct command_table *commands)
{
    command_table_carry_costs(commands, live->commands);
    command_table_put(live->commands);
    live->commands = commands;
    live_rules_renew(live, live->rules, policies_rebind(live->rules->policies, commands), NULL);
}

bool live_rules_set_blocks(struct live_rules *live, struct shared_set *blocks)
{
    if (!live->has_block &&
        !registry_enter(live->registry, live->unlimited, SLICE("block"), &live->block))
        return false;
    live->has_block = true;
    shared_set_put(live->blocks);
    live->blocks = blocks;
    live_rules_renew(live, live->rules, policies_get(live->rules->policies),
                     live->rules->exceptions);
    return true;
}

void live_rules_set_named(struct live_rules *live, struct named *named)
{
    struct rules model;
    rules_copy(&model, live->rules);
    model.named = named;
    install(live, rules_new(&model, policies_get(live->rules->policies)));
    named_put(named);
}

void live_rules_set_password(struct live_rules *live, char *password)
{
    struct rules model;
    rules_copy(&model, live->rules);
    model.upstream_password =
        followed_by(&live->rules->upstream_password, password, model.upstream_password.path);
    install(live, rules_new(&model, policies_get(live->rules->policies)));
}

void live_rules_init(struct live_rules *live, const struct config *start,
                     struct command_table *commands, struct journal *journal)
{
    *live = (struct live_rules){.start = start,
                                .commands = command_table_get(commands),
                                .registry = registry_new(),
                                .journal = journal};
    live->unlimited = registry_policy(live->registry, SLICE(""));
    /* no policy can have this name */
    live->addresses = registry_policy(live->registry, SLICE("[weir]"));
    live->unbound = (struct limit){.unit = UNIT_CONNECTIONS,
                                   .scope = PER_SUBJECT,
                                   .action = OVER_CLOSE,
                                   .label = "unauthenticated"};
    if (!registry_enter(live->registry, live->addresses, SLICE("unauthenticated"), &live->unbound))
        abort(); /* the first limit always has room */
}

void live_rules_fini(struct live_rules *live)
{
    rules_put(live->rules);
    shared_set_put(live->blocks);
    variants_fini(&live->variants);
    command_table_put(live->commands);
    registry_free(live->registry);
}
