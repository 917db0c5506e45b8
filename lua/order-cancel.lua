-- Takes an order back that no process has begun.
--
-- KEYS[1]  the orders, as in order-put.lua
-- ARGV[1]  the number of the order
-- ARGV[2]  the number of the call
-- Reply    1 if it is taken back, 0 if there is none, 2 if it has begun; the number of the call

local orders, order, call = KEYS[1], ARGV[1], ARGV[2]

if redis.call('HEXISTS', orders, order) == 0 then return { 0, call } end
local fields = redis.call('HGETALL', orders)
for i = 1, #fields, 2 do
  if string.match(fields[i], '^(%d+)/') == order then return { 2, call } end
end
redis.call('HDEL', orders, order)
return { 1, call }
