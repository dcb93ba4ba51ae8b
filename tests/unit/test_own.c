/* Tests that weir's own commands are in every command table, whatever Redis lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "limit/command/class.h"
#include "limit/command/command.h"
#include "limit/command/own.h"

static void check_row(const struct command_table *table, const struct own *own)
{
    const struct command *row = command_by_name(table, slice_str(own->name));
    if (!row)
        fail_msg("no row %s", own->name);
    assert_int_equal(row->flow, FLOW_OWN);
    assert_int_equal(row->effect, EFFECT_NONE);
    assert_int_equal(row->arity, own->arity);
    assert_int_equal(row->first_key, own->first_key);
    assert_int_equal(row->last_key, own->last_key);
    assert_int_equal(row->key_step, own->key_step);
    assert_int_equal(row->flags, own->is_control ? CMD_CONTROL : 0);
    assert_false(row->blocks || row->pins || row->is_urgent || row->is_pausable);
    for (size_t bit = 0; bit < command_table_categories(table); bit++) {
        struct slice category = command_table_category(table, bit);
        bool is_its = slice_eq(category, SLICE("limit")) ||
                      slice_eq(category, own->writes ? SLICE("limit-write") : SLICE("limit-read"));
        assert_int_equal(row->categories >> bit & 1, is_its);
    }
    assert_true(row->categories != 0);
    const char *bar = strchr(own->name, '|');
    assert_int_equal(row->in_container, bar != NULL);
    struct slice name = bar ? slice_of(own->name, (size_t)(bar - own->name)) : slice_str(own->name);
    assert_ptr_equal(command_find(table, name, bar ? slice_str(bar + 1) : SLICE("")), row);
}

static void check_table(struct command_table *table)
{
    for (size_t i = 0; i < own_count(); i++)
        check_row(table, own_row(i));
    assert_true(command_by_name(table, SLICE("limit"))->has_subcommands);
    assert_ptr_equal(command_find(table, SLICE("LIMIT"), SLICE("nonsense")),
                     command_table_row(table, 0));
    command_table_put(table);
}

static void in_every_table(void **state)
{
    (void)state;
    check_table(command_table_new());
    check_table(command_table_builtin());
}

/* A module of Redis may have a command LIMIT. weir still answers by its own rows. */
static void redis_cannot_change_them(void **state)
{
    (void)state;
    static const char *const names[] = {"limit", "LIMIT|status", "limit|Top", "limit|more"};
    struct command_table *table = command_table_new();
    const struct slice category = SLICE("write");
    for (size_t i = 0; i < 4; i++)
        command_table_add(table, &(struct command_info){.name = slice_str(names[i]),
                                                        .arity = 9,
                                                        .first_key = 1,
                                                        .flags = CMD_WRITE | CMD_BLOCKING,
                                                        .categories = &category,
                                                        .n_categories = 1});
    check_table(table);
}

static void control_is_asking_about_oneself(void **state)
{
    (void)state;
    static const char *const control[] = {"limit|help", "limit|status", "limit|explain"};
    for (size_t i = 0; i < own_count(); i++) {
        bool is_listed = false;
        for (size_t k = 0; k < 3; k++)
            is_listed |= strcmp(own_row(i)->name, control[k]) == 0;
        assert_int_equal(own_row(i)->is_control, is_listed);
        assert_false(own_row(i)->is_control && own_row(i)->is_operators);
        assert_true(strlen(own_row(i)->summary) > 0);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(own_row(i)->name, own_row(k)->name);
    }
}

static void found_in_any_case(void **state)
{
    (void)state;
    assert_string_equal(own_find(SLICE("LIMIT|Status"))->name, "limit|status");
    assert_null(own_find(SLICE("limit|")));
    assert_null(own_find(SLICE("get")));
    assert_null(own_find(SLICE("")));
}

static void classes_hold_them(void **state)
{
    (void)state;
    char why[256];
    struct classes *classes = classes_new();
    struct command_table *table = command_table_builtin();
    const struct class *limit = class_find(classes, SLICE("@limit"), why, sizeof why);
    const struct class *all = class_find(classes, SLICE("all"), why, sizeof why);
    const struct class *one = class_find(classes, SLICE("cmd.limit"), why, sizeof why);
    const struct class *reads = class_find(classes, SLICE("@limit-read"), why, sizeof why);
    const struct class *writes = class_find(classes, SLICE("@limit-write"), why, sizeof why);
    assert_non_null(limit);
    for (size_t i = 0; i < own_count(); i++) {
        const struct command *row = command_by_name(table, slice_str(own_row(i)->name));
        bool is_limits = strncmp(own_row(i)->name, "limit", 5) == 0; /* not CL.THROTTLE */
        assert_true(class_has(limit, table, row) && class_has(all, table, row));
        assert_int_equal(class_has(one, table, row), is_limits);
        assert_int_equal(class_has(writes, table, row), own_row(i)->writes);
        assert_int_equal(class_has(reads, table, row), !own_row(i)->writes);
        assert_false(own_row(i)->writes && own_row(i)->is_control);
        assert_true(own_row(i)->writes || own_row(i)->first_key == 0);
    }
    assert_false(class_has(limit, table, command_by_name(table, SLICE("get"))));
    command_table_put(table);
    classes_free(classes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_every_table),
        cmocka_unit_test(redis_cannot_change_them),
        cmocka_unit_test(control_is_asking_about_oneself),
        cmocka_unit_test(found_in_any_case),
        cmocka_unit_test(classes_hold_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
