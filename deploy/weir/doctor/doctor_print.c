/* SPDX-License-Identifier: Apache-2.0 */
/* For whoever was woken: nothing stands before the worst. */
#include "common/json/json_writer.h"
#include "deploy/weir/doctor/internal.h"

#include <string.h>

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
	const char *at = findings->good.at, *end = at + findings->good.length, *next;
	for (; at != NULL && at < end && (next = memchr(at, '\n', (size_t)(end - at))) != NULL; at = next + 1)
		weir_text_printf(text, "  %.*s\n", (int)(next - at), at);
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
	struct weir_span rest = weir_text_span(&findings->good);
	for (const char *next; rest.length > 0 && (next = memchr(rest.at, '\n', rest.length)) != NULL;) {
		uint32_t length = (uint32_t)(next - rest.at);
		weir_json_write_string(&json, NULL, (struct weir_span){.at = rest.at, .length = length});
		rest = (struct weir_span){.at = next + 1, .length = rest.length - length - 1};
	}
	weir_json_write_end(&json);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
}
