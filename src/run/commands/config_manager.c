#include "run/commands/config_manager.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"
#include "run/commands/candidate.h"
#include "run/commands/handover.h"
#include "run/commands/admin_unsaved.h"
#include "run/commands/admin_line.h"
#include "run/config/config_build.h"
#include "run/config/config_edit.h"

/*
 * Two configuration files are kept in memory: `loaded`, the file as last read, and `file`, the same
 * file with the changes of LIMIT SET since. In both, settings that need a restart have the values
 * of the start. The difference of `loaded` and `file` is the lines that have only been SET. The
 * difference of `file` and the file on disk is the reply of LIMIT DIFF.
 */
struct config_manager {
    const char *path; /* NULL: no file */
    struct config_file loaded, file;
    struct set_lines lines; /* lines over `file`, for one subject or for a time */
    struct live_rules live;
    struct command_table *builtin; /* one reference */
    struct journal *journal;
    size_t bytes; /* the most memory that one build of a configuration has taken so far */
    struct reloads reloads;
};

/* Collects the errors and warnings of a build. The client gets only the first error. */
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
        complaints->first = mem_strdup(line);
}

/* ---- the running configuration ---- */

/*
 * Runs `config`, changed by `lines`. After a reload, lines that no longer fit are removed and
 * logged. Returns NULL, or an error (heap).
 */
static char *adopt_or_say(struct config_manager *g, const struct config *config,
                          struct set_lines *lines, bool is_reload)
{
    struct variants variants = {0};
    char *why = set_lines_apply(lines, config->rules.policies, g->builtin,
                                is_reload ? g->journal : NULL, &variants);
    if (why == NULL && !live_rules_adopt(&g->live, config, &variants, is_reload))
        why = mem_strdup("weir has had too many different limits since its start: restart weir");
    if (why != NULL)
        variants_fini(&variants);
    return why;
}

static void drop_file(struct config_file *file)
{
    config_file_fini(file);
    *file = (struct config_file){0};
}

static void use_lines(struct config_manager *g, const struct set_lines *lines)
{
    set_lines_fini(&g->lines);
    g->lines = *lines;
}

/*
 * Replaces the files in memory by `file`. Returns the settings that need a restart; heap, NULL:
 * none.
 */
static char *config_manager_take_over(struct config_manager *g, struct config_file *file)
{
    config_diff_name_dropped(g->journal, &g->file, &g->loaded, file);
    char *kept = config_diff_keep_settings(g->journal, &g->file, file);
    drop_file(&g->loaded);
    drop_file(&g->file);
    g->loaded = *file;
    *file = (struct config_file){0};
    config_file_copy(&g->file, &g->loaded);
    return kept;
}

/*
 * Reads the file again, runs it, and logs its errors. Returns NULL, or the first error (heap).
 * *unchanged: the settings that need a restart; heap, NULL: none.
 */
static char *config_manager_read_file(struct config_manager *g, char **unchanged)
{
    struct complaints complaints = {.is_logged = true};
    struct config_file file = {.path = g->path, .report = on_complaint, .arg = &complaints};
    if (g->path == NULL)
        return mem_strdup("weir was started without a file (-c FILE)");
    struct config *config = config_read(&file, g->builtin);
    struct set_lines kept = set_lines_copy(&g->lines);
    if (config != NULL)
        set_lines_keep_timed(&kept, g->journal);
    char *why = config != NULL ? adopt_or_say(g, config, &kept, true) : complaints.first;
    if (config != NULL && why == NULL) {
        *unchanged = config_manager_take_over(g, &file);
        use_lines(g, &kept);
    } else {
        set_lines_fini(&kept);
    }
    drop_file(&file);
    config_free(config);
    return why;
}

/* Runs the candidate config, which is taken over. Returns NULL, or an error (heap). */
static char *use_candidate(struct config_manager *g, struct candidate *candidate)
{
    struct complaints complaints = {0};
    candidate->file.report = on_complaint;
    candidate->file.arg = &complaints;
    struct config *config = config_build(&candidate->file, g->builtin, CONFIG_LIVE);
    char *why =
        config != NULL ? adopt_or_say(g, config, &candidate->lines, false) : complaints.first;
    config_free(config);
    if (why == NULL) {
        drop_file(&g->file);
        g->file = candidate->file;
        use_lines(g, &candidate->lines);
        return NULL;
    }
    candidate_fini(candidate);
    return why;
}

/*
 * Adds the differences to the file on disk, which must exist. Returns NULL, or an error of the file
 * (heap).
 */
