/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body is read as strictly as a configuration: what is not understood whole
 * is not done in part, and the operator finds it among the dead letters.
 */
#include "limiter/overrides/override_command.h"

#include "common/bytes/hex.h"
#include "common/config/arguments.h"
#include "common/frame/frame.h"
#include "common/json/json.h"
#include "common/json/json_writer.h"

#include <stdio.h>

enum { RATE_ONE = 1000, RATE_MAX = 100 * RATE_ONE, MAPPED_BITS = 96 };

static const char *const kind_names[] = {"block", "lift", "allow", "override", NULL};
static const char *const members[] = {"command", "zone",    "key", "key_hex", "until", "rate",
                                      "prefix",  "network", "by",  "reason",  "id",    NULL};

const char *override_kind_name(enum override_kind kind)
{
	return kind_names[kind];
}

bool override_rate_parse(const char *text, uint32_t *thousandths)
{
	uint64_t number;
	if (!weir_arguments_decimal(text, OVERRIDE_RATE_DIGITS, &number) || number < 1 || number > RATE_MAX)
		return false;
	*thousandths = (uint32_t)number;
	return true;
}

void override_rate_format(uint32_t thousandths, char *text)
{
	int length = snprintf(text, 12, "%u.%03u", thousandths / RATE_ONE % 1000, thousandths % RATE_ONE);
	while (text[length - 1] == '0')
		text[--length] = '\0';
	if (text[length - 1] == '.')
		text[length - 1] = '\0';
}

bool override_key_add(struct override_command *command, struct weir_span value)
{
	uint32_t length = command->key_length;
	if (command->value_count > 0) {
		if (length == sizeof command->key)
			return false;
		command->key[length++] = '|';
	}
	for (uint32_t i = 0; i < value.length; i++) {
		bool escape = value.at[i] == '|' || value.at[i] == '\\';
		if (sizeof command->key - length < 1u + escape)
			return false;
		if (escape)
			command->key[length++] = '\\';
		command->key[length++] = value.at[i];
	}
	command->key_length = length;
	command->value_count++;
	return true;
}

/* ---- reading ---- */

static enum weir_status read_text(const struct weir_json *root, const char *name, char *out, size_t bytes,
                                  struct weir_error *error)
{
	struct weir_json at = weir_json_member(root, name);
	const char *text = "";
	enum weir_status status = weir_json_string(&at, &text, error);
	if (status == WEIR_OK && strlen(text) >= bytes)
		status = weir_json_fail(&at, error, "must have at most %zu bytes", bytes - 1);
	if (status == WEIR_OK)
		memcpy(out, text, strlen(text) + 1);
	return status;
}

static enum weir_status read_values(const struct weir_json *list, struct override_command *command,
                                    struct weir_error *error)
{
	size_t count = 0;
	enum weir_status status = weir_json_list(list, 0, WEIR_ZONE_KEY_MAX, &count, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		struct weir_json element = weir_json_element(list, i);
		if (!json_is_string(element.value))
			return weir_json_fail(&element, error, "must be a string");
		/* Any bytes: a key may have zero bytes. */
		struct weir_span value = {.at = json_string_value(element.value),
		                          .length = (uint32_t)json_string_length(element.value)};
		if (!override_key_add(command, value))
			status = weir_json_fail(list, error, "is too long: a joined key has at most %d bytes", WEIR_KEY_MAX_BYTES);
	}
	return status;
}

uint32_t override_value_count(struct weir_span key)
{
	uint32_t count = 1;
	for (uint32_t i = 0; i < key.length; i++) {
		if (key.at[i] == '\\')
			i++;
		else
			count += key.at[i] == '|';
	}
	return count;
}

