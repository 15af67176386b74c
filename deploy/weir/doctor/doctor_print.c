/* SPDX-License-Identifier: Apache-2.0 */
/* For whoever was woken: nothing stands before the worst. */
#include "common/json/json_writer.h"
#include "deploy/weir/doctor/internal.h"

#include <string.h>

/* Takes a line off the beginning. @return false: there is none */
static bool take_line(struct weir_span *rest, struct weir_span *one)
{
	const char *end = rest->length > 0 ? memchr(rest->at, '\n', rest->length) : NULL;
	if (end == NULL)
		return false;
	*one = (struct weir_span){.at = rest->at, .length = (uint32_t)(end - rest->at)};
	*rest = (struct weir_span){.at = end + 1, .length = rest->length - one->length - 1};
	return true;
}

void doctor_words(struct weir_text *text, const struct weir_findings *findings, bool coloured)
{
	for (size_t i = 0; i < findings->count; i++) {
		weir_finding_write(text, &findings->at[i], coloured);
		weir_text_puts(text, "\n");
	}
	if (weir_findings_count(findings, WEIR_SEVERITY_TICKET) == 0)
		weir_text_puts(text, "Nothing is wrong.\n");
	if (findings->good.length > 0)
		weir_text_puts(text, "Good:\n");
	struct weir_span rest = weir_text_span(&findings->good), one;
	while (take_line(&rest, &one))
		weir_text_printf(text, "  %.*s\n", (int)one.length, one.at);
}

void doctor_json(struct weir_text *text, const struct weir_findings *findings)
{
	struct weir_json_writer json = weir_json_writer(text);
	weir_json_write_object(&json, NULL);
	weir_json_write_bool(&json, "good", weir_findings_count(findings, WEIR_SEVERITY_TICKET) == 0);
	weir_json_write_array(&json, "findings");
	for (size_t i = 0; i < findings->count; i++) {
		const struct weir_finding *finding = &findings->at[i];
		weir_json_write_object(&json, NULL);
		weir_json_write_words(&json, "severity", weir_severity_name(finding->severity));
		weir_json_write_words(&json, "check", finding->check);
		weir_json_write_words(&json, "what", finding->what);
		weir_json_write_words(&json, "means", finding->means);
		weir_json_write_words(&json, "remedy", finding->remedy);
		weir_json_write_words(&json, "runbook", finding->runbook[0] != '\0' ? finding->runbook : NULL);
		weir_json_write_end(&json);
	}
	weir_json_write_end(&json);
	weir_json_write_array(&json, "fine");
	struct weir_span rest = weir_text_span(&findings->good), one;
	while (take_line(&rest, &one))
		weir_json_write_string(&json, NULL, one);
	weir_json_write_end(&json);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
}
