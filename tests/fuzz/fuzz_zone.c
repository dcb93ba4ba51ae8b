/*
 * Any bytes as the file of a time zone. The file is refused, or the windows of its calendar follow
 * one another at any time.
 */
#include "base/zone.h"
#include "limit/policy/calendar.h"

#include "pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void look(const struct zone *zone, int64_t now_s)
{
    int64_t bounds[CALENDAR_BOUNDS], until_s;
    REQUIRE(zone_offset(zone, now_s, &until_s) < 27 * 3600 && until_s > now_s);
    for (enum calendar calendar = CALENDAR_DAY; calendar < CALENDARS; calendar++) {
        calendar_bounds(calendar, zone, now_s, bounds);
        REQUIRE(bounds[1] <= now_s && now_s < bounds[2]);
        for (unsigned i = 1; i < CALENDAR_BOUNDS; i++)
            REQUIRE(bounds[i - 1] < bounds[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char why[200];
    char *copy = piece_copy(data, n);
    uint64_t seed = digest_of(data, n);
    struct zone *zone = zone_parse(SLICE("Fuzzed"), slice_of(copy, n), why, sizeof why);
    for (unsigned i = 0; i < 20 && zone != NULL; i++) {
        digest(&seed, i);
        look(zone, (int64_t)(seed % (UINT64_C(1) << 33)));
    }
    zone_put(zone);
    free(copy);
    return 0;
}
