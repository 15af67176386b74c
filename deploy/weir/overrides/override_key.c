/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values are put into a record, as a log's line would bring them, and the
 * collector's own code joins them: so an address in any of its forms, or a value
 * that is too long, is the key that events have.
 */
#include "deploy/weir/overrides/override_key.h"

#include "common/json/json_writer.h"
#include "common/matcher/key_template.h"
#include "common/record/field_value.h"
#include "deploy/weir/overrides/override_append.h"

#include <ctype.h>
#include <string.h>

enum { HOST_NAME_BYTES = 253 };

/* A zone's key as its fields: "ip, user". */
static void put_fields(struct weir_text *text, const struct weir_zone *zone)
{
	for (uint32_t i = 0; i < zone->key_count; i++)
		weir_text_printf(text, "%s%s", i > 0 ? ", " : "", zone->key[i].field);
	if (zone->key_count == 0)
		weir_text_puts(text, "no value: it has one bucket for all events");
}

bool override_key_fits(const struct override_options *options, const struct weir_zone *zone)
{
	if (options->prefix)
		return options->value_count >= 1 && options->value_count <= zone->key_count;
	return options->key_hex != NULL || options->value_count == zone->key_count;
}

static enum weir_status refuse_values(const struct override_options *options, const struct weir_zone *zone,
                                      struct weir_error *error)
{
	struct weir_text fields = {0};
	put_fields(&fields, zone);
	if (zone->key_count == 0 && options->prefix)
		weir_fail(error, WEIR_INVALID, "the key of zone %s is empty: it has no prefixes", zone->name);
	else
		weir_fail(error, WEIR_INVALID, "the key of zone %s takes %u value%s (%.*s), not %u", zone->name,
		          zone->key_count, zone->key_count == 1 ? "" : "s", (int)fields.length, fields.at,
		          options->value_count);
	weir_text_deinit(&fields);
	return WEIR_INVALID;
}

/* "site (ip), login (ip, user)" */
static void list_zones(struct weir_text *text, const struct weir_policy *policy)
{
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		weir_text_printf(text, "%s%s (", i > 0 ? ", " : "", policy->zones[i].name);
		put_fields(text, &policy->zones[i]);
		weir_text_puts(text, ")");
	}
}

bool override_key_is_network(const struct override_options *options)
{
	struct weir_network network;
	const char *why;
	if (options->value_count != 1 || options->prefix || options->kind == OVERRIDE_RATE ||
	    strchr(options->values[0], '/') == NULL)
		return false;
	return weir_network_parse(weir_span_of(options->values[0]), &network, &why) ||
	       weir_network_meant(options->values[0]);
}

/* A network in a zone whose events are not counted by an address. */
static enum weir_status refuse_network(const struct override_options *options, const struct weir_policy *policy,
                                       const struct weir_zone *zone, struct weir_error *error)
{
	struct weir_text zones = {0};
	for (uint32_t i = 0; i < policy->zone_count; i++)
		if (override_zone_takes_networks(&policy->zones[i]))
			weir_text_printf(&zones, "%s%s", zones.length > 0 ? ", " : "", policy->zones[i].name);
	weir_fail(error, WEIR_INVALID, "%s%s%s count%s by one address, so nobody lies in \"%s\"; %s%.*s",
	          zone != NULL ? "zone " : "no zone", zone != NULL ? zone->name : "", zone != NULL ? " does not" : "",
	          zone != NULL ? "" : "s", options->values[0],
	          zones.length > 0 ? "these zones do: " : "give a key of a zone", (int)zones.length,
	          zones.length > 0 ? zones.at : "");
	weir_text_deinit(&zones);
	return WEIR_INVALID;
}

static const struct weir_zone *find_zone(const struct override_options *options, const struct weir_policy *policy,
                                         struct weir_error *error)
{
	const struct weir_zone *found = NULL;
	uint32_t fitting = 0;
	if (options->zone != NULL)
		return weir_policy_find_zone(policy, weir_span_of(options->zone), error);
	for (uint32_t i = 0; i < policy->zone_count; i++)
		if (override_key_fits(options, &policy->zones[i])) {
			found = &policy->zones[i];
			fitting++;
		}
	if (override_key_is_network(options) && options->kind != OVERRIDE_LIFT) {
		(void)refuse_network(options, policy, NULL, error);
		return NULL;
	}
	if (fitting == 1)
		return found;
	struct weir_text zones = {0};
	list_zones(&zones, policy);
	weir_fail(error, WEIR_INVALID, "%s: choose one with --zone (%.*s)",
	          fitting == 0 ? "no zone's key takes these values" : "several zones' keys have these values",
	          (int)zones.length, zones.at);
	weir_text_deinit(&zones);
	return NULL;
}

/* Whether a value is written as addresses and networks are, which other keys seldom are. */
static bool looks_like_address(const char *value)
{
	return value[strspn(value, "0123456789abcdefABCDEF.:/")] == '\0' && strpbrk(value, ".:/") != NULL;
}

