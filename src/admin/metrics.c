/* Writes the rows of admin/metrics.def. A series exists from the start, even if its value is 0. */
#include "admin/metrics.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "admin/json.h"
#include "base/clock.h"
#include "base/histo.h"
#include "base/log.h"
#include "limit/command/own.h"
#include "limit/command/slot.h"

#define MS_IN_S 1000.0

/* ---- what the system reports about this process: 0 if it does not report a value ---- */

static double process_seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* Returns user and system time. */
static double process_cpu_seconds(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0
               ? process_seconds(usage.ru_utime) + process_seconds(usage.ru_stime)
               : 0;
}

static uint64_t process_resident_bytes(void)
{
    unsigned long size = 0;
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%lu %lu", &size, &pages) != 2)
        pages = 0;
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t process_open_fds(void)
{
    uint64_t n = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL)
        return 0;
    while (readdir(folder) != NULL)
        n++;
    closedir(folder);
    return n - 3; /* the folder itself, "." and ".." */
}

/* Returns the most descriptors that may be open. */
static uint64_t process_max_fds(void)
{
    struct rlimit files;
    return getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : 0;
}

/* ---- values ---- */

struct value {
    enum { ABSENT_VALUE, WHOLE_VALUE, REAL_VALUE, FLAG_VALUE } kind;
    uint64_t whole; /* 0 or 1 for a flag */
    double real;
};

#define ABSENT ((struct value){.kind = ABSENT_VALUE})
#define VALUE(x) _Generic((x), struct value : same, double : real, bool : flag, default : whole)(x)

static struct value same(struct value value)
{
    return value;
}

static struct value whole(uint64_t n)
{
    return (struct value){.kind = WHOLE_VALUE, .whole = n};
}

static struct value real(double x)
{
    return (struct value){.kind = REAL_VALUE, .real = x};
}

static struct value flag(bool is_set)
{
    return (struct value){.kind = FLAG_VALUE, .whole = is_set};
}

/* ---- functions for metrics.def ---- */

static const struct lane_counts *lanes_of(const struct snapshot *s, size_t i)
{
    return i < s->n_nodes ? &s->nodes[i].lanes : &s->lanes;
}

static const struct snapshot_health *health_of(const struct snapshot *s, size_t i)
{
    return i < s->n_nodes ? &s->nodes[i].health : &s->health;
}

static const char *side_name(size_t side)
{
    return side == 0 ? "client" : "upstream";
}

static const char *decision_name(size_t decision)
{
    static const char *const names[] = {"allowed", "delayed", "throttled", "shadow_throttled"};
    return names[decision];
}

static uint64_t decided(const struct snapshot_limit *limit, size_t decision)
{
    const uint64_t counts[] = {limit->admitted, limit->delayed, limit->refused, limit->shadowed};
    return counts[decision];
}

static const char *called_name(size_t result)
{
    static const char *const names[NAMED_RESULTS] = {[NAMED_PASSED] = "passed",
                                                     [NAMED_LIMITED] = "limited",
                                                     [NAMED_SHADOWED] = "shadow_limited",
                                                     [NAMED_ERROR] = "error"};
    return names[result];
}

static const char *slots_name(size_t state)
{
    static const char *const names[] = {"up", "away", "unserved"};
    return names[state];
}

static uint64_t slots_of(const struct snapshot *s, size_t state)
{
    const uint64_t counts[] = {s->slots_up, s->slots_served - s->slots_up,
                               SLOT_COUNT - s->slots_served};
    return counts[state];
}

/* ---- the table ---- */

/* The state of one output. */
struct sheet {
    struct text *out;
    enum metrics_format format;
    const struct snapshot *snapshot;
    const char *name; /* name of the current metric */
};

struct figure {
    enum figure_of of;
    const char *name, *type, *member, *help;
    struct value (*value)(const struct snapshot *s, size_t i, size_t part);
    const char *label; /* NULL: the figure has one value */
    size_t parts;
    const char *(*word)(size_t part);
    const struct histo *(*times)(const struct snapshot *s, size_t i); /* set only for a histogram */
    /* writes all series of the figure; NULL: the table describes the series */
    void (*show)(struct sheet *sheet);
};

#define FIGURE(of, name, type, member, expression, help)                                           \
    static struct value value_of_##name(const struct snapshot *s, size_t i, size_t part)           \
    {                                                                                              \
        (void)s, (void)i, (void)part;                                                              \
        return VALUE(expression);                                                                  \
    }
