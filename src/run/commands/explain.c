/* Uses the policies, the gate and the replies that serve clients. Only the subject is made up. */
#include "run/commands/explain.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/slice.h"
#include "base/why.h"
#include "limit/command/keys.h"
#include "limit/figures/registry.h"
#include "quota/report.h"
#include "resp/build.h"
#include "resp/emit.h"

#define REST_NS (NS_PER_S << 30) /* a time at which no funnel is in debt */
#define IP_BIT 31                /* not one of the bits that set_fact uses for `texts` */

/* ---- the reply as lines of text ---- */

/* Takes the type and the number of the next header, "*3\r\n", off *rest. */
static char take_header(struct slice *rest, int64_t *number)
{
    const char *end = memchr(rest->at, '\r', rest->len);
    char type = rest->at[0];
    if (!num_parse(slice_of(rest->at + 1, (size_t)(end - rest->at) - 1), number))
        *number = 0;
    split_take(rest, (size_t)(end - rest->at) + 2);
    return type;
}

static struct slice explain_take_text(struct slice *rest, int64_t len)
{
    struct slice text = split_take(rest, (size_t)len);
    split_take(rest, 2);
    return text;
}

/* Prints a value that is no aggregate. */
static void print_scalar(struct slice *rest, FILE *out)
{
    int64_t number;
    char type = take_header(rest, &number);
    struct slice text = type == '$' ? explain_take_text(rest, number) : SLICE("none");
    if (type == ':')
        fprintf(out, "%" PRId64, number);
    else
        fprintf(out, "%.*s", (int)text.len, text.at);
}

/* Prints "name value, name value". */
static void print_row(struct slice *rest, FILE *out)
{
    int64_t pairs;
    take_header(rest, &pairs);
    for (int64_t i = 0; i < pairs; i++) {
        fputs(i > 0 ? ", " : "  ", out);
        print_scalar(rest, out);
        fputc(' ', out);
        print_scalar(rest, out);
    }
    fputc('\n', out);
}

static void print_array(struct slice *rest, FILE *out)
{
    int64_t n;
    take_header(rest, &n);
    bool has_rows = n > 0 && rest->at[0] == '%';
    for (int64_t i = 0; i < n && !has_rows; i++) {
        fputc(' ', out);
        print_scalar(rest, out);
    }
    fputc('\n', out);
    for (int64_t i = 0; i < n && has_rows; i++)
        print_row(rest, out);
}

/*
 * Prints a map that resp/build.h has made. A value is a text, a number, nil ("none"), or an array.
 * An array of plain values is printed on one line. An array of maps is printed below, a line for
 * each map.
 */
static void plain_reply_print(struct slice reply, FILE *out)
{
    int64_t pairs;
    take_header(&reply, &pairs);
    for (int64_t i = 0; i < pairs; i++) {
        print_scalar(&reply, out);
        if (reply.at[0] == '*') {
            print_array(&reply, out);
            continue;
        }
        fputc(' ', out);
        print_scalar(&reply, out);
        fputc('\n', out);
    }
}

/* ---- the client ---- */

static bool set_ip(struct facts *facts, struct slice value)
{
    return slice_eq_nocase(value, SLICE("unix")) || ip_parse(value, &facts->ip);
}

/*
 * A client has one value of each kind. `given` has a bit for each kind given so far. False: the
 * kind is given twice.
 */
static bool explain_note_given(unsigned *given, unsigned row, struct slice kind, struct why why)
{
    if ((*given >> row & 1) != 0)
        return why_refuse(
            why, "%.*s: is given twice, but a client has only one: use one --explain for each",
            WHY_SLICE(kind));
    *given |= 1U << row;
    return true;
}

