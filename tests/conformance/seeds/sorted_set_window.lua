-- SPDX-License-Identifier: Apache-2.0
-- The "Resource Credits-based (Sliding Window) Rate Limiter" of the Zoo
-- website's rate_limiting.md (Redis): ARGV[2] calls a key in any ARGV[1]
-- microseconds. 1 admits, 0 refuses.
local one_means_ok = 1
local limit = 0 + ARGV[2]
local t = redis.call('TIME')
redis.call('SET', 'time{' .. KEYS[1] .. '}', '' .. t[1] .. t[2])
local full_time = redis.call('GET', 'time{' .. KEYS[1] .. '}')
local delta = (full_time - ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '0', delta)
local count = (redis.call('ZCARD', KEYS[1]))
if (count == limit) then
  one_means_ok = 0
elseif (count < limit) then
  redis.call('ZADD', KEYS[1], full_time, t[1] .. ':' .. t[2])
end
return one_means_ok
