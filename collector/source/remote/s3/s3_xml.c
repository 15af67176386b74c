/* SPDX-License-Identifier: Apache-2.0 */
/* The document is in memory, and its size is limited by whoever fetched it. */
#include "collector/source/remote/s3/s3_xml.h"

#include <stdlib.h>

enum { REFERENCE_BYTES_MOST = 10 };

void s3_xml_init(struct s3_xml *xml, struct weir_span document)
{
	*xml = (struct s3_xml){.rest = document};
	if (xml->rest.length >= 3 && memcmp(xml->rest.at, "\xef\xbb\xbf", 3) == 0)
		xml->rest = (struct weir_span){.at = document.at + 3, .length = document.length - 3};
}

void s3_xml_deinit(struct s3_xml *xml)
{
	weir_text_deinit(&xml->value);
}

static enum s3_xml_event is_broken(struct s3_xml *xml, const char *why)
{
	xml->broken = why;
	return S3_XML_BROKEN;
}

static void skip(struct weir_span *rest, size_t bytes)
{
	rest->at += bytes;
	rest->length -= (uint32_t)bytes;
}

static bool begins(struct weir_span rest, const char *with)
{
	size_t length = strlen(with);
	return rest.length >= length && memcmp(rest.at, with, length) == 0;
}

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* Passes all up to and with what ends it. @return what stands before that; absent: the document ends first */
static struct weir_span take_until(struct weir_span *rest, const char *end)
{
	const char *found = rest->length > 0 ? memmem(rest->at, rest->length, end, strlen(end)) : NULL;
	if (found == NULL)
		return (struct weir_span){0};
	struct weir_span before = {.at = rest->at, .length = (uint32_t)(found - rest->at)};
	skip(rest, before.length + strlen(end));
	return before;
}

/* ---- text ---- */

static void put_character(struct weir_text *text, unsigned long code)
{
	char bytes[4];
	size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const unsigned char marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
	for (size_t i = length - 1; i > 0; i--, code >>= 6)
		bytes[i] = (char)(0x80 | (code & 0x3F));
	bytes[0] = (char)(marks[length] | code);
	weir_text_append(text, bytes, length);
}

