#include "quota/giving_back.h"

#include "base/clock.h"

#define LONGEST_NS (30 * NS_PER_S) /* for so long it is asked again ... */
#define AGAIN_NS (500 * NS_PER_MS) /* ... after so long */

void giving_back_init(struct giving_back *giving_back, struct alarms *alarms)
{
    list_init(&giving_back->decisions);
    giving_back->alarms = alarms;
}

void giving_back_begin(struct giving_back *giving_back, struct decision *decision, uint64_t now_ns)
{
    decision->ask.rule.kind = QUOTA_RELEASE;
    decision->ask.token = slice_str(decision->token);
    decision->until_ns = now_ns + LONGEST_NS;
    list_push(&giving_back->decisions, &decision->in_client);
}

bool giving_back_again(struct giving_back *giving_back, struct decision *decision, uint64_t now_ns)
{
    uint64_t again_ns = now_ns + AGAIN_NS;
    if (decision->owner != NULL || list_is_empty(&decision->in_client) || again_ns > decision->until_ns)
        return false;
    alarm_stop(giving_back->alarms, &decision->alarm);
    alarm_set(giving_back->alarms, &decision->alarm, again_ns);
    return true;
}

void giving_back_end(struct giving_back *giving_back)
{
    struct list now;
    list_take_all(&now, &giving_back->decisions);
    while (!list_is_empty(&now)) {
        struct decision *decision = container_of(now.next, struct decision, in_client);
        list_take(&decision->in_client);
        alarm_stop(giving_back->alarms, &decision->alarm);
        if (!decision->is_asking)
            decision_free(decision);
    }
}
