/* Writes numbers for findings, in the form of page/figures.js. */
#ifndef WEIR_ADMIN_FIGURES_H
#define WEIR_ADMIN_FIGURES_H

#include <stdint.h>

#include "base/text.h"

void figure_count(struct text *out, uint64_t n);     /* "1,234,567" */
void figure_rate(struct text *out, double per_s);    /* "0", "3.5", "1,234", "12.3k", "1.23M" */
void figure_per_s(struct text *out, double per_s);   /* like figure_rate, with "/s" */
void figure_duration(struct text *out, double s);    /* "85 µs", "1.3 ms", "2.5 s"; 0 is "–" */
void figure_percent(struct text *out, double ratio); /* "0 %", "9.1 %", "97 %" */

#endif
