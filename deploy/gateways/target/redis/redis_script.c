/* SPDX-License-Identifier: Apache-2.0 */
/* The scripts' text. Offsets are numbers of Lua: exact up to 2^53, which no log reaches. */
#include "deploy/gateways/target/redis/redis_script.h"

/* Whether what a key holds is of a version after (offset, index), or also the same one. Another type is no version. */
#define NEWER                                                                         \
	"local offset, index = tonumber(ARGV[1]), tonumber(ARGV[2])\n"                    \
	"local function newer(key, same)\n"                                               \
	"  local text = redis.pcall('GET', key)\n"                                        \
	"  if type(text) ~= 'string' then return false end\n"                             \
	"  local o, i = string.match(text, '\"id\"%s*:%s*\"%d+%-(%d+)%-(%d+)\"')\n"       \
	"  o, i = tonumber(o), tonumber(i)\n"                                             \
	"  if not o or not i then return false end\n"                                     \
	"  return o > offset or (o == offset and (i > index or (same and i == index)))\n" \
	"end\n"

static const char put[] = NEWER "if newer(KEYS[1], true) or newer(KEYS[2], false) then return 0 end\n"
								"if ARGV[3] == '' then redis.call('SET', KEYS[1], ARGV[4])\n"
								"else redis.call('SET', KEYS[1], ARGV[4], 'PXAT', ARGV[3]) end\n"
								"if ARGV[5] ~= '' then redis.call('SET', KEYS[2], ARGV[6], 'PXAT', ARGV[5]) end\n"
								"return 1\n";

static const char drop[] = NEWER "if newer(KEYS[1], false) or newer(KEYS[2], false) then return 0 end\n"
								 "redis.call('DEL', KEYS[1])\n"
								 "if ARGV[3] ~= '' then redis.call('SET', KEYS[2], ARGV[4], 'PXAT', ARGV[3]) end\n"
								 "return 1\n";

const char *redis_script_text(enum redis_script script)
{
	return script == REDIS_SCRIPT_PUT ? put : drop;
}
