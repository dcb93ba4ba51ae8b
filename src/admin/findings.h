/* Findings: the current problems for operators, most urgent first. */
#ifndef WEIR_ADMIN_FINDINGS_H
#define WEIR_ADMIN_FINDINGS_H

#include <stdint.h>

#include "admin/snapshot.h"
#include "base/text.h"

enum finding_level { FINDING_BAD, FINDING_WARN, FINDING_GOOD };

struct finding {
    enum finding_level level;
    const char *at;    /* id of the part of the page with details */
    struct text title; /* for example "3 of 21 limits refuse"; heap */
    /*
     * for example "1,203/s: free/heavy, free/read"; may be empty, or contain configuration text;
     * heap
     */
    struct text more;
};

/* the findings of findings.c, and one for each enum lack (upstream/lane/lack.h) */
#define FINDINGS_MAX 25

struct findings {
    struct finding rows[FINDINGS_MAX];
    size_t n; /* at least 1: without a problem, a finding "Nothing is wrong" */
};

void findings_make(struct findings *findings, const struct snapshot *snapshot);
void findings_free(struct findings *findings);

/* "bad", "warn", "good" */
const char *finding_level_name(enum finding_level level);

/* ---- numbers, in the form of page/figures.js ---- */

void figure_count(struct text *out, uint64_t n);     /* "1,234,567" */
void figure_rate(struct text *out, double per_s);    /* "0", "3.5", "1,234", "12.3k", "1.23M" */
void figure_per_s(struct text *out, double per_s);   /* as figure_rate, with "/s" appended */
void figure_duration(struct text *out, double s);    /* "85 µs", "1.3 ms", "2.5 s"; 0 is "–" */
void figure_percent(struct text *out, double ratio); /* "0 %", "9.1 %", "97 %" */

#endif
