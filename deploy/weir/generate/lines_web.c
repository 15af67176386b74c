/* SPDX-License-Identifier: Apache-2.0 */
/* Access logs: combined, common, JSON, logfmt, and columns between tabs. */
#include "deploy/weir/generate/internal.h"

/* "-" where nothing was written from `at` to the end. */
static char *put_or_dash(char *at, char *end)
{
	return end > at ? end : PUT(at, "-");
}

/* One visitor in eight has logged in. */
static char *put_user(const struct generate_lines *lines, const struct generate_event *event, char *at)
{
	if (line_visitor(lines, event->user) >> 32 & 7)
		return PUT(at, "-");
	return line_put_name(lines, event->user, at);
}

static char *put_common(struct generate_lines *lines, const struct generate_event *event, char *at)
{
	at = line_put_address(lines, event->user, at);
	at = PUT(at, " - ");
	at = put_user(lines, event, at);
	at = PUT(at, " [");
	at = line_put_stamp(lines, event, at);
	at = PUT(at, " +0000] \"");
	at = line_put_request(lines, event, at);
	at = PUT(at, "\" ");
	at = put_number(at, event->status);
	*at++ = ' ';
	return event->bytes > 0 ? put_number(at, event->bytes) : PUT(at, "-");
}

const struct line_format line_format_common = {"common", STAMP_COMMON, "", put_common};

static char *put_combined(struct generate_lines *lines, const struct generate_event *event, char *at)
{
	at = put_common(lines, event, at);
	at = PUT(at, " \"");
	at = put_or_dash(at, line_put_referer(lines, event, at));
	at = PUT(at, "\" \"");
	at = put_or_dash(at, put_span(at, line_agent(lines, event)));
	return PUT(at, "\"");
}

const struct line_format line_format_combined = {"combined", STAMP_COMMON, "", put_combined};

/* 2006-01-02T15:04:05.000Z */
static char *put_time(struct generate_lines *lines, const struct generate_event *event, char *at)
{
	at = line_put_stamp(lines, event, at);
	*at++ = '.';
	at = put_three(at, line_milliseconds(event));
	*at++ = 'Z';
	return at;
}

static char *put_method(const struct generate_event *event, char *at)
{
	return put_span(at, weir_span_of(generate_method_names[event->method]));
}

static char *put_json(struct generate_lines *lines, const struct generate_event *event, char *at)
{
	at = put_time(lines, event, PUT(at, "{\"time\":\""));
	at = line_put_address(lines, event->user, PUT(at, "\",\"ip\":\""));
	at = line_put_name(lines, event->user, PUT(at, "\",\"user\":\""));
	at = put_method(event, PUT(at, "\",\"method\":\""));
	at = put_span(PUT(at, "\",\"host\":\"" GENERATE_HOST "\",\"path\":\""), line_path(event));
	if (line_query(event).length > 0)
		at = put_span(PUT(at, "\",\"query\":\""), line_query(event));
	at = put_number(PUT(at, "\",\"status\":"), event->status);
	at = put_number(PUT(at, ",\"bytes\":"), event->bytes);
	at = put_number(PUT(at, ",\"duration_ms\":"), line_duration_ms(event));
	at = line_put_referer(lines, event, PUT(at, ",\"referer\":\""));
	at = put_span(PUT(at, "\",\"agent\":\""), line_agent(lines, event));
	return PUT(at, "\"}");
}

const struct line_format line_format_json = {"json", STAMP_ISO, "", put_json};

static char *put_logfmt(struct generate_lines *lines, const struct generate_event *event, char *at)
{
	at = put_time(lines, event, PUT(at, "time="));
	at = event->status >= 500 ? PUT(at, " level=error ip=") : PUT(at, " level=info ip=");
	at = line_put_address(lines, event->user, at);
	at = line_put_name(lines, event->user, PUT(at, " user="));
	at = put_method(event, PUT(at, " method="));
	at = put_span(PUT(at, " host=" GENERATE_HOST " path="), line_path(event));
	if (line_query(event).length > 0)
		at = PUT(put_span(PUT(at, " query=\""), line_query(event)), "\"");
	at = put_number(PUT(at, " status="), event->status);
	at = put_number(PUT(at, " bytes="), event->bytes);
	at = put_number(PUT(at, " duration_ms="), line_duration_ms(event));
	if (line_agent(lines, event).length > 0)
		at = PUT(put_span(PUT(at, " agent=\""), line_agent(lines, event)), "\"");
	return at;
}

const struct line_format line_format_logfmt = {"logfmt", STAMP_ISO, "", put_logfmt};

static char *put_delimited(struct generate_lines *lines, const struct generate_event *event, char *at)
{
	at = put_time(lines, event, at);
	*at++ = '\t';
	at = line_put_address(lines, event->user, at);
	*at++ = '\t';
	at = line_put_name(lines, event->user, at);
	*at++ = '\t';
	at = put_method(event, at);
	*at++ = '\t';
	at = put_span(at, line_path(event));
	*at++ = '\t';
	at = put_number(at, event->status);
	*at++ = '\t';
	at = put_number(at, event->bytes);
	at = PUT(at, "\t" GENERATE_HOST "\t");
	at = put_or_dash(at, line_put_referer(lines, event, at));
	*at++ = '\t';
	return put_or_dash(at, put_span(at, line_agent(lines, event)));
}

const struct line_format line_format_delimited = {
	"delimited", STAMP_ISO, "time\tip\tuser\tmethod\tpath\tstatus\tbytes\thost\treferer\tagent\n", put_delimited};
