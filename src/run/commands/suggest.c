/*
 * First pass over all subjects: the distribution of peak rates of each row, a class of a policy.
 * After the first pass the suggestion is made. Second pass: the subjects that the suggestion would
 * have limited.
 */
#include "run/commands/suggest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "base/text.h"
#include "base/why.h"
#include "limit/figures/observed.h"
#include "limit/figures/suggestion.h"
#include "run/commands/admin_line.h"
#include "run/config/inifile.h"

#define LIVE_CELLS 8192 /* 64 KB at most for each row */
#define NAMES 10        /* subjects named in one line */
#define NAME_SHOWN 40
#define SPAN_ROOM 32
#define UNLIMITED "default" /* the policy that would bind subjects without a policy */

/* A subject that would have been limited, or that is next to the limit. */
struct named {
    char text[OBSERVED_NAME_MAX];
    size_t len;
    struct peaks peaks;
    double excess;
};

/* One class of one policy. */
struct row {
    unsigned class;
    struct distribution distribution;
    struct observed_forgotten forgotten;
    bool has_enough;
    uint64_t excepted; /* subjects that EXCEPT leaves out */
    struct suggestion suggestion;
    uint64_t limited; /* subjects that would have been limited */
    /* subjects that might have been limited: only bounds of their peaks are known */
    uint64_t maybe_limited;
    struct named names[NAMES];
    size_t n_names;
};

/* names after EXCEPT that are checked for being known, one bit of a word for each */
#define EXCEPTED_MAX 64

/* One policy. */
struct sheet {
    const struct policy_state *policy_state;
    const char *name;
    uint64_t seconds;
    struct row *rows;
    size_t n_rows;
};

struct survey {
    struct slice excepted; /* names after EXCEPT, separated by blanks */
    uint64_t forgotten;    /* bit i: name i of `excepted` is in a list of forgotten subjects */
    unsigned percentile;   /* see suggestion_make */
    struct sheet *sheets;
    size_t n_sheets;
    /* by number of a policy state: the index of the policy's sheet plus one; 0: no sheet */
    uint16_t by_state[REGISTRY_POLICIES_MAX];
    bool is_starved;
};

/* ---- the subjects ---- */

static const struct sheet *sheet_of(const struct survey *survey, const struct subject *subject)
{
    uint16_t number = survey->by_state[subject->policy_state->number];
    return number > 0 ? &survey->sheets[number - 1] : NULL;
}

/* Returns the name's index in `excepted`; -1: not there. */
static int excepted_at(const struct survey *survey, struct slice name)
{
    struct slice rest = survey->excepted, one;
    for (int at = 0; split_word(&rest, &one); at++)
        if (slice_eq(one, name))
            return at;
    return -1;
}

static bool is_excepted(const struct survey *survey, struct slice name)
{
    return excepted_at(survey, name) >= 0;
}

static void suggest_count(void *arg, struct subject *subject)
{
    struct peak_rates *peak_rates =
        atomic_load_explicit(&subject->peak_rates, memory_order_acquire);
    const struct sheet *sheet = peak_rates != NULL ? sheet_of(arg, subject) : NULL;
    bool is_out = sheet != NULL && is_excepted(arg, subject_name(subject));
    for (size_t i = 0; sheet != NULL && i < sheet->n_rows; i++) {
        const struct peaks peaks = peak_rates_get(peak_rates, sheet->rows[i].class);
        if (!is_out)
            distribution_add(&sheet->rows[i].distribution, &peaks, 1);
        else
            sheet->rows[i].excepted += peaks.of[PEAK_1S] > 0;
    }
}

/*
 * Takes excepted subjects out of the forgotten subjects. Only the heaviest forgotten subjects have
 * known names.
 */
static void leave_out_forgotten(struct survey *survey, struct row *row)
{
    struct observed_forgotten *forgotten = &row->forgotten;
    size_t n = 0;
    for (size_t i = 0; i < forgotten->n_most; i++) {
        const struct observed_name *one = &forgotten->most[i];
        int at = excepted_at(survey, slice_of(one->text, one->len));
        if (at >= 0) {
            survey->forgotten |= at < EXCEPTED_MAX ? UINT64_C(1) << at : 0;
            distribution_take(&forgotten->distribution, &one->peaks);
            row->excepted++;
        } else {
            forgotten->most[n++] = *one;
        }
    }
    forgotten->n_most = n;
}

