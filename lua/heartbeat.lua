-- Notes that a node is alive and counts those that are.
--
-- KEYS[1]  sorted set of nodes by when they were last seen, in microseconds
-- ARGV[1]  the node
-- ARGV[2]  after how many milliseconds of silence a node no longer counts
-- Reply    the number of nodes alive

local nodes = KEYS[1]
local node, ttl_ms = ARGV[1], tonumber(ARGV[2])

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])

-- A clock that has stepped back goes on from here: who was seen after now was seen just now.
for _, ahead in ipairs(redis.call('ZRANGEBYSCORE', nodes, string.format('(%.0f', now), '+inf')) do
  redis.call('ZADD', nodes, string.format('%.0f', now), ahead)
end
redis.call('ZREMRANGEBYSCORE', nodes, '-inf', string.format('%.0f', now - ttl_ms * 1000))
redis.call('ZADD', nodes, string.format('%.0f', now), node)
redis.call('PEXPIRE', nodes, ARGV[2])
return redis.call('ZCARD', nodes)
