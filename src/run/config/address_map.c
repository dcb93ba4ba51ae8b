#include "run/config/address_map.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/split.h"

static const struct address_map_row *row_of(const struct address_map *map, const struct address *announced)
{
    for (size_t i = 0; i < map->n; i++)
        if (address_is_same(&map->rows[i].announced, announced))
            return &map->rows[i];
    return NULL;
}

/* True if rows lead from there back to `start`. */
static bool leads_to(const struct address_map *map, const struct address *from, const struct address *start)
{
    const struct address_map_row *row;
    for (size_t hops = 0; hops <= map->n && !address_is_same(from, start); hops++) {
        if ((row = row_of(map, from)) == NULL)
            return false;
        from = &row->dialled;
    }
    return true;
}

static bool parse_side(struct address *address, struct slice text, struct why why)
{
    struct address parsed = {0};
    if (!address_parse(&parsed, text, false, why.out, why.size))
        return false;
    if (parsed.is_unix || parsed.is_tls) {
        address_fini(&parsed);
        return why_refuse(why, "\"%.*s\": both sides are HOST:PORT: tls: stands in upstream alone", WHY_SLICE(text));
    }
    *address = parsed;
    return true;
}

static bool parse_row(struct address_map_row *row, struct slice item, struct why why)
{
    struct slice rest = item, announced, dialled;
    bool is_pair = split_next(&rest, '=', &announced) && split_next(&rest, '=', &dialled) && rest.at == NULL &&
                   announced.len > 0 && dialled.len > 0;
    if (!is_pair)
        return why_refuse(why, "\"%.*s\" does not say what is dialled instead: write ANNOUNCED:PORT=DIALLED:PORT",
                          WHY_SLICE(item));
    return parse_side(&row->announced, announced, why) && parse_side(&row->dialled, dialled, why);
}

static bool may_stand(const struct address_map *map, const struct address_map_row *row, struct slice item,
                      struct why why)
{
    if (map->n == ADDRESS_MAP_MOST)
        return why_refuse(why, "at most %d addresses: take %.*s out", ADDRESS_MAP_MOST, WHY_SLICE(item));
    if (row_of(map, &row->announced) != NULL)
        return why_refuse(why, "%.*s: the same address stands there already: name each address once", WHY_SLICE(item));
    if (leads_to(map, &row->dialled, &row->announced))
        return why_refuse(why, "%.*s leads round to where it begins: take it out", WHY_SLICE(item));
    return true;
}

static void fini_row(struct address_map_row *row)
{
    address_fini(&row->announced);
    address_fini(&row->dialled);
}

bool address_map_add(struct address_map *map, struct slice value, struct why why)
{
    struct slice item;
    while (split_next(&value, ',', &item)) {
        struct address_map_row row = {.announced = {.host = NULL}};
        if (!parse_row(&row, item, why) || !may_stand(map, &row, item, why)) {
            fini_row(&row);
            return false;
        }
        map->rows = mem_realloc(map->rows, map->n + 1, sizeof row);
        map->rows[map->n++] = row;
    }
    return true;
}

const struct address *address_map_find(const struct address_map *map, const struct address *announced)
{
    const struct address_map_row *row = row_of(map, announced);
    return row != NULL ? &row->dialled : announced;
}

void address_map_fini(struct address_map *map)
{
    for (size_t i = 0; i < map->n; i++)
        fini_row(&map->rows[i]);
    free(map->rows);
    *map = (struct address_map){0};
}