static bool suggest_is_named(const struct named *named, struct slice name)
{
    return slice_eq(slice_of(named->text, named->len), name);
}

/*
 * Notes the subject among the subjects with the highest excess, highest first. A subject is noted
 * once, living or forgotten.
 */
static void suggest_note_name(struct row *row, struct slice whole, const struct peaks *peaks)
{
    enum peak which;
    struct slice name =
        slice_of(whole.at, whole.len < OBSERVED_NAME_MAX ? whole.len : OBSERVED_NAME_MAX);
    struct named noted = {.len = name.len, .peaks = *peaks};
    noted.excess = suggestion_excess(&row->suggestion, peaks, &which);
    memcpy(noted.text, name.at, name.len);
    size_t at = 0;
    while (at < row->n_names && !suggest_is_named(&row->names[at], name))
        at++;
    if (at == NAMES)
        at--;
    else if (at == row->n_names)
        row->names[row->n_names++] = (struct named){.excess = 0};
    if (row->names[at].excess >= noted.excess)
        return;
    for (; at > 0 && row->names[at - 1].excess < noted.excess; at--)
        row->names[at] = row->names[at - 1];
    row->names[at] = noted;
}

static void suggest_judge(struct row *row, struct slice name, const struct peaks *peaks)
{
    if (peaks->of[PEAK_1S] == 0)
        return;
    if (suggestion_limits(&row->suggestion, peaks))
        row->limited++;
    else if (!suggestion_passes(&row->suggestion, peaks))
        row->maybe_limited++;
    suggest_note_name(row, name, peaks);
}

static void judge_living(void *arg, struct subject *subject)
{
    struct peak_rates *peak_rates =
        atomic_load_explicit(&subject->peak_rates, memory_order_acquire);
    const struct sheet *sheet = peak_rates != NULL ? sheet_of(arg, subject) : NULL;
    if (sheet != NULL && is_excepted(arg, subject_name(subject)))
        return;
    for (size_t i = 0; sheet != NULL && i < sheet->n_rows; i++) {
        const struct peaks peaks = peak_rates_get(peak_rates, sheet->rows[i].class);
        if (sheet->rows[i].has_enough)
            suggest_judge(&sheet->rows[i], subject_name(subject), &peaks);
    }
}

static void judge_forgotten(struct row *row)
{
    const struct distribution *distribution = &row->forgotten.distribution;
    const struct distribution_cell *cell;
    struct peaks upper;
    size_t at = 0;
    while ((cell = distribution_next(distribution, &at, &upper)) != NULL) {
        const struct peaks lower = distribution_lower(distribution, cell);
        if (suggestion_limits(&row->suggestion, &lower))
            row->limited += cell->subjects;
        else if (!suggestion_passes(&row->suggestion, &upper))
            row->maybe_limited += cell->subjects;
    }
    for (size_t i = 0; i < row->forgotten.n_most; i++) {
        const struct observed_name *most = &row->forgotten.most[i];
        suggest_note_name(row, slice_of(most->text, most->len), &most->peaks);
    }
}

/* ---- the rows of the reply ---- */

static bool suggest_is_asked(const struct admin_command *admin_command,
                             const struct observed *observed, unsigned class)
{
    return admin_command->what == NULL ||
           slice_eq_nocase(observed_name(observed, class), slice_str(admin_command->what));
}

static void add_sheet(struct survey *survey, const struct admin_command *admin_command,
                      const struct policy_state *policy_state, const char *name, uint64_t now_ns)
{
    struct observed *observed = policy_state->observed;
    struct sheet *sheet = &survey->sheets[survey->n_sheets];
    struct row *rows = calloc(observed_count(observed) + 1U, sizeof *rows);
    if (rows == NULL) {
        survey->is_starved = true;
        return;
    }
    *sheet = (struct sheet){.policy_state = policy_state,
                            .name = name,
                            .seconds = observed_seconds(observed, now_ns),
                            .rows = rows};
    survey->by_state[policy_state->number] = (uint16_t)++survey->n_sheets;
    for (unsigned class = 0; class < observed_count(observed); class ++) {
        if (!suggest_is_asked(admin_command, observed, class))
            continue;
        struct row *row = &rows[sheet->n_rows++];
        row->class = class;
        distribution_init(&row->distribution, LIVE_CELLS);
        observed_copy_forgotten(observed, class, &row->forgotten);
        leave_out_forgotten(survey, row);
    }
}

