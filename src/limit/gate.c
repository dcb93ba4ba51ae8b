/*
 * Asks the limits that bind a command, then charges them.
 *
 * Nothing is charged unless everything passes: a single limit decides on its word, several under the subject's lock.
 */
#include "limit/gate.h"

#include <assert.h>

#define NS_IN_MS 1000000

/* Bit i: limit i binds the command. A command of a newer table than the policy's is as good as unknown: row 0. */
static uint64_t bound(const struct policy *policy, const struct command *command)
{
    assert(policy->n_binds > 0);
    return policy->binds[command->id < policy->n_binds ? command->id : 0];
}

static unsigned lowest(uint64_t bits)
{
    return (unsigned)__builtin_ctzll(bits);
}

static void refuse(struct verdict *verdict, const struct limit *limit, uint64_t wait_ns)
{
    verdict->limit = limit;
    verdict->wait_ns = wait_ns < GATE_NEVER ? (int64_t)wait_ns : GATE_NEVER;
}

static bool pass_one(const struct policy *policy, struct subject *subject, unsigned index, uint64_t cost,
                     uint64_t now_ns, struct verdict *verdict)
{
    const struct limit *limit = &policy->limits[index];
    uint64_t wait_ns = funnel_take(&subject->funnels[index], &limit->rate, now_ns, cost);
    if (wait_ns > 0)
        refuse(verdict, limit, wait_ns);
    return wait_ns == 0;
}

/* The longest wait of all; 0 when all pass. */
static uint64_t ask_all(const struct policy *policy, const struct subject *subject, uint64_t binds, uint64_t cost,
                        uint64_t now_ns, const struct limit **slowest)
{
    uint64_t longest_ns = 0;
    for (; binds; binds &= binds - 1) {
        unsigned i = lowest(binds);
        uint64_t wait_ns = funnel_ask(&subject->funnels[i], &policy->limits[i].rate, now_ns, cost);
        if (wait_ns > longest_ns) {
            longest_ns = wait_ns;
            *slowest = &policy->limits[i];
        }
    }
    return longest_ns;
}

static bool pass_jointly(const struct policy *policy, struct subject *subject, uint64_t binds, uint64_t cost,
                         uint64_t now_ns, struct verdict *verdict)
{
    const struct limit *slowest = NULL;
    subject_lock(subject);
    uint64_t wait_ns = ask_all(policy, subject, binds, cost, now_ns, &slowest);
    for (; wait_ns == 0 && binds; binds &= binds - 1) {
        unsigned i = lowest(binds);
        funnel_charge(&subject->funnels[i], &policy->limits[i].rate, now_ns, cost);
    }
    subject_unlock(subject);
    if (wait_ns > 0)
        refuse(verdict, slowest, wait_ns);
    return wait_ns == 0;
}

bool gate_pass(const struct policy *policy, struct subject *subject, const struct command *command, uint64_t cost,
               uint64_t now_ns, struct verdict *verdict)
{
    uint64_t binds = bound(policy, command);
    if (!binds)
        return true;
    assert(subject->n_funnels == policy->n_limits);
    if (policy->is_joint)
        return pass_jointly(policy, subject, binds, cost, now_ns, verdict);
    return pass_one(policy, subject, lowest(binds), cost, now_ns, verdict);
}

/* ---- what the client reads ---- */

static char *put(char *at, struct slice text)
{
    memcpy(at, text.at, text.len);
    return at + text.len;
}

static char *put_number(char *at, uint64_t number)
{
    char digits[20];
    size_t first = sizeof digits;
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return put(at, slice_of(digits + first, sizeof digits - first));
}

/* By hand, because a refusal must cost less than a pass and printf does not. */
size_t gate_refusal(char *out, struct slice prefix, const struct verdict *verdict)
{
    const size_t most = 32; /* of the prefix, as the configuration has it: the rest always fits then */
    char *at = put(out, SLICE("-"));
    at = put(at, slice_of(prefix.at, prefix.len < most ? prefix.len : most));
    at = put(at, SLICE(" retry_in_ms="));
    if (verdict->wait_ns == GATE_NEVER)
        at = put(at, SLICE("-1"));
    else
        at = put_number(at, (uint64_t)verdict->wait_ns / NS_IN_MS + (verdict->wait_ns % NS_IN_MS != 0));
    at = put(at, SLICE(" limit="));
    at = put(at, slice_str(verdict->limit->label));
    at = put(at, SLICE("\r\n"));
    return (size_t)(at - out);
}
