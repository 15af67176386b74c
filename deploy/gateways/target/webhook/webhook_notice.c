/* SPDX-License-Identifier: Apache-2.0 */
/* A key is shown as valid UTF-8 without control characters, and without those that turn the direction of writing. */
#include "deploy/gateways/target/webhook/webhook_notice.h"

#include "common/base/words.h"

#include <string.h>
#include <time.h>

/* Ranges of code points with nothing to see, or another order of what is seen, by their bytes in UTF-8. */
static const struct {
	char first[5], last[5];
} hidden_ranges[] = {
	{"\u00AD", "\u00AD"},         /* soft hyphen */
	{"\u061C", "\u061C"},         /* Arabic letter mark */
	{"\u180E", "\u180E"},         /* Mongolian vowel separator */
	{"\u200B", "\u200F"},         /* without width; marks of direction */
	{"\u2028", "\u202E"},         /* separators; embeddings and overrides */
	{"\u2060", "\u206F"},         /* joiners; isolates */
	{"\uFE00", "\uFE0F"},         /* variation selectors */
	{"\uFEFF", "\uFEFF"},         /* byte order mark */
	{"\U000E0000", "\U000E0FFF"}, /* tags, more selectors */
};

/* The bytes of the hidden code point that begins there; 0: it is none. */
static size_t hidden_bytes(const char *at, size_t left)
{
	for (size_t i = 0; i < sizeof hidden_ranges / sizeof *hidden_ranges; i++) {
		size_t bytes = strlen(hidden_ranges[i].first);
		if (bytes <= left && memcmp(at, hidden_ranges[i].first, bytes) >= 0 &&
		    memcmp(at, hidden_ranges[i].last, bytes) <= 0)
			return bytes;
	}
	return 0;
}

static void put_key(struct weir_text *text, struct weir_span key)
{
	struct weir_text valid = {0};
	bool cut = key.length > WEBHOOK_KEY_SHOWN_BYTES;
	if (cut)
		key.length = WEBHOOK_KEY_SHOWN_BYTES;
	weir_text_utf8(&valid, key);
	for (size_t i = 0; i < valid.length;) {
		size_t control = weir_control_bytes(valid.at + i, valid.length - i);
		size_t hidden = hidden_bytes(valid.at + i, valid.length - i), gone = control > 0 ? control : hidden;
		if (gone > 0)
			weir_text_puts(text, "?");
		else
			weir_text_append(text, valid.at + i, 1);
		i += gone > 0 ? gone : 1;
	}
	weir_text_puts(text, cut ? "..." : "");
	weir_text_deinit(&valid);
}

static void put_time(struct weir_text *text, int64_t time_ms)
{
	char words[64];
	time_t moment = (time_t)(time_ms / 1000);
	struct tm parts;
	if (gmtime_r(&moment, &parts) != NULL && strftime(words, sizeof words, "%Y-%m-%d %H:%M:%S UTC", &parts) > 0)
		weir_text_puts(text, words);
}

void webhook_notice_line(struct weir_text *text, const struct block_entry *entry)
{
	struct weir_span zone = block_entry_zone(entry);
	bool live = entry->state == BLOCK_LIVE;
	weir_text_puts(text, live ? "blocked " : "let in again ");
	put_key(text, block_entry_key(entry));
	weir_text_printf(text, " in zone %.*s", (int)zone.length, zone.at);
	if (live && entry->until_ms == DECISION_NO_END) {
		weir_text_puts(text, " without an end");
	} else if (live) {
		weir_text_puts(text, " until ");
		put_time(text, entry->until_ms);
	}
	weir_text_puts(text, "\n");
}

/* Slack reads <…> and & as its own. */
static void put_slack(struct weir_text *text, struct weir_span words)
{
	for (uint32_t i = 0; i < words.length; i++) {
		const char *instead = words.at[i] == '&'   ? "&amp;"
		                      : words.at[i] == '<' ? "&lt;"
		                      : words.at[i] == '>' ? "&gt;"
		                                           : NULL;
		if (instead != NULL)
			weir_text_puts(text, instead);
		else
			weir_text_append(text, &words.at[i], 1);
	}
}

/* Discord reads Markdown: a link whose words are another's, a code block, a mention. */
static void put_discord(struct weir_text *text, struct weir_span words)
{
	for (uint32_t i = 0; i < words.length; i++) {
		if (memchr("\\*_~`|[]()<>#@", words.at[i], 14) != NULL)
			weir_text_puts(text, "\\");
		weir_text_append(text, &words.at[i], 1);
	}
}

void webhook_notice_body(struct weir_text *body, const struct webhook_settings *settings, struct weir_span words)
{
	struct weir_text escaped = {0};
	switch (settings->template) {
	case WEBHOOK_SLACK:
		put_slack(&escaped, words);
		weir_text_puts(body, "{\"mrkdwn\":false,\"unfurl_links\":false,\"text\":");
		weir_text_json(body, (struct weir_span){escaped.at, (uint32_t)escaped.length});
		break;
	case WEBHOOK_TELEGRAM:
		weir_text_puts(body, "{\"chat_id\":");
		weir_text_json(body, weir_span_of(settings->chat));
		weir_text_puts(body, ",\"disable_web_page_preview\":true,\"text\":");
		weir_text_json(body, words);
		break;
	default: /* discord */
		put_discord(&escaped, words);
		weir_text_puts(body, "{\"allowed_mentions\":{\"parse\":[]},\"flags\":4,\"content\":");
		weir_text_json(body, weir_text_span(&escaped));
		break;
	}
	weir_text_puts(body, "}");
	weir_text_deinit(&escaped);
}

void webhook_notice_mail(struct weir_text *mail, const struct webhook_settings *settings, struct weir_span words,
                         size_t count)
{
	char date[64];
	time_t now = time(NULL);
	struct tm parts;
	gmtime_r(&now, &parts);
	strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S +0000", &parts);
	if (settings->from != NULL)
		weir_text_printf(mail, "From: %s\n", settings->from);
	weir_text_printf(mail, "To: %s\nDate: %s\nSubject: weir: %zu %s\n", settings->to, date, count,
	                 count == 1 ? "change" : "changes");
	weir_text_puts(mail, "Auto-Submitted: auto-generated\nMIME-Version: 1.0\n"
	                     "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n");
	weir_text_append(mail, words.at, words.length);
}
