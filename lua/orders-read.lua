-- Reads the orders that there are, and the clock that their times are on.
--
-- KEYS[1]  the orders, as in order-put.lua
-- ARGV[1]  the number of the call
-- Reply    the milliseconds now; the fields of the hash, each with its value; the number of the call

local time = redis.call('TIME')
local reply = { tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) }
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields do reply[i + 1] = fields[i] end
reply[#reply + 1] = ARGV[1]
return reply
