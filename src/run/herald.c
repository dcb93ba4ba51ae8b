#include "run/herald.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "run/notify.h"

bool herald_tell(struct herald *herald, const struct census *census)
{
    char why[CENSUS_WHY_ROOM], words[HERALD_ROOM];
    bool is_ready = census_is_ready(census, why);
    bool is_first = is_ready && !herald->has_been_ready;
    if (is_ready)
        snprintf(words, sizeof words, "forwarding to %s", topology_home(census->topology)->text);
    else
        snprintf(words, sizeof words, "%s", why);
    herald->has_been_ready |= is_ready;
    if (is_first)
        notify("READY=1\nSTATUS=%s", words);
    else if (strcmp(words, herald->told) != 0)
        notify("%sSTATUS=%s", census->is_stopping ? "STOPPING=1\n" : "", words);
    memcpy(herald->told, words, sizeof words);
    return is_first;
}

/* systemd from 253 on reads the time (Type=notify-reload); older ones do not mind it. */
void herald_reloading(const struct herald *herald)
{
    if (herald->has_been_ready)
        notify("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_ns() / NS_PER_US);
}

void herald_reloaded(const struct herald *herald)
{
    if (herald->has_been_ready)
        notify("READY=1");
}