static enum weir_status read_hex(const struct weir_json *at, struct override_command *command, struct weir_error *error)
{
	const char *text = "";
	enum weir_status status = weir_json_string(at, &text, error);
	size_t length = strlen(text);
	if (status == WEIR_OK && (length % 2 != 0 || length / 2 > sizeof command->key))
		status = weir_json_fail(at, error, "must have two digits per byte and at most %d bytes", WEIR_KEY_MAX_BYTES);
	for (size_t i = 0; status == WEIR_OK && i < length; i += 2) {
		int byte = weir_hex_byte(text + i);
		if (byte < 0)
			return weir_json_fail(at, error, "must be hexadecimal digits, 0-9 and a-f");
		command->key[command->key_length++] = (char)byte;
	}
	command->value_count = override_value_count(override_key(command));
	return status;
}

static enum weir_status read_key(const struct weir_json *root, struct override_command *command,
                                 struct weir_error *error)
{
	struct weir_json values = weir_json_member(root, "key"), hex = weir_json_member(root, "key_hex");
	if (weir_json_exists(&values) && weir_json_exists(&hex))
		return weir_json_fail(&hex, error, "cannot be combined with \"key\"");
	if (weir_json_exists(&hex))
		return read_hex(&hex, command, error);
	enum weir_status status = weir_json_require(&values, "the values of the zone's key, as a list of strings", error);
	return status == WEIR_OK ? read_values(&values, command, error) : status;
}

bool override_network_parse(struct weir_span text, struct weir_network *network)
{
	const char *why;
	char canonical[WEIR_NETWORK_TEXT_BYTES];
	if (!weir_network_parse(text, network, &why) || network->prefix == 128)
		return false;
	bool v4 = weir_address_is_v4(&network->base) && network->prefix >= MAPPED_BITS;
	return network->prefix > (v4 ? MAPPED_BITS : 0) &&
	       weir_span_equal(text, weir_span_of(weir_network_format(network, canonical)));
}

static enum weir_status read_network(const struct weir_json *root, struct override_command *command,
                                     struct weir_error *error)
{
	struct weir_json at = weir_json_member(root, "network");
	struct weir_network network;
	bool is_network = false;
	enum weir_status status = weir_json_bool(&at, &is_network, error);
	if (status != WEIR_OK || !is_network)
		return status;
	if (command->kind == OVERRIDE_RATE)
		return weir_json_fail(&at, error, "is not for override");
	if (command->value_count != 1 || !override_network_parse(override_key(command), &network))
		return weir_json_fail(&at, error, "needs a key of one network, such as \"10.0.0.0/8\" or \"2001:db8::/32\"");
	command->scope = OVERRIDE_OF_NETWORK;
	return WEIR_OK;
}

static enum weir_status read_rate(const struct weir_json *root, struct override_command *command,
                                  struct weir_error *error)
{
	struct weir_json rate = weir_json_member(root, "rate"), prefix = weir_json_member(root, "prefix");
	const char *text = "";
	if (command->kind != OVERRIDE_RATE) {
		if (weir_json_exists(&rate))
			return weir_json_fail(&rate, error, "is only for override");
		return weir_json_exists(&prefix) ? weir_json_fail(&prefix, error, "is only for override") : WEIR_OK;
	}
	enum weir_status status = weir_json_require(&rate, "the factor for the rates, such as \"0.5\" or \"10\"", error);
	if (status == WEIR_OK)
		status = weir_json_string(&rate, &text, error);
	if (status == WEIR_OK && !override_rate_parse(text, &command->thousandths))
		status = weir_json_fail(&rate, error, "must be from \"0.001\" to \"100\", with at most three decimal places");
	bool is_prefix = false;
	if (status == WEIR_OK)
		status = weir_json_bool(&prefix, &is_prefix, error);
	if (is_prefix)
		command->scope = OVERRIDE_OF_PREFIX;
	return status;
}

