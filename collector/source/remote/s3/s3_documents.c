/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether keys are encoded may stand behind them, and a page that is cut must not pass for a short one: so a page is read
 * to its end first.
 */
#include "collector/source/remote/s3/s3_documents.h"

#include "collector/record/time_text.h"
#include "collector/source/remote/s3/s3_xml.h"
#include "common/base/alloc.h"
#include "common/bytes/hex.h"

#include <inttypes.h>
#include <stdlib.h>

void s3_page_deinit(struct s3_page *page)
{
	weir_text_deinit(&page->keys);
	weir_text_deinit(&page->next);
	free(page->entries);
}

/* What is read of a page besides its entries. */
struct reading {
	struct s3_page *page;
	struct time_reader *time;
	bool encoded;
	bool has_key, has_size, has_time; /* of the entry that is under way: the last one */
	const char *wrong;
};

static struct s3_entry *last_entry(struct reading *reading)
{
	return &reading->page->entries[reading->page->count - 1];
}

static void add_entry(struct reading *reading)
{
	struct s3_page *page = reading->page;
	if (page->count == S3_PAGE_MOST) {
		reading->wrong = "names more objects than a page may have";
		return;
	}
	if (page->count == page->capacity) {
		page->capacity = page->capacity > 0 ? page->capacity * 2 : 64;
		page->entries = weir_realloc(page->entries, page->capacity, sizeof *page->entries);
	}
	page->entries[page->count++] = (struct s3_entry){0};
	reading->has_key = reading->has_size = reading->has_time = false;
}

static void take_key(struct reading *reading, struct weir_span value)
{
	struct s3_entry *entry = last_entry(reading);
	if (value.length == 0 || value.length > 3 * REMOTE_NAME_MOST || reading->has_key) {
		reading->wrong = "has a key that none can be";
		return;
	}
	entry->key_at = reading->page->keys.length;
	entry->key_length = value.length;
	weir_text_append(&reading->page->keys, value.at, value.length);
	weir_text_append(&reading->page->keys, "", 1);
	reading->has_key = true;
}

static void take_size(struct reading *reading, struct weir_span value)
{
	uint64_t size = 0;
	for (uint32_t i = 0; i < value.length; i++) {
		if (value.at[i] < '0' || value.at[i] > '9' || size > (UINT64_MAX >> 1) / 10 - 1) {
			reading->wrong = "has a size that is no number";
			return;
		}
		size = size * 10 + (uint64_t)(value.at[i] - '0');
	}
	last_entry(reading)->size = size;
	reading->has_size = value.length > 0;
}

static void take_time(struct reading *reading, struct weir_span value)
{
	reading->has_time = time_read(reading->time, value, &last_entry(reading)->modified_ms) == FORMAT_OK;
	if (!reading->has_time)
		reading->wrong = "has a time that is none";
}

/* An ETag that is too long is not asked for again: the object's key and size are left to tell it. */
static void take_etag(struct reading *reading, struct weir_span value)
{
	char *etag = last_entry(reading)->etag;
	bool whole = value.length < REMOTE_TAG_BYTES && memchr(value.at, '\0', value.length) == NULL;
	for (uint32_t i = 0; i < value.length; i++) /* it becomes a part of a header */
		whole &= (unsigned char)value.at[i] > ' ' && value.at[i] != 0x7F;
	snprintf(etag, REMOTE_TAG_BYTES, "%.*s", whole ? (int)value.length : 0, value.length > 0 ? value.at : "");
}

static bool is(struct weir_span name, const char *what)
{
	return weir_span_equal(name, weir_span_of(what));
}

static void take_of_entry(struct reading *reading, struct weir_span name, struct weir_span value)
{
	if (is(name, "Key"))
		take_key(reading, value);
	else if (is(name, "Size"))
		take_size(reading, value);
	else if (is(name, "LastModified"))
		take_time(reading, value);
	else if (is(name, "ETag") && value.length > 0)
		take_etag(reading, value);
}

