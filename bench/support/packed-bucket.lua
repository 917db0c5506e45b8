-- The same bucket, packed into one string: the least that a bucket in Lua costs Redis.
--
-- KEYS[1]  the bucket, a string of two doubles
-- ARGV     units per microsecond, burst and cost in units (millionths of a token)
-- Reply    1 if allowed, else 0; whole tokens left

local key = KEYS[1]
local rate, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])

local tokens, last = burst, now
local bucket = redis.call('GET', key)
if bucket then tokens, last = struct.unpack('<dd', bucket) end

tokens = math.min(burst, tokens + math.max(0, now - last) * rate)
local allowed = tokens >= cost
if allowed then tokens = tokens - cost end

redis.call('SET', key, struct.pack('<dd', tokens, now), 'PX', math.ceil(burst / rate / 1000))
return { allowed and 1 or 0, math.floor(tokens / 1000000) }
