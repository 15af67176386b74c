/* SPDX-License-Identifier: Apache-2.0 */
/* A zone's match, put together. */
#include "deploy/weir/import/match_set.h"

#include "deploy/weir/import/plan.h"

#include <string.h>

static struct match_values *values_of(struct match_set *set, const char *field)
{
	for (unsigned i = 0; i < set->count; i++)
		if (strcmp(set->fields[i].field, field) == 0)
			return &set->fields[i];
	if (set->count == MATCH_FIELDS_MAX)
		return NULL;
	set->fields[set->count] = (struct match_values){.field = field};
	return &set->fields[set->count++];
}

const char *match_add(struct match_set *set, const char *field, bool not, bool first, enum match_how how,
                      const char *value)
{
	if (how != MATCH_WILD && strchr(value, '*') != NULL)
		return "a value has a *, which stands for any text in weir's match";
	if (strcmp(field, "path") == 0 &&
	    (strstr(value, "..") != NULL || strpbrk(value, "%?#") != NULL || strstr(value, "//")))
		return "the path is what the server serves, without .. and %, and without the query";
	struct match_values *values = values_of(set, field);
	if (values == NULL || values->count[not ] == MATCH_VALUES_MAX)
		return "it asks for more fields or values than weir's match takes";
	/* All that must not be can be put together; two lists of what must be are asked for both. */
	if (first && !not &&values->clauses[not ] > 0)
		return "it asks one field for two things at once";
	values->clauses[not ] += first;
	struct weir_text text = {0}, *list = &values->list[not ];
	weir_text_puts(&text, how == MATCH_ENDS || how == MATCH_CONTAINS ? "*" : "");
	weir_text_puts(&text, value);
	weir_text_puts(&text, how == MATCH_BEGINS || how == MATCH_CONTAINS ? "*" : "");
	weir_text_puts(list, values->count[not ]++ > 0 ? ", " : "");
	weir_text_json(list, weir_text_span(&text));
	weir_text_deinit(&text);
	return NULL;
}

static void write_list(const char *name, const struct weir_text *list, struct weir_text *out)
{
	weir_text_puts(out, name);
	weir_text_puts(out, "[");
	weir_text_append(out, list->at, list->length);
	weir_text_puts(out, "]");
}

void match_write(const struct match_set *set, struct weir_text *out)
{
	weir_text_puts(out, "{");
	for (unsigned i = 0; i < set->count; i++) {
		const struct match_values *values = &set->fields[i];
		weir_text_puts(out, i > 0 ? ", " : "");
		put_string(out, values->field);
		weir_text_puts(out, ": ");
		if (values->count[true] == 0) {
			write_list("", &values->list[false], out);
			continue;
		}
		weir_text_puts(out, "{");
		if (values->count[false] > 0)
			write_list("\"is\": ", &values->list[false], out);
		write_list(values->count[false] > 0 ? ", \"not\": " : "\"not\": ", &values->list[true], out);
		weir_text_puts(out, "}");
	}
	weir_text_puts(out, "}");
}

bool match_has(const struct match_set *set, const char *field)
{
	for (unsigned i = 0; i < set->count; i++)
		if (strcmp(set->fields[i].field, field) == 0)
			return true;
	return false;
}

void match_deinit(struct match_set *set)
{
	for (unsigned i = 0; i < set->count; i++) {
		weir_text_deinit(&set->fields[i].list[false]);
		weir_text_deinit(&set->fields[i].list[true]);
	}
}
