/* SPDX-License-Identifier: Apache-2.0 */
/* A key is shown as valid UTF-8 without control characters, and without those that turn the direction of writing. */
#include "deploy/gateways/target/webhook/webhook_notice.h"

#include "common/base/words.h"

#include <time.h>

/* U+200B to U+200F, U+202A to U+202E, U+2060 to U+2069, U+FEFF: nothing to see, or another order of what is seen. */
static bool is_hidden(const unsigned char *at, size_t left)
{
	if (left < 3)
		return false;
	if (at[0] == 0xE2 && at[1] == 0x80)
		return (at[2] >= 0x8B && at[2] <= 0x8F) || (at[2] >= 0xA8 && at[2] <= 0xAE);
	if (at[0] == 0xE2 && at[1] == 0x81)
		return at[2] >= 0xA0 && at[2] <= 0xA9;
	return at[0] == 0xEF && at[1] == 0xBB && at[2] == 0xBF;
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
		bool hidden = is_hidden((const unsigned char *)valid.at + i, valid.length - i);
		if (control > 0 || hidden)
			weir_text_puts(text, "?");
		else
			weir_text_append(text, valid.at + i, 1);
		i += hidden ? 3 : control > 0 ? control : 1;
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
		weir_text_puts(body, "{\"allowed_mentions\":{\"parse\":[]},\"flags\":4,\"content\":");
		weir_text_json(body, words);
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
