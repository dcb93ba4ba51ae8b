#include "admin/figures.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MINUTE_S 60
#define HOUR_S 3600
#define DAY_S 86400

void figure_count(struct text *out, uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, n);
    for (int i = 0; i < len; i++)
        text_print(out, "%s%c", i > 0 && (len - i) % 3 == 0 ? "," : "", digits[i]);
}

void figure_whole(struct text *out, double n)
{
    figure_count(out, (uint64_t)(n + 0.5));
}

/* One decimal, but "4" and not "4.0". */
static void short_real(struct text *out, double value)
{
    char digits[32];
    int len = snprintf(digits, sizeof digits, "%.1f", value);
    if (len > 2 && strcmp(digits + len - 2, ".0") == 0)
        digits[len - 2] = '\0';
    text_print(out, "%s", digits);
}

/* Bounds are where rounding would reach the next form. */
void figure_rate(struct text *out, double per_s)
{
    if (per_s < 9.95)
        short_real(out, per_s);
    else if (per_s < 9999.5)
        figure_count(out, (uint64_t)(per_s + 0.5));
    else if (per_s < 999950)
        text_print(out, "%.1fk", per_s / 1e3);
    else
        text_print(out, "%.2fM", per_s / 1e6);
}

void figure_per_s(struct text *out, double per_s)
{
    figure_rate(out, per_s);
    text_add(out, SLICE("/s"));
}

void figure_bytes(struct text *out, double per_s)
{
    static const char *const units[] = {"B/s", "KB/s", "MB/s", "GB/s"};
    size_t unit = 0;
    while (per_s >= 1023.5 && unit + 1 < sizeof units / sizeof units[0]) {
        per_s /= 1024;
        unit++;
    }
    if (unit > 0 && per_s < 9.95)
        short_real(out, per_s);
    else
        text_print(out, "%.0f", per_s);
    text_print(out, " %s", units[unit]);
}

static void three_digits(struct text *out, double value)
{
    if (value < 9.95)
        short_real(out, value);
    else
        text_print(out, "%.0f", value);
}

void figure_duration(struct text *out, double s)
{
    if (s <= 0) {
        text_add(out, SLICE("\u2013"));
        return;
    }
    double us = s * 1e6;
    three_digits(out, us < 999.5 ? us : us < 999500 ? us / 1e3 : s);
    text_print(out, " %s", us < 999.5 ? "\u00b5s" : us < 999500 ? "ms" : "s");
}

void figure_percent(struct text *out, double ratio)
{
    three_digits(out, ratio * 100);
    text_add(out, SLICE(" %"));
}

static void two_units(struct text *out, uint64_t big, const char *big_name, uint64_t small, const char *small_name)
{
    text_print(out, "%" PRIu64 " %s %" PRIu64 " %s", big, big_name, small, small_name);
}

void figure_span(struct text *out, uint64_t seconds)
{
    if (seconds < MINUTE_S)
        text_print(out, "%" PRIu64 " s", seconds);
    else if (seconds < HOUR_S)
        two_units(out, seconds / MINUTE_S, "min", seconds % MINUTE_S, "s");
    else if (seconds < DAY_S)
        two_units(out, seconds / HOUR_S, "h", seconds % HOUR_S / MINUTE_S, "min");
    else
        two_units(out, seconds / DAY_S, "d", seconds % DAY_S / HOUR_S, "h");
}

void figure_time(struct text *out, uint64_t unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm at;
    char day[32];
    char clock[32];
    gmtime_r(&seconds, &at);
    strftime(day, sizeof day, "%Y-%m-%d", &at);
    strftime(clock, sizeof clock, "%H:%M:%S", &at);
    text_print(out, "<time datetime=\"%sT%sZ\">%s %s UTC</time>", day, clock, day, clock);
}