static char *compare_file(const struct config_manager *g, struct differences *d)
{
    struct complaints complaints = {0};
    struct config_file file = {.path = g->path, .report = on_complaint, .arg = &complaints};
    struct config *config = config_read(&file, g->builtin);
    if (config != NULL) {
        *d = config_diff(&g->file, &file);
        admin_key_differences(g->live.rules->named, clock_ns(), d);
        set_lines_differences(&g->lines, &file, clock_ns(), d);
        admin_block_differences(g->live.blocks, clock_ns(), d);
    }
    drop_file(&file);
    if (config == NULL)
        return complaints.first;
    free(complaints.first);
    config_free(config);
    return NULL;
}

/* ---- memory ---- */

#define SPARE_BYTES (1 << 20) /* the file may have grown since the last read */
/* per byte of the file: a line of few words becomes a limit with its state */
#define BYTES_PER_BYTE 64
/* a variant of a policy, for one subject or for blocked subjects */
#define BYTES_PER_POLICY (1 << 15)

/*
 * True if there is memory for a build of the configuration. Reading and building use base/mem.h,
 * which never fails, so the check comes before the build. False: nothing may change.
 */
static bool has_memory(const struct config_manager *g, size_t n_admin_commands)
{
    return mem_would_give(2 * g->bytes + SPARE_BYTES +
                          BYTES_PER_BYTE * config_file_bytes(&g->loaded) +
                          BYTES_PER_POLICY * n_admin_commands);
}

/*
 * True if there is memory for n admin commands of a kind. A command about one subject or key copies
 * little, except for the first block.
 */
static bool has_memory_for(const struct config_manager *g, enum admin_kind kind, size_t n)
{
    switch (kind) {
    case ADMIN_CLIENTS:
    case ADMIN_KICK:
        return true;
    case ADMIN_BLOCK:
    case ADMIN_UNBLOCK:
    case ADMIN_SET_KEY:
    case ADMIN_UNSET_KEY:
        return mem_would_give(SPARE_BYTES +
                              BYTES_PER_POLICY * policies_count(g->live.rules->policies));
    default:
        return has_memory(g, n);
    }
}

static void note_memory(struct config_manager *g, size_t given_before)
{
    size_t bytes = mem_given() - given_before;
    g->bytes = bytes > g->bytes ? bytes : g->bytes;
}

/* ---- reloads ---- */

static void note_starved_reload(struct config_manager *g)
{
    static const char why[] = "out of memory";
    g->reloads.is_last_bad = true;
    g->reloads.bad++;
    memcpy(g->reloads.last_error, why, sizeof why);
    journal_log(g->journal, LOG_ERROR, "reload",
                "configuration not reloaded: %s: weir keeps the running "
                "configuration",
                why);
}

static char *read_again(struct config_manager *g, struct admin_command *admin_command)
{
    char *why = config_manager_read_file(g, &admin_command->text);
    g->reloads.is_last_bad = why != NULL;
    g->reloads.bad += why != NULL;
    if (why == NULL) {
        g->reloads.good++;
        g->reloads.last_good_unix_ms = clock_unix_ms();
        return NULL;
    }
    char *error = admin_error("configuration not reloaded: %s", why);
    snprintf(g->reloads.last_error, sizeof g->reloads.last_error, "%s", why);
    journal_log(g->journal, LOG_ERROR, "reload", "%s: weir keeps the running configuration",
                error + 4);
    free(why);
    return error;
}

static char *reload(struct config_manager *g, struct admin_command *admin_command)
{
    char *error = read_again(g, admin_command);
    if (error == NULL)
        log_admin_command(g->journal, admin_command, "reload", "configuration reloaded from %s",
                          g->path);
    return error;
}

const char *config_manager_path(const struct config_manager *g)
{
    return g->path;
}

const struct reloads *config_manager_reloads(const struct config_manager *g)
{
    return &g->reloads;
}

bool config_manager_reload(struct config_manager *g)
{
    struct admin_command admin_command = {.kind = ADMIN_RELOAD};
    size_t given = mem_given();
    bool has_room = has_memory(g, 1);
    if (has_room)
        admin_command.error = read_again(g, &admin_command);
    else
        note_starved_reload(g);
    note_memory(g, given);
    bool is_good = has_room && admin_command.error == NULL;
    free(admin_command.error);
    free(admin_command.text);
    return is_good;
}

void config_manager_tell_reloaded(const struct config_manager *g)
{
    journal_log(g->journal, LOG_INFO, "reload", "configuration reloaded from %s", g->path);
}

/* ---- admin commands that change the configuration ---- */

/*
 * Changes a candidate config by all the commands and runs it. Returns NULL, or the error of the
 * candidate (heap). A command that cannot be carried out gets its own error.
 */