/*
 * Whether a value may be the name of a host, which servers that look names up write in the place of an address. The last
 * label is no number: such a name would be a form of IPv4.
 */
static bool is_host_name(const char *value)
{
	static const char digits[] = "0123456789";
	size_t length = strlen(value), label = 0, numbers = 0;
	if (length > HOST_NAME_BYTES || value[0] == '-')
		return false;
	for (size_t i = 0; i < length; i++) {
		bool ends = value[i] == '.';
		if (ends ? label == 0 : strchr("-_", value[i]) == NULL && !isalnum((unsigned char)value[i]))
			return false;
		if (ends && i + 1 == length)
			break; /* the root's dot */
		numbers = ends ? 0 : numbers + (strchr(digits, value[i]) != NULL);
		label = ends ? 0 : label + 1;
	}
	return label > numbers;
}

const char *override_key_name(const struct override_options *options, const struct weir_zone *zone)
{
	struct weir_address address;
	for (uint32_t i = 0; !options->prefix && options->key_hex == NULL && i < options->value_count; i++)
		if (i < zone->key_count && weir_key_field_is_address(&zone->key[i]) && is_host_name(options->values[i]) &&
		    !weir_address_read(weir_span_of(options->values[i]), &address))
			return options->values[i];
	return NULL;
}

/* Overrides go by the texts of keys: a network has none that all its members begin with, but for /8, /16 and such. */
#define BEGINNINGS "; for all keys that begin alike give their beginning with --prefix (such as --prefix 10.1.)"

/*
 * What stands for value i of a field of addresses: of a network that the zone counts, its address, which the collector's
 * code makes the network of again. No event has another network as its key, and what is neither an address, a host's
 * name nor "unix:", as nginx writes for sockets, is a slip: nothing is commanded for them. To end what was is harmless.
 *
 * @param text  room for the address
 */
static enum weir_status take_address(const struct override_options *options, const struct weir_zone *zone, uint32_t i,
                                     char text[WEIR_ADDRESS_TEXT_BYTES], struct weir_span *value,
                                     struct weir_error *error)
{
	const struct weir_key_field *field = &zone->key[i];
	const char *given = options->values[i], *why;
	struct weir_address address;
	struct weir_network network;
	bool v4 = strchr(given, ':') == NULL;
	if (weir_address_parse(*value, &address) || is_host_name(given) || strcmp(given, "unix:") == 0 ||
	    (!looks_like_address(given) && weir_address_read(*value, &address)))
		return WEIR_OK;
	if (weir_network_parse(*value, &network, &why)) {
		v4 = weir_address_is_v4(&network.base);
		if (network.prefix == (v4 ? 96u + field->prefix4 : field->prefix6)) {
			*value = (struct weir_span){.at = text, .length = weir_address_format(&network.base, text)};
			return WEIR_OK;
		}
	}
	if (options->kind == OVERRIDE_LIFT)
		return WEIR_OK;
	if (strchr(given, '/') == NULL || !looks_like_address(given))
		return weir_fail(error, WEIR_INVALID,
		                 "zone %s counts addresses by %s, but \"%s\" is not an address, nor the name of a host",
		                 zone->name, field->field, given);
	return weir_fail(error, WEIR_INVALID,
	                 "zone %s counts %s by /%u: \"%s\" is not such a network; give an address, or its /%u%s",
	                 zone->name, field->field, v4 ? field->prefix4 : field->prefix6, given,
	                 v4 ? field->prefix4 : field->prefix6, options->kind == OVERRIDE_RATE ? BEGINNINGS : "");
}

/*
 * A network that is wider than what its zone counts as one: its members are meant. One that the zone counts as one is a
 * key, and one that is narrower is nobody's.
 *
 * @param taken  whether it is one
 */
static enum weir_status take_network(const struct override_options *options, const struct weir_policy *policy,
                                     const struct weir_zone *zone, struct override_command *command, bool *taken,
                                     struct weir_error *error)
{
	const char *given = options->values[0], *why;
	char text[WEIR_NETWORK_TEXT_BYTES];
	struct weir_network network;
	*taken = false;
	if (!override_key_is_network(options))
		return WEIR_OK;
	if (!override_zone_takes_networks(zone))
		/* To lift what has that for a key does no harm. */
		return options->kind == OVERRIDE_LIFT || zone->key_count != 1 ? WEIR_OK
		                                                              : refuse_network(options, policy, zone, error);
	if (!weir_network_parse(weir_span_of(given), &network, &why)) {
		if (strcmp(why, "host bits are set") != 0)
			return weir_fail(error, WEIR_INVALID, "\"%s\" is not a network: %s", given, why);
		bool v4 = weir_address_is_v4(&network.base) && network.prefix >= 96;
		weir_address_mask(&network.base, v4 ? (uint8_t)(network.prefix - 96) : 0, network.prefix);
		return weir_fail(error, WEIR_INVALID, "\"%s\" is an address in a network: for the network give %s", given,
		                 weir_network_format(&network, text));
	}
	if (network.prefix >= override_zone_bits(zone, &network.base))
		return WEIR_OK;
	struct weir_span canonical = weir_span_of(weir_network_format(&network, text));
	if (!override_network_parse(canonical, &network))
		return weir_fail(error, WEIR_INVALID,
		                 "\"%s\" is every address there is: change the zone's mode or limits instead", given);
	*taken = true;
	command->scope = OVERRIDE_OF_NETWORK;
	command->key_length = command->value_count = 0;
	return override_key_add(command, canonical) ? WEIR_OK : weir_fail(error, WEIR_INVALID, "the key is too long");
}

