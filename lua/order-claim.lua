-- Has one process of a service carry out an order: takes it, says that it is still at it, or what came of it.
--
-- KEYS[1]  the orders, as in order-put.lua
-- ARGV[1]  the number of the order
-- ARGV[2]  the service
-- ARGV[3]  the process, as JSON
-- ARGV[4]  for how many milliseconds nobody else may take it
-- ARGV[5]  what came of it, as JSON, or null while it is at it
-- ARGV[6]  the number of the call
-- Reply    1 if the order is that process's, else 0; the milliseconds now; the number of the call

local orders, field = KEYS[1], ARGV[1] .. '/' .. ARGV[2]
local node, lease_ms, result, call = ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]

local time = redis.call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

if redis.call('HEXISTS', orders, ARGV[1]) == 0 then return { 0, now_ms, call } end
local held = redis.call('HGET', orders, field)
if held then
  local claim = cjson.decode(held)
  local is_own = cjson.encode(claim.node) == cjson.encode(cjson.decode('[' .. node .. ']')[1])
  local is_done = claim.result ~= cjson.null
  if is_done or (not is_own and tonumber(claim.untilMs) > now_ms) then return { 0, now_ms, call } end
end
local head = string.format('{"node":%s,"untilMs":%.0f,"atMs":%.0f,"result":', node, now_ms + lease_ms, now_ms)
redis.call('HSET', orders, field, head .. result .. '}')
return { 1, now_ms, call }
