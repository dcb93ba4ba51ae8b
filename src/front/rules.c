#include "front/rules.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/*
 * The policy of unbound connections. The policy matches no client: front/client/unbound.c applies
 * the policy to addresses.
 */
static void make_unbound_policy(struct rules *rules, bool is_shadow)
{
    const uint64_t it = 1;
    rules->unbound_policy = (struct policy){
        .name = "unauthenticated",
        .n_limits = 1,
        .limits = &rules->unbound_limit,
        .policy_state = rules->unbound_state,
        .of_unit[UNIT_CONNECTIONS] = it,
        .of_scope[PER_SUBJECT] = it,
        .of_action[OVER_CLOSE] = it,
        .shadows = is_shadow ? it : 0,
    };
}

static char *copy(const char *text)
{
    return text != NULL ? mem_strndup(text, strlen(text)) : NULL;
}

static void rules_forget(char *secret)
{
    if (secret != NULL)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

void rules_copy(struct rules *model, const struct rules *rules)
{
    const size_t past = offsetof(struct rules, policies);
    atomic_init(&model->holders, 0);
    memcpy((char *)model + past, (const char *)rules + past, sizeof *rules - past);
}

struct rules *rules_new(const struct rules *model, struct policies *policies)
{
    struct rules *rules = mem_alloc(sizeof *rules);
    rules_copy(rules, model);
    atomic_init(&rules->holders, 1);
    rules->policies = policies;
    make_unbound_policy(rules, policies_is_shadow(policies));
    exceptions_get(rules->exceptions);
    named_get(rules->named);
    rules->upstream_password = (struct own_password){
        copy(model->upstream_password.newest), copy(model->upstream_password.before),
        copy(model->upstream_password.path), model->upstream_password.number};
    tls_context_get(rules->tls);
    tls_context_get(rules->upstream_tls);
    return rules;
}

struct rules *rules_get(struct rules *rules)
{
    atomic_fetch_add_explicit(&rules->holders, 1, memory_order_relaxed);
    return rules;
}

void rules_fini(struct rules *rules)
{
    exceptions_put(rules->exceptions);
    policies_put(rules->policies);
    named_put(rules->named);
    rules_forget(rules->upstream_password.newest);
    rules_forget(rules->upstream_password.before);
    free(rules->upstream_password.path);
    tls_context_put(rules->tls);
    tls_context_put(rules->upstream_tls);
}

void rules_put(struct rules *rules)
{
    if (atomic_fetch_sub_explicit(&rules->holders, 1, memory_order_acq_rel) > 1)
        return;
    rules_fini(rules);
    free(rules);
}
