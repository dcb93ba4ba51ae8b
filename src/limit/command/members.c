#include "limit/command/members.h"

#include <stdlib.h>

#include "base/mem.h"

struct members {
    const struct classes *classes;
    const struct command_table *table;
    bool **of; /* each class by its number, by command id; NULL: not looked up yet */
};

struct members *members_new(const struct classes *classes, const struct command_table *table)
{
    struct members *members = mem_zalloc(1, sizeof *members);
    members->classes = classes;
    members->table = table;
    members->of = mem_zalloc(classes_count(classes), sizeof *members->of);
    return members;
}

void members_free(struct members *members)
{
    for (size_t i = 0; i < classes_count(members->classes); i++)
        free(members->of[i]);
    free(members->of);
    free(members);
}

static bool *look_up(const struct members *members, const struct class *class)
{
    size_t n = command_table_count(members->table);
    bool *of = mem_zalloc(n, sizeof *of);
    for (size_t id = 0; id < n; id++)
        of[id] = class_has(class, members->table, command_table_row(members->table, id));
    return of;
}

const bool *members_of(struct members *members, const struct class *class)
{
    size_t number = 0;
    while (classes_at(members->classes, number) != class)
        number++;
    if (members->of[number] == NULL)
        members->of[number] = look_up(members, class);
    return members->of[number];
}

const struct classes *members_classes(const struct members *members)
{
    return members->classes;
}

const struct command_table *members_table(const struct members *members)
{
    return members->table;
}