static bool asks_for_unlimited(const struct admin_command *admin_command)
{
    return admin_command->policy == NULL ||
           slice_eq_nocase(slice_str(admin_command->policy), SLICE(UNLIMITED));
}

static void add_sheets(struct survey *survey, const struct admin_command *admin_command,
                       const struct policies *policies, const struct policy_state *unlimited,
                       uint64_t now_ns)
{
    survey->sheets = calloc(policies_count(policies) + 1, sizeof *survey->sheets);
    survey->is_starved = survey->sheets == NULL;
    const struct policy *only = admin_command->policy != NULL
                                    ? policies_find(policies, slice_str(admin_command->policy))
                                    : NULL;
    for (size_t i = 0; i < policies_count(policies) && !survey->is_starved; i++) {
        const struct policy *policy = policies_at(policies, i);
        if (admin_command->policy == NULL || policy == only)
            add_sheet(survey, admin_command, policy->policy_state, policy->name, now_ns);
    }
    bool is_bound = policies_find(policies, SLICE(UNLIMITED)) != NULL;
    if (!is_bound && asks_for_unlimited(admin_command) && !survey->is_starved)
        add_sheet(survey, admin_command, unlimited, UNLIMITED, now_ns);
}

static void suggest_drop(struct survey *survey)
{
    for (size_t i = 0; i < survey->n_sheets; i++) {
        for (size_t j = 0; j < survey->sheets[i].n_rows; j++) {
            distribution_fini(&survey->sheets[i].rows[j].distribution);
            distribution_fini(&survey->sheets[i].rows[j].forgotten.distribution);
        }
        free(survey->sheets[i].rows);
    }
    free(survey->sheets);
    free(survey);
}

/* ---- the reply ---- */

