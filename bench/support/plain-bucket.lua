-- A token bucket the way most people write it.
--
-- KEYS[1]  the bucket, a hash
-- ARGV     tokens per second, burst, cost
-- Reply    1 if allowed, else 0; whole tokens left

local key = KEYS[1]
local rate, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000

local bucket = redis.call('HMGET', key, 'tokens', 'last')
local tokens, last = tonumber(bucket[1]) or burst, tonumber(bucket[2]) or now

tokens = math.min(burst, tokens + math.max(0, now - last) * rate)
local allowed = tokens >= cost
if allowed then tokens = tokens - cost end

redis.call('HSET', key, 'tokens', tokens, 'last', now)
redis.call('PEXPIRE', key, math.ceil(burst / rate * 1000))
return { allowed and 1 or 0, math.floor(tokens) }
