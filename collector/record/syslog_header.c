/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits heads from left to right; nothing is copied and no time is computed.
 *
 * RFC 3164 only describes what was found in use, so its manner is told by shapes: a time is three letters and digits at
 * fixed places, perhaps between a day of the week and a year, or an ISO date; a first word that ends in a colon or holds
 * a process id is the tag, and then there is no host. Some write the facility and severity as words before the tag.
 */
#include "collector/record/syslog_header.h"

enum { FACILITIES = 24, SEVERITIES = 8 };

static const char *const facilities[FACILITIES] = {
	"kern",   "user",   "mail",     "daemon", "auth",   "syslog",   "lpr",     "news",
	"uucp",   "cron",   "authpriv", "ftp",    "ntp",    "security", "console", "solaris-cron",
	"local0", "local1", "local2",   "local3", "local4", "local5",   "local6",  "local7"};
static const char *const severities[SEVERITIES] = {"emerg",   "alert",  "crit", "err",
                                                   "warning", "notice", "info", "debug"};

struct cursor {
	const char *at, *end;
};

static struct weir_span span_of(const char *from, const char *to)
{
	return (struct weir_span){.at = from, .length = (uint32_t)(to - from)};
}

static struct weir_span rest_of(const struct cursor *cursor)
{
	return span_of(cursor->at, cursor->end);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool take(struct cursor *cursor, char wanted)
{
	if (cursor->at == cursor->end || *cursor->at != wanted)
		return false;
	cursor->at++;
	return true;
}

/* Where the next space is, or the end. */
static const char *word_end(const struct cursor *cursor)
{
	const char *space = cursor->at < cursor->end ? memchr(cursor->at, ' ', (size_t)(cursor->end - cursor->at)) : NULL;
	return space != NULL ? space : cursor->end;
}

/* "<34>"; -1: there is none, and nothing was taken. */
static int take_priority(struct cursor *cursor)
{
	const char *at = cursor->at;
	int priority = 0, digits = 0;
	if (at == cursor->end || *at++ != '<')
		return -1;
	for (; digits < 3 && at < cursor->end && is_digit(*at); at++, digits++)
		priority = priority * 10 + (*at - '0');
	if (digits == 0 || at == cursor->end || *at != '>' || priority > SYSLOG_PRIORITY_MAX)
		return -1;
	cursor->at = at + 1;
	return priority;
}

/* ---- RFC 5424 ---- */

/* A word and the space behind it; "-" is absent. False: no such word. */
static bool take_word(struct cursor *cursor, struct weir_span *word)
{
	const char *end = word_end(cursor);
	if (end == cursor->at || end == cursor->end)
		return false;
	*word = span_of(cursor->at, end);
	if (word->length == 1 && *word->at == '-')
		*word = (struct weir_span){0};
	cursor->at = end + 1;
	return true;
}

/* Behind the quote that closes a value. False: none does. */
static bool skip_value(struct cursor *cursor, bool *escaped)
{
	*escaped = false;
	for (; cursor->at < cursor->end; cursor->at++) {
		if (*cursor->at == '"')
			return take(cursor, '"');
		if (*cursor->at == '\\' && cursor->end - cursor->at > 1) {
			cursor->at++;
			*escaped = true;
		}
	}
	return false;
}

/* [id name="value" ...] behind its first bracket. */
static bool skip_element(struct cursor *cursor)
{
	const char *begin = cursor->at;
	while (cursor->at < cursor->end && *cursor->at != ' ' && *cursor->at != ']')
		cursor->at++;
	if (cursor->at == begin)
		return false;
	for (;;) {
		bool escaped;
		if (take(cursor, ']'))
			return true;
		if (!take(cursor, ' '))
			return false;
		begin = cursor->at;
		while (cursor->at < cursor->end && *cursor->at != '=' && *cursor->at != ' ' && *cursor->at != ']' &&
		       *cursor->at != '"')
			cursor->at++;
		if (cursor->at == begin || !take(cursor, '=') || !take(cursor, '"') || !skip_value(cursor, &escaped))
			return false;
	}
}

static bool take_data(struct cursor *cursor, struct weir_span *data)
{
	const char *begin = cursor->at;
	if (take(cursor, '-'))
		return true;
	while (take(cursor, '['))
		if (!skip_element(cursor))
			return false;
	*data = span_of(begin, cursor->at);
	return cursor->at > begin;
}

static bool parse_modern(struct cursor cursor, struct syslog_header *header)
{
	static const char mark[] = {'\xef', '\xbb', '\xbf'}; /* says that the message is UTF-8 */
	header->modern = true;
	if (!take_word(&cursor, &header->time) || !take_word(&cursor, &header->host) || !take_word(&cursor, &header->app) ||
	    !take_word(&cursor, &header->procid) || !take_word(&cursor, &header->msgid) ||
	    !take_data(&cursor, &header->data))
		return false;
	if (cursor.at < cursor.end && !take(&cursor, ' '))
		return false;
	/* rsyslog writes a message that it got in the old manner with the blank before it, which is no part of it. */
	(void)take(&cursor, ' ');
	if (cursor.end - cursor.at >= 3 && memcmp(cursor.at, mark, sizeof mark) == 0)
		cursor.at += 3;
	header->message = rest_of(&cursor);
	return true;
}

/* ---- in the manner of RFC 3164 ---- */

static ptrdiff_t fraction_bytes(const char *at, ptrdiff_t left)
{
	ptrdiff_t bytes = 1;
	if (left < 2 || at[0] != '.' || !is_digit(at[1]))
		return 0;
	while (bytes < left && is_digit(at[bytes]))
		bytes++;
	return bytes;
}

/* "2024 ", as some write it before the time of day; 0: there is none. */
static ptrdiff_t year_bytes(const char *at, ptrdiff_t left)
{
	enum { YEAR_BYTES = 4 };
	for (int i = 0; i < YEAR_BYTES; i++)
		if (i >= left || !is_digit(at[i]))
			return 0;
	return left > YEAR_BYTES && at[YEAR_BYTES] == ' ' ? YEAR_BYTES + 1 : 0;
}

/* How long "Oct 11 22:14:15", with or without a year or a fraction, is, which it begins with; 0: it does not. */
static ptrdiff_t old_time_bytes(const char *at, ptrdiff_t left)
{
	enum { DATE_BYTES = 7, DAY_TIME_BYTES = 8 };
	/* Some write a day of one digit without the blank before it: all behind it stands one place further left. */
	int short_day = left > 5 && is_digit(at[4]) && at[5] == ' ';
	ptrdiff_t bytes = DATE_BYTES - short_day;
	if (left < bytes || !is_letter(at[0]) || !is_letter(at[1]) || !is_letter(at[2]) || at[3] != ' ' ||
	    (at[4] != ' ' && !is_digit(at[4])) || (!short_day && !is_digit(at[5])) || at[bytes - 1] != ' ')
		return 0;
	bytes += year_bytes(at + bytes, left - bytes);
	if (left - bytes < DAY_TIME_BYTES || at[bytes + 2] != ':' || at[bytes + 5] != ':')
		return 0;
	bytes += DAY_TIME_BYTES;
	return bytes + fraction_bytes(at + bytes, left - bytes);
}

/* The same of "Fri Oct 11 22:14:15 2024". */
static ptrdiff_t ctime_bytes(const char *at, ptrdiff_t left)
{
	enum { DAY_BYTES = 4, YEAR_BYTES = 5 }; /* with the blank before it */
	if (left <= DAY_BYTES || !is_letter(at[0]) || !is_letter(at[1]) || !is_letter(at[2]) || at[3] != ' ')
		return 0;
	ptrdiff_t bytes = old_time_bytes(at + DAY_BYTES, left - DAY_BYTES);
	const char *year = at + DAY_BYTES + bytes;
	if (bytes == 0 || left - DAY_BYTES - bytes < YEAR_BYTES || year[0] != ' ')
		return 0;
	for (int i = 1; i < YEAR_BYTES; i++)
		if (!is_digit(year[i]))
			return 0;
	return DAY_BYTES + bytes + YEAR_BYTES;
}

/* The same of an ISO date and time, with 'T' or a blank between them, and a zone behind a blank. */
static ptrdiff_t iso_bytes(const char *at, ptrdiff_t left)
{
	enum { DATE_BYTES = 10, SECOND_BYTES = 19 };
	if (left <= DATE_BYTES || !is_digit(at[0]) || !is_digit(at[3]) || at[4] != '-' || at[7] != '-')
		return 0;
	struct cursor rest = {.at = at + DATE_BYTES + 1, .end = at + left};
	if (at[DATE_BYTES] == 'T')
		return word_end(&rest) - at;
	if (at[DATE_BYTES] != ' ' || left < SECOND_BYTES || !is_digit(at[11]) || at[13] != ':' || at[16] != ':')
		return 0;
	rest.at = word_end(&rest);
	const char *end = rest.at;
	if (!take(&rest, ' ') || (!take(&rest, '+') && !take(&rest, '-')))
		return end - at;
	int digits = 0;
	for (; rest.at < rest.end && (is_digit(*rest.at) || (digits == 2 && *rest.at == ':')); rest.at++)
		digits += is_digit(*rest.at);
	return (digits == 4 && rest.at == word_end(&rest) ? rest.at : end) - at;
}

/* A time in any of these forms, and the space behind it. @param dated  it is ctime()'s */
static bool take_time(struct cursor *cursor, struct weir_span *time, bool *dated)
{
	const char *at = cursor->at;
	ptrdiff_t left = cursor->end - at, bytes = ctime_bytes(at, left);
	*dated = bytes > 0;
	if (bytes == 0)
		bytes = old_time_bytes(at, left);
	if (bytes == 0)
		bytes = iso_bytes(at, left);
	const char *end = at + bytes;
	if (bytes == 0 || (end < cursor->end && *end != ' '))
		return false;
	*time = span_of(at, end);
	cursor->at = end + (end < cursor->end);
	return true;
}

/* How long a zone's name before a message of Cisco's is, with the blank before it: " UTC" of " UTC: %"; 0: it is none. */
static ptrdiff_t zone_bytes(const char *at, ptrdiff_t left)
{
	enum { ZONE_MAX_BYTES = 5 };
	ptrdiff_t bytes = 1;
	while (bytes < left && bytes <= ZONE_MAX_BYTES && at[bytes] >= 'A' && at[bytes] <= 'Z')
		bytes++;
	return bytes > 1 && at[0] == ' ' && left - bytes > 2 && memcmp(at + bytes, ": %", 3) == 0 ? bytes : 0;
}

/* A time that ends in a colon, and the space behind that. */
static bool take_time_and_colon(struct cursor *cursor, struct weir_span *time)
{
	const char *at = cursor->at;
	ptrdiff_t left = cursor->end - at, bytes = old_time_bytes(at, left);
	if (bytes > 0)
		bytes += zone_bytes(at + bytes, left - bytes);
	else if ((bytes = iso_bytes(at, left)) > 0)
		bytes -= at[bytes - 1] == ':';
	if (bytes == 0 || bytes == left || at[bytes] != ':' || (bytes + 1 < left && at[bytes + 1] != ' '))
		return false;
	*time = span_of(at, at + bytes);
	cursor->at = at + bytes + 1 + (bytes + 1 < left);
	return true;
}

/* "000123: ": a number, or any other word, that ends in a colon. */
static bool take_word_and_colon(struct cursor *cursor, bool number, struct weir_span *word)
{
	const char *at = cursor->at, *end = word_end(cursor);
	if (end - at < 2 || end == cursor->end || end[-1] != ':')
		return false;
	for (const char *digit = at; number && digit < end - 1; digit++)
		if (!is_digit(*digit))
			return false;
	*word = span_of(at, end - 1);
	cursor->at = end + 1;
	return true;
}

/*
 * What Cisco's systems write before a message: ":", a number, the host, and a time that ends in a colon. Nothing is taken
 * where there is no such time. '*' says that the clock is not set, '.' that it was, and is no longer compared with others.
 */
static bool take_cisco(struct cursor *cursor, struct syslog_header *header)
{
	struct cursor front = *cursor;
	struct weir_span number, host = {0};
	if (take_time_and_colon(cursor, &header->time))
		return true;
	if (header->priority < 0)
		return false;
	(void)take(&front, ':');
	(void)take_word_and_colon(&front, true, &number);
	for (int hosts = 0; hosts < 2; hosts++) {
		struct cursor behind = front;
		bool unset = take(&behind, '*');
		if (!unset)
			(void)take(&behind, '.');
		if (take_time_and_colon(&behind, &header->time)) {
			header->unset = unset;
			header->host = host;
			*cursor = behind;
			return true;
		}
		if (!take_word_and_colon(&front, false, &host))
			return false;
	}
	return false;
}

/* The number of a word, or the number that it is; -1: it is neither. */
static int number_of(const char *const *names, int count, struct weir_span word)
{
	for (int i = 0; i < count; i++)
		if (strlen(names[i]) == word.length && memcmp(names[i], word.at, word.length) == 0)
			return i;
	if (word.length == 0 || word.length > 2 || !is_digit(word.at[0]) || !is_digit(word.at[word.length - 1]))
		return -1;
	int number = word.at[0] - '0';
	if (word.length == 2)
		number = number * 10 + (word.at[1] - '0');
	return number < count ? number : -1;
}

/* "auth.info " or "<auth.info> ", also "<4.6> ": nothing is taken where it is neither. */
static bool take_level(struct cursor *cursor, bool bracketed, struct syslog_header *header)
{
	const char *at = cursor->at, *end = word_end(cursor), *behind = end;
	if (bracketed) {
		if (end - at < 3 || *at != '<' || end[-1] != '>')
			return false;
		at++;
		end--;
	}
	const char *point = memchr(at, '.', (size_t)(end - at));
	if (behind == cursor->end || point == NULL || (!bracketed && !is_letter(*at)))
		return false;
	int facility = number_of(facilities, FACILITIES, span_of(at, point));
	struct weir_span word = span_of(point + 1, end);
	int severity = number_of(severities, SEVERITIES, word);
	if (severity < 0 && word.length == 4 && memcmp(word.at, "warn", 4) == 0) /* as busybox writes it */
		severity = 4;
	if (facility < 0 || severity < 0)
		return false;
	if (header->priority < 0)
		header->priority = facility * SEVERITIES + severity;
	cursor->at = behind + 1;
	return true;
}

/* "[su]: ": a tag in brackets. */
static bool take_bracketed_tag(struct cursor *cursor, struct syslog_header *header)
{
	const char *at = cursor->at, *end = word_end(cursor);
	if (end - at < 4 || at[0] != '[' || !is_letter(at[1]) || end[-1] != ':' || end[-2] != ']' ||
	    memchr(at, ']', (size_t)(end - at)) != end - 2)
		return false;
	header->app = span_of(at + 1, end - 2);
	cursor->at = end + (end < cursor->end);
	return true;
}

/* "su[1234]: ", "su: " or "[su]: "; nothing is taken where it is neither. */
static bool take_tag(struct cursor *cursor, struct syslog_header *header)
{
	const char *at = cursor->at, *end = word_end(cursor), *name = at;
	while (at < end && *at != '[' && *at != ':')
		at++;
	const char *name_end = at;
	struct weir_span procid = {0};
	if (at == name || at == end)
		return take_bracketed_tag(cursor, header);
	if (*at == '[') {
		const char *close = memchr(at, ']', (size_t)(end - at));
		if (close == NULL)
			return false;
		procid = span_of(at + 1, close);
		at = close + 1;
		if (at < end && *at == ':')
			at++;
	} else {
		at++;
	}
	if (at < end) /* as in "10:20:30" and "fe80::1": a colon within a word */
		return false;
	header->app = span_of(name, name_end);
	if (procid.length > 0)
		header->procid = procid;
	cursor->at = at + (at < cursor->end);
	return true;
}

/* "HOST TAG", with the level before or behind the host; without a tag, what is behind the host is the message. */
static void take_host(struct cursor *cursor, struct syslog_header *header)
{
	const char *end = word_end(cursor);
	if (end == cursor->at || end == cursor->end)
		return;
	header->host = span_of(cursor->at, end);
	cursor->at = end + 1;
	if (cursor->end - cursor->at > 1 && cursor->at[0] == ':' && cursor->at[1] == ' ') /* ASA's stands alone */
		cursor->at += 2;
	struct cursor behind = *cursor;
	int priority = header->priority;
	if ((take_level(&behind, true, header) || take_level(&behind, false, header)) && take_tag(&behind, header)) {
		*cursor = behind;
		return;
	}
	header->priority = priority;
	(void)take_tag(cursor, header);
}

static bool parse_old(struct cursor cursor, struct syslog_header *header)
{
	if (take_cisco(&cursor, header)) {
		(void)take_tag(&cursor, header);
		header->message = rest_of(&cursor);
		return true;
	}
	bool dated = false, timed = take_time(&cursor, &header->time, &dated);
	if (!timed && header->priority < 0)
		return false;
	if (timed) {
		while (take(&cursor, ' ')) /* macOS writes two of them */
			;
		/* A host may be called mail.info, but logread writes none behind its time. */
		(void)(take_level(&cursor, true, header) || (dated && take_level(&cursor, false, header)));
		if (!take_tag(&cursor, header))
			take_host(&cursor, header);
	} else {
		(void)take_tag(&cursor, header);
	}
	header->message = rest_of(&cursor);
	return true;
}

bool syslog_header_parse(struct weir_span line, struct syslog_header *header)
{
	struct cursor cursor = {.at = line.at, .end = line.at + line.length};
	*header = (struct syslog_header){.priority = -1};
	header->priority = take_priority(&cursor);
	if (header->priority >= 0 && cursor.end - cursor.at >= 2 && cursor.at[0] == '1' && cursor.at[1] == ' ') {
		cursor.at += 2;
		return parse_modern(cursor, header);
	}
	return parse_old(cursor, header);
}

/* ---- words ---- */

const char *syslog_facility(int priority)
{
	return facilities[priority / SEVERITIES];
}

const char *syslog_severity(int priority)
{
	return severities[priority % SEVERITIES];
}

/* ---- structured data ---- */

bool syslog_data_next(struct weir_span *data, struct weir_span *id, struct syslog_param *param)
{
	struct cursor cursor = {.at = data->at, .end = data->at + data->length};
	for (;;) {
		if (take(&cursor, '[')) {
			const char *begin = cursor.at;
			while (cursor.at < cursor.end && *cursor.at != ' ' && *cursor.at != ']')
				cursor.at++;
			*id = span_of(begin, cursor.at);
		} else if (take(&cursor, ' ')) {
			const char *begin = cursor.at;
			while (cursor.at < cursor.end && *cursor.at != '=')
				cursor.at++;
			param->id = *id;
			param->name = span_of(begin, cursor.at);
			begin = cursor.at + 2;
			if (!take(&cursor, '=') || !take(&cursor, '"') || !skip_value(&cursor, &param->escaped))
				return false;
			param->value = span_of(begin, cursor.at - 1);
			*data = rest_of(&cursor);
			return true;
		} else if (!take(&cursor, ']')) {
			return false;
		}
	}
}

uint32_t syslog_unescape(struct weir_span value, char *out)
{
	uint32_t length = 0;
	for (uint32_t i = 0; i < value.length; i++) {
		char next = i + 1 < value.length ? value.at[i + 1] : '\0';
		if (value.at[i] == '\\' && (next == '"' || next == '\\' || next == ']'))
			i++;
		out[length++] = value.at[i];
	}
	return length;
}
