/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a configuration's text: comments become blanks in place, and refusing every value in turn comes to an end. */
#include "common/json/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Refuses the deepest first value, or a member that is not there. */
static void refuse_some(struct weir_json at, unsigned choice, struct weir_error *error)
{
	const char *key;
	json_t *value;
	for (int depth = 0; depth < 50; depth++, choice = choice * 5 + 1) {
		if (json_is_array(at.value) && json_array_size(at.value) > 0) {
			at = weir_json_element(&at, choice % json_array_size(at.value));
		} else if (json_is_object(at.value) && choice % 7 != 0 && json_object_size(at.value) > 0) {
			json_object_foreach(at.value, key, value) break;
			at = weir_json_member(&at, key);
		} else {
			break;
		}
	}
	struct weir_json missing = weir_json_member(&at, "missing");
	weir_json_fail(choice % 3 == 0 ? &missing : &at, error, "is wrong");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct weir_json_document *document = NULL;
	struct weir_error error = {.text = ""};
	memcpy(text, data, size);
	json_relax(text, size);
	for (size_t i = 0; i < size; i++)
		assert(text[i] == (char)data[i] || text[i] == ' ');
	if (weir_json_parse("fuzz.json", text, size, &document, &error) == WEIR_OK) {
		bool new_mistake;
		size_t rounds = 0;
		do
			refuse_some(weir_json_root(document), (unsigned)(size + rounds), &error);
		while (weir_json_read_on(document, &error, &new_mistake) && rounds++ <= size);
		assert(rounds <= size);
		weir_json_document_free(document);
	} else {
		assert(error.text[0] != '\0' && strchr(error.text, '\n') == NULL);
	}
	free(text);
	return 0;
}
