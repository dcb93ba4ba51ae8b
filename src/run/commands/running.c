/*
 * Two configuration files are kept in memory: `loaded`, as it was read last, and `file`, with what LIMIT SET changed
 * since. In both, settings that need a restart have the values of the start. So the difference of the two is what was
 * only SET, and the difference of `file` and the one on disk is what LIMIT DIFF shows.
 */
#include "run/commands/running.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/config/config_build.h"
#include "run/commands/order_block.h"
#include "run/commands/order_key.h"

static char *copy_text(const char *text)
{
    return mem_strndup(text, strlen(text));
}

/* ---- errors ---- */

/* Collects what building a configuration reports; the client gets only the first error. */
struct complaints {
    bool is_logged;
    char *first;
};

static void on_complaint(void *arg, bool is_error, const char *line)
{
    struct complaints *complaints = arg;
    if (complaints->is_logged)
        log_line(is_error ? LOG_ERROR : LOG_WARN, "%s", line);
    if (is_error && complaints->first == NULL)
        complaints->first = copy_text(line);
}

/* ---- what runs ---- */

/*
 * With `lines` over it; after a reload those that do not fit any more are taken out and logged. Returns NULL, or what
 * is wrong (heap).
 */
static char *adopt_or_say(struct running *r, const struct config *config, struct set_lines *lines, bool is_reload)
{
    struct variants variants = {0};
    char *why = set_lines_apply(lines, config->rules.policies, r->builtin, is_reload ? r->journal : NULL, &variants);
    if (why == NULL && !live_rules_adopt(&r->live, config, &variants, is_reload))
        why = copy_text("there have been too many different limits since the start: restart weir");
    if (why != NULL)
        variants_fini(&variants);
    return why;
}

/* ---- the whole file ---- */

static void drop_file(struct config_file *file)
{
    config_file_fini(file);
    *file = (struct config_file){0};
}

static void use_lines(struct running *r, const struct set_lines *lines)
{
    set_lines_fini(&r->lines);
    r->lines = *lines;
}

/* Returns what needs a restart, heap; NULL: nothing does. */
static char *take_over(struct running *r, struct config_file *file)
{
    config_diff_name_dropped(r->journal, &r->file, &r->loaded, file);
    char *kept = config_diff_keep_settings(r->journal, &r->file, file);
    drop_file(&r->loaded);
    drop_file(&r->file);
    r->loaded = *file;
    *file = (struct config_file){0};
    config_file_copy(&r->file, &r->loaded);
    return kept;
}

char *running_read_again(struct running *r, char **unchanged)
{
    struct complaints complaints = {.is_logged = true};
    struct config_file file = {.path = r->path, .report = on_complaint, .arg = &complaints};
    if (r->path == NULL)
        return copy_text("weir was started without a file (-c FILE)");
    struct config *config = config_read(&file, r->builtin);
    struct set_lines kept = set_lines_copy(&r->lines);
    if (config != NULL)
        set_lines_keep_timed(&kept, r->journal);
    char *why = config != NULL ? adopt_or_say(r, config, &kept, true) : complaints.first;
    if (config != NULL && why == NULL) {
        *unchanged = take_over(r, &file);
        use_lines(r, &kept);
    } else {
        set_lines_fini(&kept);
    }
    drop_file(&file);
    config_free(config);
    return why;
}

/* ---- a draft ---- */

struct draft running_draft(const struct running *r)
{
    return draft_new(&r->file, &r->lines);
}

char *running_use(struct running *r, struct draft *draft)
{
    struct complaints complaints = {0};
    draft->file.report = on_complaint;
    draft->file.arg = &complaints;
    struct config *config = config_build(&draft->file, r->builtin, CONFIG_LIVE);
    char *why = config != NULL ? adopt_or_say(r, config, &draft->lines, false) : complaints.first;
    config_free(config);
    if (why == NULL) {
        drop_file(&r->file);
        r->file = draft->file;
        use_lines(r, &draft->lines);
        return NULL;
    }
    draft_fini(draft);
    return why;
}

/* ---- against the file ---- */

char *running_compare(const struct running *r, struct differences *d)
{
    struct complaints complaints = {0};
    struct config_file file = {.path = r->path, .report = on_complaint, .arg = &complaints};
    struct config *config = config_read(&file, r->builtin);
    if (config != NULL) {
        *d = config_diff(&r->file, &file);
        order_key_differences(r->live.rules->named, clock_ns(), d);
        set_lines_differences(&r->lines, &file, clock_ns(), d);
        order_block_differences(r->live.blocks, clock_ns(), d);
    }
    drop_file(&file);
    if (config == NULL)
        return complaints.first;
    free(complaints.first);
    config_free(config);
    return NULL;
}

/* ---- its life ---- */

void running_init(struct running *r, const struct config *config, const struct config_file *file,
                  struct command_table *builtin, struct journal *journal)
{
    *r = (struct running){.path = file->path, .builtin = command_table_get(builtin), .journal = journal};
    live_rules_init(&r->live, config, builtin, journal);
    config_file_copy(&r->loaded, file);
    config_file_copy(&r->file, file);
    if (!live_rules_adopt(&r->live, config, &(struct variants){0}, true)) {
        log_error("the configuration has more limits than weir can hold");
        exit(EXIT_CONFIG);
    }
}

void running_fini(struct running *r)
{
    command_table_put(r->builtin);
    drop_file(&r->loaded);
    drop_file(&r->file);
    set_lines_fini(&r->lines);
    live_rules_fini(&r->live);
}
