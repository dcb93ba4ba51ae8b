/*
 * The output of metrics: one series after another, in Prometheus' text format or as CSV.
 */
#ifndef WEIR_ADMIN_SHEET_H
#define WEIR_ADMIN_SHEET_H

#include <stdint.h>

#include "admin/process.h"
#include "admin/snapshot.h"
#include "base/histo.h"
#include "base/text.h"

enum sheet_format { SHEET_TEXT, SHEET_CSV };

struct sheet {
    struct text *out;
    enum sheet_format format;
    const struct snapshot *snapshot;
    const char *name; /* of the metric that is being written */
    struct process process;
};

struct label {
    const char *name;
    const char *value;
};

#define LABELS(...) ((const struct label[]){__VA_ARGS__, {NULL, NULL}})
#define NO_LABELS ((const struct label[]){{NULL, NULL}})

/* Write one series of the current metric: a number, or a histogram. */
void put(struct sheet *sheet, const struct label *labels, uint64_t value);
void put_real(struct sheet *sheet, const struct label *labels, double value);
void put_histo(struct sheet *sheet, const struct histo *histo);
void put_histo_of(struct sheet *sheet, const char *label, const char *value, const struct histo *histo);

#endif
