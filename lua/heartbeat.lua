-- Notes that a node is alive, in some sorted sets of nodes, and counts those that are in all of them.
--
-- KEYS     sorted sets of nodes by when they were last seen, in microseconds; all of one slot
-- ARGV[1]  the node
-- ARGV[2]  after how many milliseconds of silence a node no longer counts
-- ARGV[3]  in how many of the sets, from the first on, the node is
-- ARGV[4]  '1' if it leaves them
-- ARGV[5]  the number of the call
-- Reply    the number of nodes alive in each set; 1 if the node had been in one of its own, and else 0: then it
--          is new, or they have lost others as well; and the number of the call

local node, ttl_ms, own_sets, is_leaving = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local seen_now, oldest = string.format('%.0f', now), string.format('%.0f', now - ttl_ms * 1000)

local was_known = own_sets == 0 and 1 or 0
for i = 1, own_sets do
  local nodes = KEYS[i]
  redis.call('ZREMRANGEBYSCORE', nodes, '-inf', '(' .. oldest)
  -- A clock that has stepped back goes on from here: who was seen after now was seen just now.
  local ahead = redis.call('ZRANGEBYSCORE', nodes, '(' .. seen_now, '+inf')
  for j = 1, #ahead do redis.call('ZADD', nodes, seen_now, ahead[j]) end
  if is_leaving then
    redis.call('ZREM', nodes, node)
  else
    if redis.call('ZADD', nodes, seen_now, node) == 0 then was_known = 1 end
    redis.call('PEXPIRE', nodes, ttl_ms)
  end
end

local counts = {}
for i = 1, #KEYS do counts[i] = redis.call('ZCOUNT', KEYS[i], oldest, '+inf') end
counts[#KEYS + 1] = was_known
counts[#KEYS + 2] = ARGV[5]
return counts