static enum weir_status read_members(const struct weir_json *root, struct override_command *command,
                                     struct weir_error *error)
{
	int kind = 0;
	struct weir_json name = weir_json_member(root, "command"), zone = weir_json_member(root, "zone");
	struct weir_json until = weir_json_member(root, "until"), by = weir_json_member(root, "by");
	enum weir_status status = weir_json_only(root, members, error);
	if (status == WEIR_OK)
		status = weir_json_require(&name, "one of block, lift, allow, override", error);
	if (status == WEIR_OK)
		status = weir_json_word(&name, kind_names, &kind, error);
	command->kind = (enum override_kind)kind;
	if (status == WEIR_OK)
		status = weir_json_require(&zone, "a zone's name", error);
	if (status == WEIR_OK)
		status = read_text(root, "zone", command->zone, sizeof command->zone, error);
	if (status == WEIR_OK)
		status = read_key(root, command, error);
	if (status == WEIR_OK)
		status = weir_json_int(&until, 0, WEIR_TIME_END_MS, &command->until_ms, error);
	if (status == WEIR_OK && command->kind == OVERRIDE_LIFT && weir_json_exists(&until))
		status = weir_json_fail(&until, error, "is not allowed for lift");
	if (status == WEIR_OK)
		status = read_rate(root, command, error);
	if (status == WEIR_OK)
		status = read_network(root, command, error);
	if (status == WEIR_OK)
		status = weir_json_require(&by, "who gives the command", error);
	if (status == WEIR_OK)
		status = read_text(root, "by", command->by, sizeof command->by, error);
	if (status == WEIR_OK)
		status = read_text(root, "reason", command->reason, sizeof command->reason, error);
	return status == WEIR_OK ? read_text(root, "id", command->id, sizeof command->id, error) : status;
}

enum weir_status override_command_parse(struct weir_span body, struct override_command *command,
                                        struct weir_error *error)
{
	struct weir_json_document *document;
	*command = (struct override_command){.until_ms = OVERRIDE_NO_END, .thousandths = RATE_ONE};
	if (body.length > OVERRIDE_BODY_MAX_BYTES)
		return weir_fail(error, WEIR_INVALID, "a command of %u bytes is too long; the limit is %d", body.length,
		                 OVERRIDE_BODY_MAX_BYTES);
	enum weir_status status = weir_json_parse_record("command", body.at, body.length, &document, error);
	if (status != WEIR_OK)
		return status;
	struct weir_json root = weir_json_root(document);
	status = read_members(&root, command, error);
	weir_json_document_free(document);
	return status;
}

bool override_zone_takes_networks(const struct weir_zone *zone)
{
	return zone->key_count == 1 && weir_zone_counts_addresses(zone);
}

uint8_t override_zone_bits(const struct weir_zone *zone, const struct weir_address *address)
{
	const struct weir_key_field *field = &zone->key[0];
	if (!field->grouped)
		return 128;
	return weir_address_is_v4(address) ? (uint8_t)(MAPPED_BITS + field->prefix4) : field->prefix6;
}

static enum weir_status check_network(const struct override_command *command, const struct weir_zone *zone,
                                      struct weir_error *error)
{
	struct weir_network network;
	if (!override_zone_takes_networks(zone))
		return weir_fail(error, WEIR_INVALID, "zone %s does not count by one address, so it takes no network",
		                 zone->name);
	if (override_network_parse(override_key(command), &network) &&
	    network.prefix < override_zone_bits(zone, &network.base))
		return WEIR_OK;
	return weir_fail(error, WEIR_INVALID, "%.*s is not wider than the networks that zone %s counts by",
	                 (int)command->key_length, command->key, zone->name);
}