static char *change_all(struct config_manager *g, struct admin_command *const *admin_commands,
                        size_t n, char **told)
{
    struct candidate candidate = candidate_new(&g->file, &g->lines);
    bool has_changed = false;
    for (size_t i = 0; i < n; i++) {
        admin_commands[i]->error =
            candidate_change(&candidate, admin_commands[i], &g->live, &told[i]);
        has_changed |= admin_commands[i]->error == NULL;
    }
    if (has_changed)
        return use_candidate(g, &candidate);
    candidate_fini(&candidate);
    return NULL;
}

static void config_manager_tell_changes(struct config_manager *g,
                                        struct admin_command *const *admin_commands, size_t n,
                                        char *const *told)
{
    static const char *const words[] = {[ADMIN_SET] = "set",
                                        [ADMIN_SET_LIMIT] = "set",
                                        [ADMIN_UNSET] = "unset",
                                        [ADMIN_MODE] = "mode"};
    for (size_t i = 0; i < n; i++)
        if (admin_commands[i]->error == NULL)
            log_admin_command(g->journal, admin_commands[i], words[admin_commands[i]->kind], "%s",
                              told[i]);
}

/*
 * Carries out n commands in one step. If the candidate is bad, each half is tried by itself, until
 * the bad command is alone.
 */
static void config_manager_change(struct config_manager *g,
                                  struct admin_command *const *admin_commands, size_t n)
{
    char **told = mem_zalloc(n, sizeof *told);
    char *why = change_all(g, admin_commands, n, told);
    if (why == NULL)
        config_manager_tell_changes(g, admin_commands, n, told);
    for (size_t i = 0; i < n; i++)
        free(told[i]);
    free(told);
    if (why != NULL && n == 1) {
        admin_commands[0]->error = admin_error("%s", why);
    } else if (why != NULL) {
        for (size_t i = 0; i < n; i++)
            free(admin_commands[i]->error);
        config_manager_change(g, admin_commands, n / 2);
        config_manager_change(g, admin_commands + n / 2, n - n / 2);
    }
    free(why);
}

/* ---- admin commands about single keys and subjects ---- */

static char *change_key(struct config_manager *g, struct admin_command *admin_command)
{
    struct named *next;
    char *error = (admin_command->kind == ADMIN_SET_KEY ? admin_key_set : admin_key_unset)(
        admin_command, g->live.rules->named, clock_ns(), g->journal, &next);
    if (error == NULL)
        live_rules_set_named(&g->live, next);
    return error;
}

static char *config_manager_block(struct config_manager *g, struct admin_command *admin_command)
{
    return admin_block(admin_command, &g->live, clock_ns());
}

/* Logs an admin command that the workers have carried out. */
static char *note_round(struct config_manager *g, struct admin_command *admin_command)
{
    if (admin_command->kind == ADMIN_KICK)
        log_admin_command(g->journal, admin_command, "kick", "%zu connection%s of %s closed",
                          admin_command->n_rows, admin_command->n_rows == 1 ? "" : "s",
                          admin_command->key);
    return NULL;
}

/* ---- ends in time ---- */

uint64_t config_manager_next_end(const struct config_manager *g)
{
    uint64_t blocks_ns = shared_set_next_end(g->live.blocks),
             lines_ns = set_lines_next_end(&g->lines);
    return blocks_ns == 0 || (lines_ns > 0 && lines_ns < blocks_ns) ? lines_ns : blocks_ns;
}

static void end_lines(struct config_manager *g, uint64_t now_ns)
{
    uint64_t next_ns = set_lines_next_end(&g->lines);
    if (next_ns == 0 || next_ns > now_ns)
        return;
    struct candidate candidate = candidate_new(&g->file, &g->lines);
    set_lines_end(&candidate.lines, now_ns, g->journal);
    free(use_candidate(g, &candidate));
}

void config_manager_end(struct config_manager *g, uint64_t now_ns)
{
    if (!has_memory(g, 0))
        return;
    admin_blocks_end(&g->live, now_ns);
    end_lines(g, now_ns);
}

size_t config_manager_blocks(const struct config_manager *g, bool *has_been, uint16_t *id)
{
    *has_been = g->live.has_block;
    *id = g->live.block.id;
    return shared_set_count(g->live.blocks);
}

bool config_manager_set_password(struct config_manager *g, char *password)
{
    if (!has_memory_for(g, ADMIN_SET_KEY, 1))
        return false;
    live_rules_set_password(&g->live, password);
    return true;
}

