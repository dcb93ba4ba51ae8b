/*
 * Formats numbers for the page. page/page.js formats them the same way, so that nothing changes when it takes over.
 */
#ifndef WEIR_ADMIN_FIGURES_H
#define WEIR_ADMIN_FIGURES_H

#include <stdint.h>

#include "base/text.h"

void figure_count(struct text *out, uint64_t n);      /* "1,234,567" */
void figure_whole(struct text *out, double n);        /* the same of what is read as a real number */
void figure_rate(struct text *out, double per_s);     /* "0", "3.5", "1,234", "12.3k", "1.23M" */
void figure_per_s(struct text *out, double per_s);    /* the same with "/s" */
void figure_bytes(struct text *out, double per_s);    /* "512 B/s", "1.2 MB/s": by 1024 */
void figure_duration(struct text *out, double s);     /* "85 µs", "1.3 ms", "2.5 s"; 0 is "–" */
void figure_percent(struct text *out, double ratio);  /* "0 %", "9.1 %", "97 %" */
void figure_span(struct text *out, uint64_t seconds); /* "12 s", "3 min 5 s", "4 h 12 min", "3 d 4 h" */
void figure_time(struct text *out, uint64_t unix_ms); /* a <time> in UTC */

#endif