static const char *span_text(uint64_t seconds, char *out)
{
    static const struct {
        uint64_t seconds;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (seconds >= 2 * units[i].seconds) {
            snprintf(out, SPAN_ROOM, "%" PRIu64 " %s", seconds / units[i].seconds, units[i].name);
            return out;
        }
    snprintf(out, SPAN_ROOM, "%" PRIu64 " s", seconds);
    return out;
}

static void tell_too_little(struct text *out, const struct sheet *sheet, const struct row *row)
{
    char span[SPAN_ROOM];
    uint64_t n = row->distribution.subjects;
    struct slice class = observed_name(sheet->policy_state->observed, row->class);
    if (n == 0)
        text_print(out, "; %.*s: no subject has sent any yet\n", (int)class.len, class.at);
    else
        text_print(out, "; %.*s: only %" PRIu64 " subject%s in %s: too few to suggest a limit\n",
                   (int)class.len, class.at, n, n == 1 ? "" : "s", span_text(sheet->seconds, span));
}

/*
 * Prints which subjects the limit is enough for: "p99 of 412 subjects", "all but 1 of 24 subjects",
 * "p90 of 23 subjects (1 left out)".
 */
static int print_counted_subjects(char *out, size_t room, const struct survey *survey,
                                  const struct row *row)
{
    char first[48];
    char last[48] = "";
    uint64_t n = row->distribution.subjects;
    if (row->suggestion.above > 0)
        snprintf(first, sizeof first, "all but %" PRIu64, row->suggestion.above);
    else
        snprintf(first, sizeof first, "p%u",
                 survey->percentile != SUGGESTION_GAPS ? survey->percentile : 99);
    if (row->excepted > 0)
        snprintf(last, sizeof last, " (%" PRIu64 " left out)", row->excepted);
    return snprintf(out, room, "%s of %" PRIu64 " subject%s%s", first, n, n == 1 ? "" : "s", last);
}

/* Prints how many subjects would have been limited. The names of the subjects follow. */
static int tell_fate(char *out, size_t room, const struct row *row)
{
    if (row->limited == 0)
        return row->maybe_limited == 0
                   ? snprintf(out, room, "none would have been limited, nearest")
                   : snprintf(out, room, "%" PRIu64 " might have been limited", row->maybe_limited);
    if (row->maybe_limited == 0)
        return snprintf(out, room, "%" PRIu64 " would have been limited", row->limited);
    return snprintf(out, room, "%" PRIu64 " would have been limited, %" PRIu64 " more might",
                    row->limited, row->maybe_limited);
}

/* Prints "user:acme (5400 in 10 s)": the window with the highest excess. */
static int tell_name(char *out, size_t room, const struct row *row, const struct named *named)
{
    enum peak which;
    suggestion_excess(&row->suggestion, &named->peaks, &which);
    size_t shown = named->len < NAME_SHOWN ? named->len : NAME_SHOWN;
    return snprintf(out, room, "%.*s%s (%" PRIu32 " in %u s)", (int)shown, named->text,
                    shown < named->len ? "..." : "", named->peaks.of[which], peak_seconds(which));
}

/* A line is at most as long as a line of the file. Names that do not fit are left out. */
static void tell_suggestion(struct text *out, const struct survey *survey,
                            const struct sheet *sheet, const struct row *row)
{
    char counted[128];
    char line[INIFILE_LINE_MAX + 1];
    char limit[SUGGESTION_ROOM];
    char span[SPAN_ROOM];
    char name[OBSERVED_NAME_MAX + 64];
    struct slice class = observed_name(sheet->policy_state->observed, row->class);
    struct slice right = suggestion_text(&row->suggestion, limit);
    print_counted_subjects(counted, sizeof counted, survey, row);
    int len = snprintf(line, sizeof line, "%.*s = %.*s ; %s over %s, ", (int)class.len, class.at,
                       (int)right.len, right.at, counted, span_text(sheet->seconds, span));
    len += tell_fate(line + len, sizeof line - (size_t)len, row);
    text_add(out, slice_of(line, (size_t)len));
    bool is_fine = row->limited + row->maybe_limited == 0;
    uint64_t left = is_fine ? 1 : row->limited + row->maybe_limited;
    for (size_t i = 0; i < row->n_names && left > 0; i++, left--) {
        int more = tell_name(name, sizeof name, row, &row->names[i]);
        if ((size_t)(len + more) + sizeof ", ..., " > INIFILE_LINE_MAX)
            break;
        len += more + 2;
        text_print(out, "%s%s", i == 0 ? ": " : ", ", name);
    }
    text_add(out, left > 0 && !is_fine ? SLICE(", ...\n") : SLICE("\n"));
}

/*
 * Returns the row of class `all` if its suggested limit would refuse before the limit of this row.
 * NULL: the row is worth a line.
 */
static const struct row *covering(const struct sheet *sheet, const struct row *row)
{
    for (size_t i = 0; i < sheet->n_rows; i++) {
        const struct row *other = &sheet->rows[i];
        if (other != row && other->class == PEAK_CLASS_ALL && other->has_enough)
            return suggestion_covers(&other->suggestion, &row->suggestion) ? other : NULL;
    }
    return NULL;
}

/* Prints a comment instead of a line, because the limit would never bind. */
static void tell_covered(struct text *out, const struct sheet *sheet, const struct row *row)
{
    char limit[SUGGESTION_ROOM];
    struct slice class = observed_name(sheet->policy_state->observed, row->class);
    struct slice right = suggestion_text(&row->suggestion, limit);
    text_print(out, "; %.*s: %.*s would never bind, because all is lower\n", (int)class.len,
               class.at, (int)right.len, right.at);
}

static size_t rows_seen(const struct sheet *sheet)
{
    size_t n = 0;
    for (size_t i = 0; i < sheet->n_rows; i++)
        n += sheet->rows[i].distribution.subjects > 0;
    return n;
}

/*
 * Prints one policy. A policy that the command does not name has only rows with traffic. The
 * heading is left out if the command asks for one line.
 */
static void tell_sheet(struct text *out, const struct survey *survey,
                       const struct admin_command *admin_command, const struct sheet *sheet)
{
    bool is_one = admin_command->policy != NULL && admin_command->what != NULL;
    if (admin_command->policy == NULL && rows_seen(sheet) == 0)
        return;
    if (!is_one)
        text_print(out, "[policy %s]\n", sheet->name);
    if (!is_one && rows_seen(sheet) == 0)
        text_add(out, SLICE("; no subject has sent commands yet\n"));
    for (size_t i = 0; i < sheet->n_rows; i++) {
        const struct row *row = &sheet->rows[i];
        if (row->has_enough && covering(sheet, row) != NULL)
            tell_covered(out, sheet, row);
        else if (row->has_enough)
            tell_suggestion(out, survey, sheet, row);
        else if (is_one || row->distribution.subjects > 0)
            tell_too_little(out, sheet, row);
    }
}

/* ---- the survey ---- */

static void suggest_each(struct survey *survey)
{
    for (size_t i = 0; i < survey->n_sheets; i++)
        for (size_t j = 0; j < survey->sheets[i].n_rows; j++) {
            struct row *row = &survey->sheets[i].rows[j];
            distribution_merge(&row->distribution, &row->forgotten.distribution);
            row->has_enough =
                suggestion_has_enough(row->distribution.subjects, survey->sheets[i].seconds);
            if (row->has_enough)
                row->suggestion = suggestion_make(&row->distribution, survey->sheets[i].seconds,
                                                  survey->percentile);
        }
}

static void judge_each_forgotten(const struct survey *survey)
{
    for (size_t i = 0; i < survey->n_sheets; i++)
        for (size_t j = 0; j < survey->sheets[i].n_rows; j++)
            if (survey->sheets[i].rows[j].has_enough)
                judge_forgotten(&survey->sheets[i].rows[j]);
}

/* Names the subjects after EXCEPT that were never seen: a mistyped name leaves out no subject. */
static void tell_unseen(struct text *out, const struct survey *survey,
                        struct subjects *const *tables, size_t n)
{
    struct slice rest = survey->excepted, one;
    for (int at = 0; at < EXCEPTED_MAX && split_word(&rest, &one); at++) {
        bool is_seen = (survey->forgotten >> at & 1) != 0;
        for (size_t i = 0; i < n; i++)
            is_seen |= subjects_have(tables[i], one);
        if (!is_seen)
            text_print(out, "; weir has not seen %.*s\n", WHY_SLICE(one));
    }
}

static void suggest_tell(struct admin_command *admin_command, const struct survey *survey,
                         struct subjects *const *tables, size_t n)
{
    struct text out = {0};
    for (size_t i = 0; i < survey->n_sheets; i++)
        tell_sheet(&out, survey, admin_command, &survey->sheets[i]);
    if (out.len == 0)
        text_add(&out, SLICE("; no subject has sent commands yet\n"));
    tell_unseen(&out, survey, tables, n);
    admin_command->is_starved = out.is_broken;
    admin_command->lines = out.at;
    admin_command->lines_len = out.len;
}

static void suggest_look(struct survey *survey, struct subjects *const *tables, size_t n)
{
    for (size_t i = 0; i < n; i++)
        subjects_look(tables[i], suggest_count, survey);
    suggest_each(survey);
    for (size_t i = 0; i < n; i++)
        subjects_look(tables[i], judge_living, survey);
    judge_each_forgotten(survey);
}

/* Returns an error (heap), or NULL if there is a reply. */
static char *find_fault(const struct survey *survey, const struct admin_command *admin_command,
                        const struct policies *policies)
{
    size_t rows = 0;
    if (survey->n_sheets == 0)
        return admin_no_policy(policies, slice_str(admin_command->policy));
    for (size_t i = 0; i < survey->n_sheets; i++)
        rows += survey->sheets[i].n_rows;
    if (rows > 0 || admin_command->what == NULL)
        return NULL;
    return admin_error(
        "weir does not observe class %.*s%s%.*s: write all, read, write, a class of the policy's "
        "limits, or a [class NAME]",
        WHY_SLICE(slice_str(admin_command->what)),
        admin_command->policy != NULL ? " in policy " : "",
        WHY_SLICE(slice_str(admin_command->policy != NULL ? admin_command->policy : "")));
}

void suggest_carry_out(struct admin_command *admin_command, const struct policies *policies,
                       const struct front_settings *settings, uint64_t now_ns)
{
    struct subjects *const tables[] = {settings->subjects, settings->key_subjects};
    struct survey *survey = calloc(1, sizeof *survey);
    if (survey == NULL) {
        admin_command->is_starved = true;
        return;
    }
    survey->percentile = admin_command->wanted.percentile;
    survey->excepted =
        slice_str(admin_command->expression != NULL ? admin_command->expression : "");
    add_sheets(survey, admin_command, policies, settings->unlimited, now_ns);
    admin_command->is_starved = survey->is_starved;
    admin_command->error = survey->is_starved ? NULL : find_fault(survey, admin_command, policies);
    if (admin_command->error == NULL && !admin_command->is_starved) {
        suggest_look(survey, tables, sizeof tables / sizeof tables[0]);
        suggest_tell(admin_command, survey, tables, sizeof tables / sizeof tables[0]);
    }
    suggest_drop(survey);
}