/* Some servers list folders, without anything but their names. */
static void end_entry(struct reading *reading)
{
	const struct s3_page *page = reading->page;
	const struct s3_entry *entry = last_entry(reading);
	bool folder = reading->has_key && page->keys.at[entry->key_at + entry->key_length - 1] == '/';
	if (!folder && !(reading->has_key && reading->has_size && reading->has_time))
		reading->wrong = "has an object without its key, size or time";
}

static void take_of_page(struct reading *reading, struct weir_span name, struct weir_span value)
{
	struct s3_page *page = reading->page;
	if (is(name, "Contents"))
		end_entry(reading);
	else if (is(name, "IsTruncated"))
		page->truncated = is(value, "true");
	else if (is(name, "EncodingType"))
		reading->encoded = is(value, "url");
	else if (is(name, "NextContinuationToken")) {
		weir_text_clear(&page->next);
		if (value.length > 0) {
			weir_text_append(&page->next, value.at, value.length);
			weir_text_append(&page->next, "", 1);
		}
	}
}

/* Takes the encoding off a key, in its place; it gets no longer. As in forms, '+' is a blank. */
static void decode_key(struct s3_page *page, struct s3_entry *entry)
{
	char *key = page->keys.at + entry->key_at, *to = key;
	for (uint32_t i = 0; i < entry->key_length; i++) {
		int byte = key[i] == '%' && i + 2 < entry->key_length ? weir_hex_byte(key + i + 1) : -1;
		*to++ = byte >= 0 ? (char)byte : key[i] == '+' ? ' ' : key[i];
		if (byte >= 0)
			i += 2;
	}
	*to = '\0';
	entry->key_length = (uint32_t)(to - key);
}

static void read_events(struct reading *reading, struct s3_xml *xml)
{
	enum s3_xml_event event;
	bool in_entry = false;
	while (reading->wrong == NULL && (event = s3_xml_next(xml)) != S3_XML_END) {
		struct weir_span value = weir_text_span(&xml->value);
		if (event == S3_XML_BROKEN) {
			reading->wrong = xml->broken;
		} else if (event == S3_XML_OPEN && xml->depth == 1 && !is(xml->name, "ListBucketResult")) {
			reading->wrong = "is another document than a listing";
		} else if (event == S3_XML_OPEN && xml->depth == 2 && is(xml->name, "Contents")) {
			in_entry = true;
			add_entry(reading);
		} else if (event == S3_XML_CLOSE && xml->depth == 2 && in_entry) {
			take_of_entry(reading, xml->name, value);
		} else if (event == S3_XML_CLOSE && xml->depth == 1) {
			in_entry = false;
			take_of_page(reading, xml->name, value);
		}
	}
}

enum weir_status s3_page_read(struct s3_page *page, struct weir_span document, struct weir_error *error)
{
	struct time_zone *zone = NULL;
	struct time_reader time;
	struct s3_xml xml;
	page->count = 0;
	page->truncated = false;
	weir_text_clear(&page->keys);
	weir_text_clear(&page->next);
	enum weir_status status = time_zone_new("UTC", &zone, error);
	if (status != WEIR_OK)
		return status;
	time_reader_init(&time, zone);
	s3_xml_init(&xml, document);
	struct reading reading = {.page = page, .time = &time};
	read_events(&reading, &xml);
	for (size_t i = 0; reading.encoded && reading.wrong == NULL && i < page->count; i++)
		decode_key(page, &page->entries[i]);
	if (reading.wrong == NULL && page->truncated && page->count == 0 && page->next.length == 0)
		reading.wrong = "says that there is more, and not where";
	s3_xml_deinit(&xml);
	time_reader_deinit(&time);
	if (reading.wrong == NULL)
		return WEIR_OK;
	page->count = 0;
	return weir_fail(error, WEIR_INVALID, "%s", reading.wrong);
}

/* ---- refusals ---- */

/* Codes and regions are words of letters, digits and dashes: anything else is none. */
static void take_word(char word[S3_WORD_BYTES], struct weir_span value)
{
	bool good = value.length > 0 && value.length < S3_WORD_BYTES;
	for (uint32_t i = 0; good && i < value.length; i++) {
		char byte = value.at[i];
		good = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
		       byte == '-' || byte == '.';
	}
	snprintf(word, S3_WORD_BYTES, "%.*s", good ? (int)value.length : 0, good ? value.at : "");
}