enum weir_status override_command_check(const struct override_command *command, const struct weir_zone *zone,
                                        struct weir_error *error)
{
	/* A key of no fields joins to nothing at all, as one empty value does. */
	uint32_t count = command->key_length == 0 && zone->key_count == 0 ? 0 : command->value_count;
	if (command->scope == OVERRIDE_OF_NETWORK)
		return check_network(command, zone, error);
	bool is_prefix = command->scope == OVERRIDE_OF_PREFIX;
	if (is_prefix && zone->key_count == 0)
		return weir_fail(error, WEIR_INVALID, "zone %s has one bucket for all events, so there are no prefixes",
		                 zone->name);
	if (is_prefix ? count >= 1 && count <= zone->key_count : count == zone->key_count)
		return WEIR_OK;
	return weir_fail(error, WEIR_INVALID, "the key of zone %s has %u value%s, not %u", zone->name, zone->key_count,
	                 zone->key_count == 1 ? "" : "s", count);
}

/* ---- writing ---- */

/* Whether a zone's values join to these bytes: a backslash stands before another, or before a bar. Others come as hex. */
static bool is_joined(struct weir_span key)
{
	for (uint32_t i = 0; i < key.length; i++) {
		if (key.at[i] != '\\')
			continue;
		i++;
		if (i == key.length || (key.at[i] != '\\' && key.at[i] != '|'))
			return false;
	}
	return true;
}

/* Whether JSON takes the bytes as they are. */
static bool is_text(struct weir_span bytes)
{
	static const char replacement[] = "\xEF\xBF\xBD";
	struct weir_text text = {0};
	weir_text_json(&text, bytes);
	bool is_changed = memmem(text.at, text.length, replacement, sizeof replacement - 1) != NULL ||
	                  memchr(bytes.at, '\0', bytes.length) != NULL;
	weir_text_deinit(&text);
	return !is_changed;
}

static void put_values(struct weir_json_writer *json, const struct override_command *command)
{
	char value[WEIR_KEY_MAX_BYTES];
	uint32_t at = 0;
	weir_json_write_array(json, "key");
	for (uint32_t i = 0; i < command->value_count; i++) {
		uint32_t length = 0;
		for (; at < command->key_length && command->key[at] != '|'; at++) {
			if (command->key[at] == '\\' && at + 1 < command->key_length)
				at++;
			value[length++] = command->key[at];
		}
		at++;
		weir_json_write_string(json, NULL, (struct weir_span){.at = value, .length = length});
	}
	weir_json_write_end(json);
}

void override_command_json(struct weir_text *text, const struct override_command *command)
{
	char rate[12];
	struct weir_json_writer json = weir_json_writer(text);
	weir_json_write_object(&json, NULL);
	weir_json_write_words(&json, "command", kind_names[command->kind]);
	weir_json_write_words(&json, "zone", command->zone);
	if (is_joined(override_key(command)) && is_text(override_key(command)))
		put_values(&json, command);
	else
		weir_json_write_hex(&json, "key_hex", command->key, command->key_length);
	if (command->until_ms < OVERRIDE_NO_END)
		weir_json_write_int(&json, "until", command->until_ms);
	if (command->scope == OVERRIDE_OF_NETWORK)
		weir_json_write_bool(&json, "network", true);
	if (command->kind == OVERRIDE_RATE) {
		override_rate_format(command->thousandths, rate);
		weir_json_write_words(&json, "rate", rate);
		if (command->scope == OVERRIDE_OF_PREFIX)
			weir_json_write_bool(&json, "prefix", true);
	}
	weir_json_write_words(&json, "by", command->by);
	weir_json_write_words(&json, "reason", command->reason);
	weir_json_write_words(&json, "id", command->id);
	weir_json_write_end(&json);
}

char *override_command_message(const struct override_command *command, uint64_t policy_version, int64_t now_ms,
                               size_t *length)
{
	struct weir_text body = {0};
	override_command_json(&body, command);
	char *message = weir_frame_control(WEIR_FRAME_COMMAND, now_ms, policy_version,
	                                   (struct weir_span){.at = body.at, .length = (uint32_t)body.length}, length);
	/* A limiter that knows no networks would put it aside, and go on without the block. */
	if (command->scope == OVERRIDE_OF_NETWORK)
		weir_frame_extend(message, *length);
	weir_text_deinit(&body);
	return message;
}
