/* Which kinds of source there are. */
#include "collector/source/kinds/source_kinds.h"

#include "collector/source/file/source_file.h"
#include "collector/source/file/source_stdin.h"
#include "collector/source/journal/source_journal.h"
#include "collector/source/kafka/source_kafka.h"
#include "collector/source/syslog/source_syslog.h"

enum weir_status source_new(const struct weir_json *config, const struct source_context *context,
                            struct source **source, struct weir_error *error)
{
	static const struct {
		const char *type;
		enum weir_status (*create)(const struct weir_json *config, const struct source_context *context,
		                           struct source **source, struct weir_error *error);
	} kinds[] = {
		{"file", source_file_new},       {"stdin", source_stdin_new}, {"syslog", source_syslog_new},
		{"journal", source_journal_new}, {"kafka", source_kafka_new},
	};
	enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };
	const char *types[KIND_COUNT + 1] = {NULL};
	for (size_t i = 0; i < KIND_COUNT; i++)
		types[i] = kinds[i].type;
	struct weir_json type = weir_json_member(config, "type");
	int kind = 0;
	enum weir_status status =
		weir_json_require(&type, "give \"file\", \"stdin\", \"syslog\", \"journal\" or \"kafka\"", error);
	if (status == WEIR_OK)
		status = weir_json_word(&type, types, &kind, error);
	return status == WEIR_OK ? kinds[kind].create(config, context, source, error) : status;
}

enum weir_status source_apart(const struct weir_json *sources, size_t place, struct weir_error *error)
{
	struct weir_json own = weir_json_element(sources, place);
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < place && status == WEIR_OK; i++) {
		struct weir_json other = weir_json_element(sources, i);
		status = source_kafka_apart(&own, &other, error);
	}
	return status;
}
