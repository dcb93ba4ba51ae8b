#include "admin/json.h"

#include <inttypes.h>

/* True if the next member is the first of an object, a list, or the whole text. */
static bool is_at_start(const struct text *out)
{
    return out->len == 0 || out->at[out->len - 1] == '{' || out->at[out->len - 1] == '[';
}

/* Writes the separator, if required, then the name and a colon. */
void json_name(struct text *out, const char *key)
{
    if (!is_at_start(out))
        text_add(out, SLICE(","));
    text_add_json(out, slice_str(key));
    text_add(out, SLICE(":"));
}

void json_number(struct text *out, const char *key, uint64_t value)
{
    json_name(out, key);
    text_print(out, "%" PRIu64, value);
}

void json_real(struct text *out, const char *key, double value)
{
    json_name(out, key);
    text_print(out, "%.15g", value);
}

void json_flag(struct text *out, const char *key, bool value)
{
    json_name(out, key);
    text_print(out, "%s", value ? "true" : "false");
}

void json_string(struct text *out, const char *key, const char *value)
{
    json_name(out, key);
    text_add_json(out, slice_str(value));
}

void json_text(struct text *out, const char *key, struct slice value)
{
    json_name(out, key);
    text_add_json(out, value);
}

void json_reals(struct text *out, const char *key, const float *values, size_t n)
{
    json_open_list(out, key);
    for (size_t i = 0; i < n; i++)
        text_print(out, "%s%.6g", i == 0 ? "" : ",", (double)values[i]);
    json_close_list(out);
}

void json_open_object(struct text *out, const char *key)
{
    json_name(out, key);
    text_add(out, SLICE("{"));
}

void json_open_list(struct text *out, const char *key)
{
    json_name(out, key);
    text_add(out, SLICE("["));
}

void json_open_row(struct text *out)
{
    text_print(out, "%s{", is_at_start(out) ? "" : ",");
}

void json_close_object(struct text *out)
{
    text_add(out, SLICE("}"));
}

void json_close_list(struct text *out)
{
    text_add(out, SLICE("]"));
}
