-- SPDX-License-Identifier: Apache-2.0
-- The "Request-coupled Leaking Bucket" of the Zoo website's rate_limiting.md
-- (Redis): at most ARGV[1] entries (field ARGV[2], value ARGV[3]) wait in a
-- stream for whoever processes and deletes them. 1 admits, 0 refuses.
local one_means_ok = 1
local limit = 0 + ARGV[1]
if (redis.call('XLEN', KEYS[1]) == limit) then
  one_means_ok = 0
else
  redis.call('XADD', KEYS[1], '*', ARGV[2], ARGV[3])
end
return one_means_ok
