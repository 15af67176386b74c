/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `journal`: an entry of systemd's journal as a JSON object on a line, as the source `journal` hands it out and
 * `journalctl -o json` prints it. Its members are the fields, by the journal's own names. A value that is no UTF-8 is an
 * array of its bytes there; one of more than 4096 bytes is null, unless journalctl is told --all.
 */
#include "collector/format/format_options.h"

static enum weir_status create(const struct weir_json *config, const struct format_kind *kind,
                               const struct weir_field_table *fields, struct format **format, struct weir_error *error)
{
	struct weir_json body = weir_json_member(config, "message");
	if (weir_json_exists(&body))
		return format_message_split(kind, config, fields, format, error);
	enum weir_status status =
		format_json_members_new(config, kind, "__REALTIME_TIMESTAMP", TIME_UNIT_US, fields, format, error);
	if (status == WEIR_OK)
		format_json_take_bytes(*format);
	return status;
}

static const struct weir_json_rule options[] = {
	{.name = "message", .meaning = "the format of the message", .shape = format_message_shape},
	{.name = NULL},
};

const struct format_kind format_journal = {
	.name = "journal",
	.meaning = "entries of systemd's journal, as `journalctl -o json` prints them",
	.malformed = "not journal",
	.takes = FORMAT_TAKES_FIELDS,
	.options = options,
	.message = "MESSAGE",
	.message_is_cut = true,
	.create = create,
};