/* "amp", "#34", "#x22". @return false: it stands for nothing that is known */
static bool put_reference(struct weir_text *text, struct weir_span name)
{
	static const struct {
		const char *name;
		char byte;
	} known[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (weir_span_equal(name, weir_span_of(known[i].name))) {
			weir_text_append(text, &known[i].byte, 1);
			return true;
		}
	if (name.length < 2 || name.length > REFERENCE_BYTES_MOST || name.at[0] != '#')
		return false;
	char digits[REFERENCE_BYTES_MOST + 1];
	memcpy(digits, name.at + 1, name.length - 1);
	digits[name.length - 1] = '\0';
	bool hexadecimal = digits[0] == 'x';
	const char *number = digits + hexadecimal;
	static const char figures[] = "0123456789abcdefABCDEF";
	if (number[0] == '\0' || number[strspn(number, hexadecimal ? figures : "0123456789")] != '\0')
		return false;
	unsigned long code = strtoul(number, NULL, hexadecimal ? 16 : 10);
	if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
		return false;
	put_character(text, code);
	return true;
}

/* Puts text with its references resolved. */
static bool put_text(struct weir_text *text, struct weir_span raw)
{
	while (raw.length > 0) {
		const char *mark = memchr(raw.at, '&', raw.length);
		size_t plain = mark != NULL ? (size_t)(mark - raw.at) : raw.length;
		weir_text_append(text, raw.at, plain);
		skip(&raw, plain);
		if (mark == NULL)
			return true;
		skip(&raw, 1);
		struct weir_span near = {.at = raw.at, .length = raw.length}, name;
		if (near.length > REFERENCE_BYTES_MOST + 1) /* no search through all of it at each mark */
			near.length = REFERENCE_BYTES_MOST + 1;
		name = take_until(&near, ";");
		if (name.at == NULL || !put_reference(text, name))
			return false;
		skip(&raw, name.length + 1);
	}
	return true;
}

/* ---- tags ---- */

/* The name at the beginning of a tag, without its namespace; empty: there is none. */
static struct weir_span tag_name(struct weir_span tag)
{
	uint32_t length = 0, from = 0;
	while (length < tag.length && !is_blank(tag.at[length]) && tag.at[length] != '/') {
		if (tag.at[length] == ':')
			from = length + 1;
		length++;
	}
	return (struct weir_span){.at = tag.at + from, .length = length - from};
}

/* What stands before the '>' that ends a tag: those within quotes are an attribute's. Absent: there is none. */
static struct weir_span take_tag(struct weir_span *rest)
{
	char quote = '\0';
	for (uint32_t i = 0; i < rest->length; i++) {
		char byte = rest->at[i];
		if (quote != '\0') {
			quote = byte == quote ? '\0' : quote;
		} else if (byte == '"' || byte == '\'') {
			quote = byte;
		} else if (byte == '>') {
			struct weir_span tag = {.at = rest->at, .length = i};
			skip(rest, i + 1);
			return tag;
		}
	}
	return (struct weir_span){0};
}

static enum s3_xml_event close_element(struct s3_xml *xml)
{
	xml->name = xml->open[--xml->depth];
	xml->closed = true;
	return S3_XML_CLOSE;
}

static enum s3_xml_event open_element(struct s3_xml *xml, struct weir_span tag)
{
	struct weir_span name = tag_name(tag);
	if (name.length == 0)
		return is_broken(xml, "has a tag without a name");
	if (xml->depth == 0 && xml->begun)
		return is_broken(xml, "goes on behind its end");
	if (xml->depth == S3_XML_DEPTH_MOST)
		return is_broken(xml, "has too many elements within one another");
	if (xml->depth == 0 && name.length == 4 && strncasecmp(name.at, "html", 4) == 0)
		return is_broken(xml, "is HTML, not XML");
	xml->begun = true;
	xml->empty = tag.at[tag.length - 1] == '/';
	xml->open[xml->depth++] = xml->name = name;
	weir_text_clear(&xml->value);
	return S3_XML_OPEN;
}

static enum s3_xml_event end_element(struct s3_xml *xml, struct weir_span tag)
{
	if (xml->depth == 0 || !weir_span_equal(tag_name(tag), xml->open[xml->depth - 1]))
		return is_broken(xml, "has an end tag that ends nothing");
	return close_element(xml);
}

/* Passes a comment, an instruction, or text that is marked as such. @return false: it is broken */
static bool pass_special(struct s3_xml *xml)
{
	struct weir_span *rest = &xml->rest, passed;
	if (begins(*rest, "<!--")) {
		skip(rest, 4);
		passed = take_until(rest, "-->");
	} else if (begins(*rest, "<![CDATA[") && xml->depth > 0) {
		skip(rest, 9);
		passed = take_until(rest, "]]>");
		if (passed.at != NULL)
			weir_text_append(&xml->value, passed.at, passed.length);
	} else if (begins(*rest, "<?")) {
		skip(rest, 2);
		passed = take_until(rest, "?>");
	} else {
		bool html = rest->length >= 14 && strncasecmp(rest->at, "<!doctype html", 14) == 0;
		(void)is_broken(xml, html ? "is HTML, not XML" : "has a document type, which S3's answers do not have");
		return false;
	}
	if (passed.at == NULL)
		(void)is_broken(xml, "is cut off");
	return passed.at != NULL;
}

/* Takes the text up to the next tag. @return false: it is broken */
static bool pass_text(struct s3_xml *xml)
{
	struct weir_span *rest = &xml->rest;
	const char *tag = memchr(rest->at, '<', rest->length);
	struct weir_span text = {.at = rest->at, .length = tag != NULL ? (uint32_t)(tag - rest->at) : rest->length};
	skip(rest, text.length);
	if (xml->depth > 0) {
		if (put_text(&xml->value, text))
			return true;
		(void)is_broken(xml, "has a reference that stands for nothing");
		return false;
	}
	for (uint32_t i = 0; i < text.length; i++)
		if (!is_blank(text.at[i])) {
			(void)is_broken(xml, xml->begun ? "goes on behind its end" : "is no XML");
			return false;
		}
	return true;
}

enum s3_xml_event s3_xml_next(struct s3_xml *xml)
{
	struct weir_span *rest = &xml->rest;
	if (xml->broken != NULL)
		return S3_XML_BROKEN;
	if (xml->closed)
		weir_text_clear(&xml->value);
	xml->closed = false;
	if (xml->empty) {
		xml->empty = false;
		return close_element(xml);
	}
	while (rest->length > 0) {
		if (rest->at[0] != '<') {
			if (!pass_text(xml))
				return S3_XML_BROKEN;
			continue;
		}
		if (rest->length > 1 && (rest->at[1] == '!' || rest->at[1] == '?')) {
			if (!pass_special(xml))
				return S3_XML_BROKEN;
			continue;
		}
		bool ends = begins(*rest, "</");
		skip(rest, ends ? 2 : 1);
		struct weir_span tag = take_tag(rest);
		if (tag.at == NULL)
			return is_broken(xml, "is cut off");
		return ends ? end_element(xml, tag) : open_element(xml, tag);
	}
	if (xml->depth > 0)
		return is_broken(xml, "is cut off");
	return xml->begun ? S3_XML_END : is_broken(xml, "is empty");
}
