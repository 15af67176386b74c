-- SPDX-License-Identifier: Apache-2.0
-- The "Uniform Rate Limiter" of the Zoo website's rate_limiting.md (Redis):
-- one call a key in ARGV[1] milliseconds. 1 admits, 0 refuses.
if redis.call('ttl', KEYS[1]) > 0 then
  return 0
else
  redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[1])
  return redis.call('exists', KEYS[1])
end