#define SPLIT(of, name, type, member, label, parts, word, expression, help)                        \
    FIGURE(of, name, type, member, expression, help)                                               \
    static const char *word_of_##name(size_t part)                                                 \
    {                                                                                              \
        return word;                                                                               \
    }
#define TIMES(of, name, member, histogram, help)                                                   \
    static const struct histo *times_of_##name(const struct snapshot *s, size_t i)                 \
    {                                                                                              \
        (void)i;                                                                                   \
        return &(histogram);                                                                       \
    }
#define SHOW(name, type, help) static void show_##name(struct sheet *sheet);
#include "admin/metrics.def"
#undef FIGURE
#undef SPLIT
#undef TIMES
#undef SHOW

static const struct figure figures[] = {
#define FIGURE(of, name, type, member, expression, help)                                           \
    {of, #name, #type, member, help, .value = value_of_##name},
#define SPLIT(of, name, type, member, label, parts, word, expression, help)                        \
    {of, #name, #type, member, help, value_of_##name, label, parts, word_of_##name, NULL, NULL},
#define TIMES(of, name, member, histogram, help)                                                   \
    {of, #name, "histogram", member, help, .times = times_of_##name},
#define SHOW(name, type, help) {OF_WEIR, #name, #type, NULL, help, .show = show_##name},
#include "admin/metrics.def"
};

#define N_FIGURES (sizeof figures / sizeof figures[0])

/* ---- series ---- */

struct label {
    const char *name;
    const char *value;
};

#define LABELS(...) ((const struct label[]){__VA_ARGS__, {NULL, NULL}})
#define LABELS_MAX 4 /* labels of one series: a name, a word, `le`, and the end */

static void put_labels(struct sheet *sheet, const struct label *labels)
{
    struct text labelled = {0};
    for (const struct label *label = labels; label->name != NULL; label++) {
        text_print(&labelled, "%s%s=\"", label == labels ? "" : ",", label->name);
        text_add_label(&labelled, slice_str(label->value));
        text_add(&labelled, SLICE("\""));
    }
    if (sheet->format == METRICS_CSV)
        text_add_csv(sheet->out, slice_of(labelled.at, labelled.len));
    else if (labelled.len > 0)
        text_print(sheet->out, "{%.*s}", (int)labelled.len, labelled.at);
    sheet->out->is_broken |= labelled.is_broken;
    text_fini(&labelled);
}

static void metrics_put(struct sheet *sheet, const char *suffix, const struct label *labels,
                        struct value value)
{
    bool is_csv = sheet->format == METRICS_CSV;
    if (value.kind == ABSENT_VALUE)
        return;
    text_print(sheet->out, "%s%s%s", sheet->name, suffix, is_csv ? "," : "");
    put_labels(sheet, labels);
    text_add(sheet->out, is_csv ? SLICE(",") : SLICE(" "));
    if (value.kind == REAL_VALUE)
        text_print(sheet->out, "%.15g\n", value.real);
    else
        text_print(sheet->out, "%" PRIu64 "\n", value.whole);
}

/* `labels` has room for one more label, `le`. */
static void put_histo(struct sheet *sheet, struct label *labels, const struct histo *histo)
{
    uint64_t n = 0;
    char text[32];
    struct label *bound = labels;
    while (bound->name != NULL)
        bound++;
    for (unsigned i = 0; i < HISTO_BOUNDS; i++) {
        n += count_read(&histo->buckets[i]);
        snprintf(text, sizeof text, "%.15g", (double)histo_bound_ns(i) / (double)NS_PER_S);
        *bound = (struct label){"le", text};
        if (i >= HISTO_SHOWN)
            metrics_put(sheet, "_bucket", labels, whole(n));
    }
    n = histo_count(histo);
    *bound = (struct label){"le", "+Inf"};
    metrics_put(sheet, "_bucket", labels, whole(n));
    *bound = (struct label){0};
    metrics_put(sheet, "_sum", labels, real((double)count_read(&histo->sum_ns) / (double)NS_PER_S));
    metrics_put(sheet, "_count", labels, whole(n));
}

/* ---- owners of figures ---- */

static const char *const labels_of[] = {
    [OF_LISTENER] = "listener", [OF_CLASS] = "class", [OF_NODE] = "upstream",
    [OF_UPSTREAM] = "upstream", [OF_LIMIT] = "rule",  [OF_NAMED] = "limit"};

static size_t metrics_count_of(const struct snapshot *s, enum figure_of of)
{
    const size_t counts[] = {
        [OF_LISTENER] = s->n_listeners, [OF_CLASS] = COMMAND_KINDS, [OF_NODE] = s->n_nodes,
        [OF_UPSTREAM] = s->n_nodes,     [OF_LIMIT] = s->n_limits,   [OF_NAMED] = s->n_named};
    return of >= OF_LISTENER ? counts[of] : 1;
}

static const char *metrics_name_of(const struct snapshot *s, enum figure_of of, size_t i)
{
    switch (of) {
    case OF_LISTENER:
        return s->listeners[i].name;
    case OF_CLASS:
        return command_kind_name((enum command_kind)i);
    case OF_NODE:
    case OF_UPSTREAM:
        return s->nodes[i].address;
    case OF_LIMIT:
        return s->limits[i].rule;
    case OF_NAMED:
        return s->named[i].name;
    default:
        return NULL;
    }
}

/* ---- metrics ---- */

/*
 * Returns the sum of the values from `first` up to but without `end`. For a single value, returns
 * that value.
 */
static struct value sum(const struct figure *figure, const struct snapshot *s, size_t first,
                        size_t end, size_t part)
{
    struct value sum = first < end ? figure->value(s, first, part) : whole(0);
    for (size_t i = first + 1; i < end; i++)
        sum.whole += figure->value(s, i, part).whole;
    return sum;
}

/*
 * Writes the sum of the values from `first` up to but without `end`. `name` is the value of the
 * owner's label; NULL: a figure of weir.
 */
static void put_sum(struct sheet *sheet, const struct figure *figure, const char *name,
                    size_t first, size_t end)
{
    struct label labels[LABELS_MAX] = {{name != NULL ? labels_of[figure->of] : NULL, name}};
    struct label *word = &labels[name != NULL];
    if (figure->times != NULL) {
        struct histo histo = {0};
        for (size_t i = first; i < end; i++)
            counts_add(&histo, figure->times(sheet->snapshot, i), sizeof histo);
        put_histo(sheet, labels, &histo);
        return;
    }
    for (size_t part = 0; part < figure->parts || part == 0; part++) {
        if (figure->label != NULL)
            *word = (struct label){figure->label, figure->word(part)};
        metrics_put(sheet, "", labels, sum(figure, sheet->snapshot, first, end, part));
    }
}

/*
 * Writes a figure. Limits beyond the first METRICS_RULES are summed as "_other", unless the figure
 * cannot be summed.
 */
static void put_figure(struct sheet *sheet, const struct figure *figure)
{
    const struct snapshot *s = sheet->snapshot;
    bool is_limit = figure->of == OF_LIMIT || figure->of == OF_NAMED;
    bool is_summed = figure->of == OF_NAMED || strcmp(figure->type, "counter") == 0;
    size_t n = metrics_count_of(s, figure->of);
    size_t shown = is_limit && n > METRICS_RULES ? METRICS_RULES : n;
    for (size_t i = 0; i < shown; i++)
        put_sum(sheet, figure, metrics_name_of(s, figure->of, i), i, i + 1);
    if (is_limit && is_summed)
        put_sum(sheet, figure, "_other", shown, n);
}

void metrics_write(struct text *out, const struct snapshot *snapshot, enum metrics_format format,
                   const char *only)
{
    struct sheet sheet = {.out = out, .format = format, .snapshot = snapshot};
    if (format == METRICS_CSV)
        text_add(out, SLICE("metric,labels,value\n"));
    for (const struct figure *figure = figures; figure < figures + N_FIGURES; figure++) {
        if (only != NULL && strcmp(only, figure->name) != 0)
            continue;
        sheet.name = figure->name;
        if (format == METRICS_TEXT)
            text_print(out, "# HELP %s %s\n# TYPE %s %s\n", figure->name, figure->help,
                       figure->name, figure->type);
        if (figure->show != NULL)
            figure->show(&sheet);
        else
            put_figure(&sheet, figure);
    }
}

/* ---- metrics with several labels ---- */

static void show_weir_build_info(struct sheet *sheet)
{
    const struct snapshot *s = sheet->snapshot;
    metrics_put(sheet, "",
                LABELS({"name", s->name}, {"version", s->version}, {"libuv", s->libuv},
                       {"hiredis", s->hiredis}),
                whole(1));
}

static void show_weir_upstream_info(struct sheet *sheet)
{
    const struct snapshot *s = sheet->snapshot;
    for (size_t i = 0; i < s->n_nodes; i++)
        metrics_put(sheet, "",
                    LABELS({"upstream", s->nodes[i].address}, {"address", s->nodes[i].in_use},
                           {"role", s->nodes[i].role}),
                    whole(1));
}

static void show_weir_rule_info(struct sheet *sheet)
{
    for (size_t i = 0; i < sheet->snapshot->n_limits && i < METRICS_RULES; i++) {
        const struct snapshot_limit *limit = &sheet->snapshot->limits[i];
        metrics_put(sheet, "",
                    LABELS({"rule", limit->rule}, {"policy", limit->policy}, {"unit", limit->unit},
                           {"scope", limit->scope}, {"over", limit->action},
                           {"mode", limit->is_shadow ? "shadow" : "enforce"}),
                    whole(1));
    }
}

static void show_weir_named_limit_info(struct sheet *sheet)
{
    for (size_t i = 0; i < sheet->snapshot->n_named && i < METRICS_RULES; i++) {
        const struct snapshot_named *named = &sheet->snapshot->named[i];
        metrics_put(sheet, "",
                    LABELS({"limit", named->name}, {"algorithm", named->algorithm},
                           {"rates", named->rates}, {"tz", named->zone},
                           {"penalty", named->penalty},
                           {"over", named->is_shadow ? "shadow" : "refuse"}),
                    whole(1));
    }
}

static void show_weir_limit_commands_total(struct sheet *sheet)
{
    for (size_t i = 0; i < own_count() && i < COUNTED_OWN; i++) {
        const char *whole_name = own_row(i)->name;
        const char *bar = strchr(whole_name, '|');
        const char *name = bar != NULL                        ? bar + 1
                           : strcmp(whole_name, "limit") == 0 ? "unknown"
                                                              : whole_name;
        const _Atomic uint64_t *counts = sheet->snapshot->counts.own[i];
        metrics_put(sheet, "", LABELS({"subcommand", name}, {"result", "ok"}),
                    whole(count_read(&counts[0])));
        metrics_put(sheet, "", LABELS({"subcommand", name}, {"result", "error"}),
                    whole(count_read(&counts[1])));
    }
}

static void show_weir_protocol_errors_total(struct sheet *sheet)
{
    const struct snapshot *s = sheet->snapshot;
    for (int e = 0; e < ERR_COUNT; e++)
        if (protocol_error_name((enum err)e) != NULL)
            metrics_put(sheet, "",
                        LABELS({"side", "client"}, {"reason", protocol_error_name((enum err)e)}),
                        whole(count_read(&s->counts.protocol_errors[e])));
    metrics_put(sheet, "", LABELS({"side", "upstream"}, {"reason", "reply"}),
                whole(count_read(&s->lanes.lost[LOSS_PROTOCOL])));
}

/* ---- JSON ---- */

static void json_value(struct text *out, const char *key, struct value value)
{
    if (value.kind == WHOLE_VALUE)
        json_number(out, key, value.whole);
    else if (value.kind == REAL_VALUE)
        json_real(out, key, value.real);
    else if (value.kind == FLAG_VALUE)
        json_flag(out, key, value.whole != 0);
}

static void json_times(struct text *out, const char *key, const struct histo *histo)
{
    json_open_object(out, key);
    json_number(out, "count", histo_count(histo));
    json_real(out, "sum_seconds", (double)count_read(&histo->sum_ns) / (double)NS_PER_S);
    json_real(out, "p50_seconds", (double)histo_quantile_ns(histo, 0.5) / (double)NS_PER_S);
    json_real(out, "p99_seconds", (double)histo_quantile_ns(histo, 0.99) / (double)NS_PER_S);
    json_close_object(out);
}

static void json_split(struct text *out, const struct snapshot *s, const struct figure *figure,
                       size_t i)
{
    bool is_object = figure->member[0] != '\0';
    if (is_object)
        json_open_object(out, figure->member);
    for (size_t part = 0; part < figure->parts; part++)
        json_value(out, figure->word(part), figure->value(s, i, part));
    if (is_object)
        json_close_object(out);
}

void metrics_json(struct text *out, const struct snapshot *snapshot, enum figure_of of, size_t i)
{
    for (const struct figure *figure = figures; figure < figures + N_FIGURES; figure++) {
        if (figure->of != of || figure->member == NULL)
            continue;
        if (figure->times != NULL)
            json_times(out, figure->member, figure->times(snapshot, i));
        else if (figure->label != NULL)
            json_split(out, snapshot, figure, i);
        else
            json_value(out, figure->member, figure->value(snapshot, i, 0));
    }
}
