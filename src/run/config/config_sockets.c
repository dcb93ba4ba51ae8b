/* Nothing is made or opened, and what cannot be looked at is not judged: weir may run as somebody else, elsewhere. */
#include "run/config/config_sockets.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/split.h"
#include "base/why.h"

/* Folders there are made when the system starts, and by the service manager when weir does. */
static bool is_made_later(struct slice folder)
{
    static const struct slice run = {"/run/", 5}, var_run = {"/var/run/", 9};
    return (folder.len > run.len && slice_eq(slice_of(folder.at, run.len), run)) ||
           (folder.len > var_run.len && slice_eq(slice_of(folder.at, var_run.len), var_run));
}

static bool check_folder(struct slice path, struct why why)
{
    char folder[PATH_MAX];
    struct stat status;
    size_t len = path.len;
    while (len > 0 && path.at[len - 1] != '/')
        len--;
    len -= len > 1; /* without the slash behind it */
    if (len == 0 || len >= sizeof folder)
        return true;
    memcpy(folder, path.at, len);
    folder[len] = '\0';
    if (stat(folder, &status) == 0)
        return S_ISDIR(status.st_mode) || why_refuse(why, "%s is no folder: choose another path", folder);
    if (errno == ENOTDIR)
        return why_refuse(why, "%s is not in a folder: choose another path", folder);
    if (errno != ENOENT || is_made_later(slice_of(folder, len)))
        return true;
    return why_refuse(why, "there is no folder %s: make it, or choose another path", folder);
}

/* Could weir make its socket there? What was left by a process that has gone is replaced. */
static bool check_path(struct slice path, struct why why)
{
    char file[PATH_MAX];
    struct stat status;
    if (path.len >= sizeof file)
        return true;
    memcpy(file, path.at, path.len);
    file[path.len] = '\0';
    if (lstat(file, &status) != 0)
        return check_folder(path, why);
    if (S_ISDIR(status.st_mode))
        return why_refuse(why, "%s is a folder: name a file in it, which weir makes", file);
    return S_ISSOCK(status.st_mode) || S_ISLNK(status.st_mode) ||
           why_refuse(why, "%s is there and no socket, and weir does not replace it: choose another path", file);
}

static void check_entry(struct config_file *file, const struct entry *entry, struct slice path)
{
    char what[CONFIG_WHY_ROOM];
    if (!check_path(path, (struct why){what, sizeof what}))
        entry_says(file, false, entry, what);
}

void config_lint_sockets(const struct config *config, struct config_file *file)
{
    const struct entry *e = NULL;
    size_t n = 0; /* addresses are kept in the order of the file */
    while ((e = config_file_next(file, SECTION_WEIR, e)) != NULL) {
        struct slice rest = slice_str(e->value), item;
        bool is_listen = slice_eq_nocase(slice_str(e->key), SLICE("listen"));
        for (; is_listen && split_next(&rest, ',', &item) && n < config->n_listens; n++)
            if (config->listens[n].address.is_unix)
                check_entry(file, e, slice_str(config->listens[n].address.host));
    }
    while ((e = config_file_next(file, SECTION_ADMIN, e)) != NULL)
        if (config->admin_socket != NULL && slice_eq_nocase(slice_str(e->key), SLICE("socket")))
            check_entry(file, e, slice_str(config->admin_socket));
}