enum weir_status override_key_join(const struct override_options *options, const struct weir_zone *zone,
                                   struct override_command *command, struct weir_error *error)
{
	struct weir_field_table fields;
	struct weir_key_template template;
	struct weir_address_cache cache = {0};
	struct weir_record record = {0};
	char texts[WEIR_ZONE_KEY_MAX][WEIR_ADDRESS_TEXT_BYTES];
	struct weir_field_value_room rooms[WEIR_ZONE_KEY_MAX] = {0};
	weir_field_table_init(&fields);
	enum weir_status status = weir_key_template_init(&template, zone, &fields, error);
	for (uint32_t i = 0; status == WEIR_OK && i < zone->key_count; i++) {
		struct weir_span *value = &record.fields[template.parts[i].field];
		*value = weir_span_of(options->values[i]);
		if (weir_key_field_is_address(&zone->key[i]))
			status = take_address(options, zone, i, texts[i], value, error);
		if (value->length > 0)
			*value = weir_field_value(template.parts[i].field, *value, &rooms[i]);
	}
	if (status == WEIR_OK) {
		struct weir_span key = weir_key_template_join(&template, &record, &cache);
		memcpy(command->key, key.at, key.length);
		command->key_length = key.length;
		command->value_count = zone->key_count;
	}
	for (uint32_t i = 0; i < WEIR_ZONE_KEY_MAX; i++)
		weir_field_value_room_deinit(&rooms[i]);
	weir_key_template_deinit(&template);
	weir_field_table_deinit(&fields);
	return status;
}

enum weir_status override_key_hex(const char *text, struct override_command *command, struct weir_error *error)
{
	/* By the words of the body, which takes the same digits. */
	struct weir_text body = {0};
	struct override_command parsed;
	struct weir_json_writer json = weir_json_writer(&body);
	weir_json_write_object(&json, NULL);
	weir_json_write_words(&json, "command", "lift");
	weir_json_write_words(&json, "zone", "-");
	weir_json_write_words(&json, "by", "");
	weir_json_write_words(&json, "key_hex", text);
	weir_json_write_end(&json);
	enum weir_status status =
		override_command_parse((struct weir_span){.at = body.at, .length = (uint32_t)body.length}, &parsed, error);
	weir_text_deinit(&body);
	if (status != WEIR_OK)
		return weir_fail(error, WEIR_INVALID, "--key-hex needs two digits (0-9, a-f) per byte, not \"%s\"", text);
	memcpy(command->key, parsed.key, parsed.key_length);
	command->key_length = parsed.key_length;
	command->value_count = parsed.value_count;
	return WEIR_OK;
}

void override_key_find_scope(struct override_command *command, const struct weir_zone *zone)
{
	struct weir_network network;
	bool wider = override_zone_takes_networks(zone) && override_network_parse(override_key(command), &network) &&
	             network.prefix < override_zone_bits(zone, &network.base);
	command->scope = wider ? OVERRIDE_OF_NETWORK : OVERRIDE_OF_KEY;
}

enum weir_status override_key_make(const struct override_options *options, const struct weir_policy *policy,
                                   struct override_command *command, struct weir_error *error)
{
	const struct weir_zone *zone = find_zone(options, policy, error);
	if (zone == NULL)
		return WEIR_INVALID;
	if (!override_key_fits(options, zone))
		return refuse_values(options, zone, error);
	snprintf(command->zone, sizeof command->zone, "%s", zone->name);
	command->scope = options->prefix ? OVERRIDE_OF_PREFIX : OVERRIDE_OF_KEY;
	bool taken;
	enum weir_status status = take_network(options, policy, zone, command, &taken, error);
	if (status != WEIR_OK || taken)
		return status;
	if (options->key_hex != NULL)
		status = override_key_hex(options->key_hex, command, error);
	else if (!options->prefix)
		return override_key_join(options, zone, command, error);
	if (status == WEIR_OK && options->key_hex != NULL && !options->prefix && options->kind != OVERRIDE_RATE)
		override_key_find_scope(command, zone);
	for (uint32_t i = 0; status == WEIR_OK && options->key_hex == NULL && i < options->value_count; i++)
		if (!override_key_add(command, weir_span_of(options->values[i])))
			status = weir_fail(error, WEIR_INVALID, "the prefix is too long: a key has at most %d bytes",
			                   WEIR_KEY_MAX_BYTES);
	return status == WEIR_OK ? override_command_check(command, zone, error) : status;
}