void s3_refusal_read(struct s3_refusal *refusal, struct weir_span document)
{
	struct s3_xml xml;
	enum s3_xml_event event;
	bool is_error = false;
	*refusal = (struct s3_refusal){0};
	s3_xml_init(&xml, document);
	while ((event = s3_xml_next(&xml)) != S3_XML_END && event != S3_XML_BROKEN) {
		if (event == S3_XML_OPEN && xml.depth == 1)
			is_error = is(xml.name, "Error");
		if (event != S3_XML_CLOSE || xml.depth != 1 || !is_error)
			continue;
		if (is(xml.name, "Code"))
			take_word(refusal->code, weir_text_span(&xml.value));
		else if (is(xml.name, "Region"))
			take_word(refusal->region, weir_text_span(&xml.value));
	}
	refusal->html = event == S3_XML_BROKEN && strstr(xml.broken, "HTML") != NULL;
	s3_xml_deinit(&xml);
}

static const struct {
	const char *code, *words;
} known[] = {
	{"SignatureDoesNotMatch", "the secret is not that of the key: set the source's \"secret\""},
	{"InvalidAccessKeyId", "the server does not know the key: set the source's \"key\" and \"secret\""},
	{"ExpiredToken", "the session token has expired: renew what the source's \"session_token\" names"},
	{"TokenRefreshRequired", "the session token has expired: renew what the source's \"session_token\" names"},
	{"InvalidToken", "the session token is not valid, or not that of the key: see the source's \"session_token\""},
	{"AccessDenied", "the key may not do this: allow it s3:ListBucket on the bucket and s3:GetObject on its objects"},
	{"AllAccessDisabled", "all access to the bucket is disabled"},
	{"NoSuchBucket", "there is no such bucket: see the source's \"bucket\" and \"url\""},
	{"InvalidBucketName", "that is no name of a bucket: see the source's \"bucket\""},
	{"RequestTimeTooSkewed", "the clocks of this machine and of the server differ too much: set this machine's clock"},
	{"SlowDown", "the server asks for fewer requests: weir asks again after a pause"},
	{"ServiceUnavailable", "the server is overloaded: weir asks again after a pause"},
	{"InternalError", "the server has a fault of its own: weir asks again after a pause"},
	{"InvalidObjectState", "the object is in an archive class: restore it, or leave it out by \"match\""},
	{"PermanentRedirect",
     "the bucket is in another region: set the source's \"region\", and its \"url\" if it has one"},
	{"AuthorizationHeaderMalformed", "the request was signed for another region: set the source's \"region\""},
	{"IllegalLocationConstraintException", "the bucket is in another region: set the source's \"region\""},
	{"MethodNotAllowed", "this is no address of S3: see the source's \"url\""},
};

static const char *words_of(const struct s3_refusal *refusal, long code)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(refusal->code, known[i].code) == 0)
			return known[i].words;
	if (refusal->html)
		return "the answer is HTML: does the source's \"url\" lead to S3, and not to a page or a proxy?";
	if (code == 401 || code == 403)
		return "the server allows this neither to the key nor without one: see the source's \"key\"";
	if (code == 404)
		return "there is no such bucket or path: see the source's \"url\" and \"bucket\"";
	if (code / 100 == 3)
		return "the server sends us elsewhere: set the source's \"url\" and \"region\" to those of the bucket";
	return code >= 500 || code == 429 ? "weir asks again after a pause"
	                                  : "see whether the source's \"url\" leads to S3";
}

void s3_refusal_words(const struct s3_refusal *refusal, long code, struct weir_text *words)
{
	weir_text_printf(words, "HTTP %ld", code);
	if (refusal->code[0] != '\0')
		weir_text_printf(words, " (%s)", refusal->code);
	weir_text_printf(words, ": %s", words_of(refusal, code));
	if (refusal->region[0] != '\0')
		weir_text_printf(words, " (the server names %s)", refusal->region);
}
