#include "front/client/library.h"

#include <stdlib.h>
#include <string.h>

#define LOOKED_AT 64 /* of those known, which are tried before another copy is made */

struct slice library_name(const struct library *library)
{
    return library != NULL ? slice_of(library->text, library->name_len) : slice_of("", 0);
}

struct slice library_version(const struct library *library)
{
    return library != NULL ? slice_of(library->text + library->name_len, library->version_len) : slice_of("", 0);
}

struct library *library_get(struct library *library)
{
    if (library != NULL)
        library->holders++;
    return library;
}

void library_put(struct library *library)
{
    if (library == NULL || --library->holders > 0)
        return;
    list_take(&library->in_known);
    free(library);
}

static struct library *find(struct list *known, struct slice name, struct slice version)
{
    unsigned looked_at = 0;
    for (struct list *at = known->next; at != known && looked_at < LOOKED_AT; at = at->next, looked_at++) {
        struct library *library = container_of(at, struct library, in_known);
        if (slice_eq(library_name(library), name) && slice_eq(library_version(library), version))
            return library;
    }
    return NULL;
}

/* NULL: out of memory. */
static struct library *make(struct list *known, struct slice name, struct slice version)
{
    struct library *library = calloc(1, sizeof *library + name.len + version.len);
    if (library == NULL)
        return NULL;
    library->name_len = name.len;
    library->version_len = version.len;
    memcpy(library->text, name.at, name.len);
    memcpy(library->text + name.len, version.at, version.len);
    list_init(&library->in_known);
    list_push(known, &library->in_known);
    return library;
}

bool library_change(struct list *known, struct library **held, bool is_version, struct slice value)
{
    struct library *old = *held;
    struct slice name = is_version ? library_name(old) : value;
    struct slice version = is_version ? value : library_version(old);
    struct library *library = NULL;
    if (name.len + version.len > 0) {
        library = find(known, name, version);
        if (library == NULL)
            library = make(known, name, version);
        if (library == NULL)
            return false;
        library->holders++;
    }
    library_put(old);
    *held = library;
    return true;
}
