-- Notes what a node says of the configuration, and forgets nodes that have not spoken for too long.
--
-- KEYS[1]  what the nodes say, a hash of JSON by node
-- KEYS[2]  sorted set of nodes by when they no longer count, in milliseconds
-- ARGV[1]  the node
-- ARGV[2]  what it says as JSON, without the time
-- ARGV[3]  for how many milliseconds it counts
-- ARGV[4]  the number of the call
-- Reply    the milliseconds now, and the number of the call

local acks, deadlines = KEYS[1], KEYS[2]
local node, body, ttl_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])

local time = redis.call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local ack = string.format('{"atMs":%.0f,', now_ms) .. string.sub(body, 2)
redis.call('HSET', acks, node, ack)
redis.call('ZADD', deadlines, string.format('%.0f', now_ms + ttl_ms), node)
for _, silent in ipairs(redis.call('ZRANGEBYSCORE', deadlines, '-inf', string.format('%.0f', now_ms))) do
  redis.call('HDEL', acks, silent)
  redis.call('ZREM', deadlines, silent)
end
return { now_ms, ARGV[4] }