char *config_manager_hand_over(const struct config_manager *g)
{
    if (!has_memory(g, 0))
        return NULL;
    return handover_write(&(struct handover){.running = &g->file,
                                             .loaded = &g->loaded,
                                             .lines = &g->lines,
                                             .named = g->live.rules->named,
                                             .blocks = g->live.blocks});
}

static char *config_manager_compare(struct config_manager *g, struct admin_command *admin_command)
{
    struct differences differences;
    if (g->path == NULL)
        return admin_error(
            "weir was started without a file (-c FILE): there is no file to compare with");
    char *why = compare_file(g, &differences);
    if (why == NULL) {
        admin_command->differences = differences.at;
        admin_command->n_differences = differences.count;
        return NULL;
    }
    char *error = admin_error("the file cannot be compared: %s", why);
    free(why);
    return error;
}

/* ---- admin commands by kind ---- */

static char *(*const kinds[])(struct config_manager *g, struct admin_command *admin_command) = {
    [ADMIN_RELOAD] = reload,
    [ADMIN_SET_KEY] = change_key,
    [ADMIN_UNSET_KEY] = change_key,
    [ADMIN_DIFF] = config_manager_compare,
    [ADMIN_BLOCK] = config_manager_block,
    [ADMIN_UNBLOCK] = config_manager_block,
    [ADMIN_CLIENTS] = note_round,
    [ADMIN_KICK] = note_round,
};

/* Every admin command that candidate_is_for rejects has a row in `kinds`. */
static char *run_kind(struct config_manager *g, struct admin_command *admin_command)
{
    assert(admin_command->kind < sizeof kinds / sizeof kinds[0] &&
           kinds[admin_command->kind] != NULL);
    return kinds[admin_command->kind](g, admin_command);
}

static void note_starved(struct config_manager *g, const struct admin_command *admin_command)
{
    if (admin_command->kind == ADMIN_RELOAD)
        note_starved_reload(g);
    else
        log_at(LOG_SITE_MEMORY, LOG_WARN, "out of memory: an operator's command had no effect");
}

/* Carries out one admin command, or n that candidate_is_for accepts. */
static void carry_out(struct config_manager *g, struct admin_command *const *admin_commands,
                      size_t n)
{
    size_t given = mem_given();
    bool is_starved = !has_memory_for(g, admin_commands[0]->kind, n);
    for (size_t i = 0; i < n; i++)
        admin_commands[i]->is_starved = is_starved;
    if (is_starved)
        note_starved(g, admin_commands[0]);
    else if (candidate_is_for(admin_commands[0]))
        config_manager_change(g, admin_commands, n);
    else
        admin_commands[0]->error = run_kind(g, admin_commands[0]);
    note_memory(g, given);
}

void config_manager_carry_out(struct config_manager *g, struct admin_command *admin_command)
{
    carry_out(g, &admin_command, 1);
}

void config_manager_carry_out_all(struct config_manager *g,
                                  struct admin_command *const *admin_commands, size_t n)
{
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; candidate_is_for(admin_commands[i]) && end < n &&
                          candidate_is_for(admin_commands[end]);)
            end++;
        carry_out(g, admin_commands + i, end - i);
    }
}

/* ---- the life of the config manager ---- */

struct config_manager *config_manager_new(const struct config *config,
                                          const struct config_file *file,
                                          struct command_table *builtin, struct journal *journal)
{
    struct config_manager *g = mem_zalloc(1, sizeof *g);
    g->bytes = mem_given(); /* until now reading the file has taken most of the memory */
    g->journal = journal;
    g->path = file->path;
    g->builtin = command_table_get(builtin);
    live_rules_init(&g->live, config, builtin, journal);
    config_file_copy(&g->loaded, file);
    config_file_copy(&g->file, file);
    if (!live_rules_adopt(&g->live, config, &(struct variants){0}, true)) {
        log_error("the configuration has more limits than weir can hold");
        exit(EXIT_CONFIG);
    }
    return g;
}

struct rules *config_manager_rules(const struct config_manager *g)
{
    return g->live.rules;
}

struct live_rules *config_manager_live(struct config_manager *g)
{
    return &g->live;
}

void config_manager_free(struct config_manager *g)
{
    command_table_put(g->builtin);
    drop_file(&g->loaded);
    drop_file(&g->file);
    set_lines_fini(&g->lines);
    live_rules_fini(&g->live);
    free(g);
}

void config_manager_on_table(struct config_manager *g, struct command_table *commands)
{
    if (!has_memory(g, 0)) {
        log_line(LOG_WARN, "out of memory: weir keeps the last known commands of the upstream");
        command_table_put(commands);
        return;
    }
    live_rules_rebind(&g->live, commands);
}
