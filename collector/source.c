/* Which kinds of source there are. */
#include "collector/source.h"

#include "collector/source_file.h"
#include "collector/source_stdin.h"
#include "collector/source_syslog.h"

enum weir_status source_new(const struct weir_json *config, const struct source_context *context,
                            struct source **source, struct weir_error *error)
{
	static const char *const types[] = {"file", "stdin", "syslog", NULL};
	static enum weir_status (*const news[])(const struct weir_json *config, const struct source_context *context,
	                                        struct source **source, struct weir_error *error) = {
		source_file_new, source_stdin_new, source_syslog_new};
	struct weir_json type = weir_json_member(config, "type");
	int kind = 0;
	enum weir_status status = weir_json_require(&type, "give \"file\", \"stdin\" or \"syslog\"", error);
	if (status == WEIR_OK)
		status = weir_json_word(&type, types, &kind, error);
	return status == WEIR_OK ? news[kind](config, context, source, error) : status;
}
