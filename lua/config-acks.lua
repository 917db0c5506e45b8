-- Tells what the nodes say of the configuration, but for those that have not spoken for too long.
--
-- KEYS[1]  what the nodes say, a hash of JSON by node
-- KEYS[2]  sorted set of nodes by when they no longer count, in milliseconds
-- ARGV[1]  the number of the call
-- Reply    what each node says, as JSON, and the number of the call

local acks, deadlines = KEYS[1], KEYS[2]

local time = redis.call('TIME')
local now_ms = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))

local living = redis.call('ZRANGEBYSCORE', deadlines, '(' .. now_ms, '+inf')
local said = {}
for _, node in ipairs(living) do
  local ack = redis.call('HGET', acks, node)
  if ack then said[#said + 1] = ack end
end
said[#said + 1] = ARGV[1]
return said
