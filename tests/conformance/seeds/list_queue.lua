-- SPDX-License-Identifier: Apache-2.0
-- The list variation of the Zoo website's rate_limiting.md (Redis), which gives
-- it in words: the stream's script with LLEN for XLEN and LPUSH for XADD; the
-- processor takes the oldest entry with RPOP. 1 admits, 0 refuses.
local one_means_ok = 1
local limit = 0 + ARGV[1]
if (redis.call('LLEN', KEYS[1]) == limit) then
  one_means_ok = 0
else
  redis.call('LPUSH', KEYS[1], ARGV[2])
end
return one_means_ok
