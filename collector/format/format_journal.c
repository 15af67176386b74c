/*
 * Format `journal`: an entry of systemd's journal as a JSON object on a line, as the source `journal` hands it out and
 * `journalctl -o json` prints it. Its members are the fields, by the journal's own names.
 */
#include "collector/format/format_options.h"

enum weir_status format_journal_new(const struct weir_json *config, const char *type, const struct field_table *fields,
                                    struct format **format, struct weir_error *error)
{
	struct weir_json body = weir_json_member(config, "message");
	if (weir_json_exists(&body))
		return format_message_split(config, fields, format, error);
	return format_json_new(config, type, fields, format, error);
}
