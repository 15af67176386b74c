/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an answer of S3: a page is whole or nothing, the same when it is read again, and cut before its end it is
 * none; what becomes a header or words has no control characters.
 */
#include "collector/source/remote/s3/s3_documents.h"

#include "tests/fuzz/require.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_page(const struct s3_page *page, size_t size)
{
	require(page->count <= S3_PAGE_MOST && page->keys.length <= 2 * size + 2);
	for (size_t i = 0; i < page->count; i++) {
		const struct s3_entry *entry = &page->entries[i];
		require(entry->key_at + entry->key_length < page->keys.length);
		require(page->keys.at[entry->key_at + entry->key_length] == '\0');
		require(memchr(entry->etag, '\0', sizeof entry->etag) != NULL);
		for (const char *at = entry->etag; *at != '\0'; at++)
			require((unsigned char)*at > ' ' && *at != 0x7F);
	}
	require(page->next.length == 0 || page->next.at[page->next.length - 1] == '\0');
}

static void check_words(struct weir_span document)
{
	struct s3_refusal refusal;
	struct weir_text words = {0};
	s3_refusal_read(&refusal, document);
	s3_refusal_words(&refusal, 403, &words);
	require(words.length > 0 && words.length < 512);
	for (size_t i = 0; i < words.length; i++)
		require((unsigned char)words.at[i] >= ' ' && (unsigned char)words.at[i] < 0x7F);
	weir_text_deinit(&words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = malloc(size + (size == 0)); /* of just its size: a read past it is seen */
	memcpy(exact, data, size);
	struct weir_span document = {.at = exact, .length = (uint32_t)size};
	struct s3_page page = {0}, part = {0};
	struct weir_error error;
	enum weir_status status = s3_page_read(&page, document, &error);
	require(status == WEIR_OK || (status == WEIR_INVALID && page.count == 0));
	check_page(&page, size);
	if (status == WEIR_OK && exact[size - 1] == '>') {
		struct weir_span cut = {.at = exact, .length = document.length - 1};
		require(s3_page_read(&part, cut, &error) == WEIR_INVALID);
	}
	check_words(document);
	s3_page_deinit(&page);
	s3_page_deinit(&part);
	free(exact);
	return 0;
}
