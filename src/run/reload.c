#include "run/reload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/config_diff.h"
#include "run/config_edit.h"
#include "run/notice.h"

#define TEXT_ROOM 1024

void reload_name_dropped(struct journal *journal, const struct config_file *running, const struct config_file *loaded,
                         const struct config_file *file)
{
    struct differences set = config_diff(running, loaded);
    struct differences gone = config_diff(running, file);
    for (size_t i = 0; i < set.count; i++)
        for (size_t j = 0; j < gone.count; j++)
            if (strcmp(set.at[i].section, gone.at[j].section) == 0 && strcmp(set.at[i].what, gone.at[j].what) == 0)
                notice(journal, LOG_WARN, "reload", "dropped, for it was only SET: [%s] %s%s%s", gone.at[j].section,
                       gone.at[j].what, gone.at[j].running[0] ? " = " : " removed", gone.at[j].running);
    differences_fini(&set);
    differences_fini(&gone);
}

static void add_word(char *text, size_t size, const char *section, const char *word)
{
    size_t len = strlen(text);
    snprintf(text + len, size - len, "%s%s%s", len > 0 ? ", " : "", section, word);
}

/* Whether there is a password is settled at the start; which one it is, is not. */
static bool must_stay(const struct difference *difference)
{
    bool is_password = strcmp(difference->what, "upstream-password-file") == 0;
    return difference_needs_restart(difference) ||
           (is_password && (difference->running[0] == '\0' || difference->file[0] == '\0'));
}

void reload_keep_settings(struct journal *journal, const struct config_file *running, struct config_file *file)
{
    char names[TEXT_ROOM] = "";
    struct differences d = config_diff(running, file);
    for (size_t i = 0; i < d.count; i++) {
        if (!must_stay(&d.at[i]))
            continue;
        struct line_name name = difference_line(&d.at[i]);
        char *value = config_file_value(running, &name);
        config_file_replace(file, &name, value);
        free(value);
        add_word(names, sizeof names, name.kind == SECTION_ADMIN ? "[admin] " : "", d.at[i].what);
    }
    differences_fini(&d);
    if (names[0])
        notice(journal, LOG_WARN, "reload", "changed in the file, but needs a restart: %s", names);
}
