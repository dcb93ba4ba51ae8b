#include "admin/sheet.h"

#include <inttypes.h>
#include <stdio.h>

#define NS_IN_S 1e9

static void put_labels(struct sheet *sheet, const struct label *labels)
{
    struct text labelled = {0};
    for (const struct label *label = labels; label->name != NULL; label++) {
        text_print(&labelled, "%s%s=\"", label == labels ? "" : ",", label->name);
        text_add_label(&labelled, slice_str(label->value));
        text_add(&labelled, SLICE("\""));
    }
    if (sheet->format == SHEET_CSV)
        text_add_csv(sheet->out, slice_of(labelled.at, labelled.len));
    else if (labelled.len > 0)
        text_print(sheet->out, "{%.*s}", (int)labelled.len, labelled.at);
    sheet->out->is_broken |= labelled.is_broken;
    text_fini(&labelled);
}

static void put_name(struct sheet *sheet, const char *suffix, const struct label *labels)
{
    bool is_csv = sheet->format == SHEET_CSV;
    text_print(sheet->out, "%s%s%s", sheet->name, suffix, is_csv ? "," : "");
    put_labels(sheet, labels);
    text_add(sheet->out, is_csv ? SLICE(",") : SLICE(" "));
}

void put(struct sheet *sheet, const struct label *labels, uint64_t value)
{
    put_name(sheet, "", labels);
    text_print(sheet->out, "%" PRIu64 "\n", value);
}

void put_real(struct sheet *sheet, const struct label *labels, double value)
{
    put_name(sheet, "", labels);
    text_print(sheet->out, "%.15g\n", value);
}

/* Its own label is the last one; `label` NULL: it has no other. */
static void put_bucket(struct sheet *sheet, const struct label *label, const char *bound, uint64_t n)
{
    if (label->name != NULL)
        put_name(sheet, "_bucket", LABELS(*label, {"le", bound}));
    else
        put_name(sheet, "_bucket", LABELS({"le", bound}));
    text_print(sheet->out, "%" PRIu64 "\n", n);
}

static void put_buckets(struct sheet *sheet, const struct label *labels, const struct histo *histo)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < HISTO_BOUNDS; i++) {
        char bound[32];
        n += count_read(&histo->buckets[i]);
        snprintf(bound, sizeof bound, "%.15g", (double)histo_bound_ns(i) / NS_IN_S);
        if (i >= HISTO_SHOWN)
            put_bucket(sheet, labels, bound, n);
    }
    n = histo_count(histo);
    put_bucket(sheet, labels, "+Inf", n);
    put_name(sheet, "_sum", labels);
    text_print(sheet->out, "%.15g\n", (double)count_read(&histo->sum_ns) / NS_IN_S);
    put_name(sheet, "_count", labels);
    text_print(sheet->out, "%" PRIu64 "\n", n);
}

void put_histo(struct sheet *sheet, const struct histo *histo)
{
    put_buckets(sheet, NO_LABELS, histo);
}

void put_histo_of(struct sheet *sheet, const char *label, const char *value, const struct histo *histo)
{
    put_buckets(sheet, LABELS({label, value}), histo);
}