static bool set_fact(struct facts *facts, struct slice term, unsigned *given, struct why why)
{
    struct slice value = term, kind;
    split_next(&value, ':', &kind);
    if (value.at == NULL || value.len == 0)
        return why_refuse(
            why,
            "\"%.*s\" names no client: write user:NAME, ip:ADDRESS, name:, tls:, listener: or key:",
            WHY_SLICE(term));
    if (slice_eq_nocase(kind, SLICE("ip")))
        return explain_note_given(given, IP_BIT, kind, why) &&
               (set_ip(facts, value) ||
                why_refuse(why, "\"%.*s\" is not an address", WHY_SLICE(value)));
    if (slice_eq_nocase(kind, SLICE("user")) && slice_eq(value, SLICE("default")))
        return why_refuse(why, "user:default means no login: leave user: out");
    struct {
        struct slice kind;
        struct slice *fact;
    } const texts[] = {
        {SLICE("user"), &facts->user},         {SLICE("name"), &facts->name},
        {SLICE("tls"), &facts->tls},           {SLICE("key"), &facts->key},
        {SLICE("listener"), &facts->listener},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (slice_eq_nocase(kind, texts[i].kind)) {
            *texts[i].fact = value;
            return explain_note_given(given, (unsigned)i, kind, why);
        }
    return why_refuse(
        why,
        "unknown kind \"%.*s\": write user:, ip:, name:, tls:, listener: or key:", WHY_SLICE(term));
}

/*
 * Sets the facts of the client. Without a listener: term the client uses the first `listen`
 * address, kept in `listener`.
 */
static bool read_facts(const struct config *config, struct slice subject, struct facts *facts,
                       char listener[ADDRESS_TEXT], struct why why)
{
    struct slice term;
    unsigned given = 0;
    *facts = (struct facts){0};
    address_print(&config->listens[0].address, listener, ADDRESS_TEXT);
    facts->listener = slice_str(listener);
    while (split_next(&subject, ',', &term))
        if (!set_fact(facts, term, &given, why))
            return false;
    return true;
}

/* ---- the command ---- */

/* Returns the request as a client would send it; heap. *request points to the same bytes. */
static char *request_of(const struct slice *words, size_t n, struct slice *request)
{
    size_t room = EMIT_HEADER_MAX * (n + 1);
    for (size_t i = 0; i < n; i++)
        room += words[i].len + 2;
    char *bytes = mem_alloc(room);
    *request = slice_of(bytes, emit_array(bytes, words, n));
    return bytes;
}

static struct slice command_name_at(const void *arg, size_t i)
{
    const struct command *row = command_table_row(arg, i);
    return slice_of(row->name, row->name_len);
}

/*
 * Sets `why` for a command without a row: the name as it is looked up, "config|gett", and the
 * nearest known name.
 */
static void tell_unknown(const struct command_table *table, const struct slice *words, size_t n,
                         char *why, size_t why_size)
{
    char name[COMMAND_NAME_MAX + 1];
    const struct command *container = command_find(table, words[0], SLICE(""));
    bool has_sub = n > 1 && container->id > 0;
    if (has_sub)
        snprintf(name, sizeof name, "%.*s|%.*s", WHY_SLICE(words[0]), WHY_SLICE(words[1]));
    else
        snprintf(name, sizeof name, "%.*s", WHY_SLICE(words[0]));
    struct slice near =
        near_name(slice_str(name), command_table_count(table), command_name_at, table);
    if (near.len == 0)
        why_set(why, why_size,
                "%s is not a known command: only limits on all, cost, bytes and inflight apply",
                name);
    else
        why_set(
            why, why_size,
            "%s is not a known command (did you mean %.*s?): only limits on all, cost, bytes and inflight "
            "apply",
            name, WHY_SLICE(near));
}

/*
 * Returns the funnels of a new subject and a new connection. The policy's counters own the shared
 * subject of the policy.
 */
static struct charge_target explain_charge_target_of(const struct policy *policy)
{
    struct charge_target target = {.policy = policy};
    if (policy == NULL)
        return target;
    target.holders[PER_SUBJECT] = subject_new_detached(policy->policy_state, PER_SUBJECT);
    target.holders[PER_CONNECTION] = subject_new_detached(policy->policy_state, PER_CONNECTION);
    target.holders[PER_POLICY] = policy->policy_state->everybody;
    return target;
}

static enum explained explain_print(const struct build *reply, FILE *out, enum gate gate)
{
    plain_reply_print(slice_of(reply->at, reply->len), out);
    return gate == GATE_PASS || gate == GATE_WAIT ? EXPLAINED_PASSES : EXPLAINED_STOPPED;
}

static enum explained explain_with(const struct config *config, const struct command_table *table,
                                   struct facts *facts, const struct explained_call *call,
                                   FILE *out)
{
    const struct rules *rules = &config->rules;
    struct slice key;
    char name[SUBJECT_NAME_MAX];
    if (facts->key.at == NULL && keys_first(call->command, call->request, call->argc, &key))
        facts->key = key;
    const struct policy *policy = policies_match(rules->policies, facts);
    const struct report_subject explained_subject = {
        .name = slice_of(name, identity_subject(&rules->identity, facts, name)),
        .target = explain_charge_target_of(policy),
    };
    struct build reply;
    build_init(&reply, true);
    bool has_funnels = policy == NULL || (explained_subject.target.holders[PER_SUBJECT] != NULL &&
                                          explained_subject.target.holders[PER_CONNECTION] != NULL);
    enum gate gate = has_funnels
                         ? report_explain(&reply, rules->policies, table, &explained_subject, call)
                         : GATE_PASS;
    enum explained result =
        !has_funnels || reply.is_broken ? EXPLAINED_NOT : explain_print(&reply, out, gate);
    build_fini(&reply);
    subject_free_detached(explained_subject.target.holders[PER_CONNECTION]);
    subject_free_detached(explained_subject.target.holders[PER_SUBJECT]);
    return result;
}

enum explained explain(const struct config *config, const struct command_table *table,
                       struct slice subject, const struct slice *words, size_t n_words, FILE *out,
                       char *why, size_t why_size)
{
    struct facts facts;
    char listener[ADDRESS_TEXT];
    if (!read_facts(config, subject, &facts, listener, (struct why){why, why_size}))
        return EXPLAINED_NOT;
    struct registry *registry = registry_new();
    enum explained result = EXPLAINED_NOT;
    why_set(why, why_size, "the configuration has more limits than weir can hold");
    if (policies_enroll(config->rules.policies, registry)) {
        policies_bind(config->rules.policies, table);
        struct explained_call call = {.argc = (uint32_t)n_words, .now_ns = REST_NS};
        const struct command *found =
            command_find(table, words[0], n_words > 1 ? words[1] : SLICE(""));
        char *bytes = request_of(words, n_words, &call.request);
        call.command =
            quota_is_left(config->rules.cell, found) ? command_table_row(table, 0) : found;
        call.lane = report_lane(call.command, config->lanes_private);
        why_set(why, why_size, "out of memory");
        result = explain_with(config, table, &facts, &call, out);
        if (result != EXPLAINED_NOT && call.command->id > 0)
            why[0] = '\0';
        else if (result != EXPLAINED_NOT)
            tell_unknown(table, words, n_words, why, why_size);
        free(bytes);
    }
    registry_free(registry);
    return result;
}
