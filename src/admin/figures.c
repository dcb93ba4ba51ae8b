#include "admin/figures.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void figure_count(struct text *out, uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, n);
    for (int i = 0; i < len; i++)
        text_print(out, "%s%c", i > 0 && (len - i) % 3 == 0 ? "," : "", digits[i]);
}

/* Writes one decimal, and "4" instead of "4.0". */
static void short_real(struct text *out, double value)
{
    char digits[32];
    int len = snprintf(digits, sizeof digits, "%.1f", value);
    if (len > 2 && strcmp(digits + len - 2, ".0") == 0)
        digits[len - 2] = '\0';
    text_print(out, "%s", digits);
}

/* Each bound is the value at which rounding reaches the next form. */
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
