-- Leaves an order to the processes, unless there are too many, and forgets those that are over.
--
-- KEYS[1]  the orders, a hash: next, the last number given; by number the order as JSON; and by number/service
--          who carries it out, and what came of it
-- ARGV[1]  the order as JSON, without its number and times
-- ARGV[2]  when it is to be carried out, in milliseconds; 0: now
-- ARGV[3]  for how many milliseconds from then on it can be, and is remembered
-- ARGV[4]  how many there may be
-- ARGV[5]  the channel on which processes hear that there is something to look at
-- ARGV[6]  the number of the call
-- Reply    the number of the order, 0 if there are too many; the milliseconds now; the number of the call

local orders, body = KEYS[1], ARGV[1]
local asked_ms, keep_ms, most, channel, call = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], ARGV[6]

local time = redis.call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local at_ms = math.max(asked_ms, now_ms)
local until_ms = at_ms + keep_ms

local count, latest, over = 0, until_ms, {}
local fields = redis.call('HGETALL', orders)
for i = 1, #fields, 2 do
  if string.match(fields[i], '^%d+$') then
    local ends = tonumber(string.match(fields[i + 1], '"untilMs":(%d+)') or 0)
    if ends > now_ms then
      count = count + 1
      latest = math.max(latest, ends)
    else
      over[fields[i]] = true
    end
  end
end
for i = 1, #fields, 2 do
  if over[string.match(fields[i], '^%d+')] then redis.call('HDEL', orders, fields[i]) end
end
if count >= most then return { 0, now_ms, call } end

local number = redis.call('HINCRBY', orders, 'next', 1)
local head = string.format('{"id":%d,"atMs":%.0f,"untilMs":%.0f,', number, at_ms, until_ms)
redis.call('HSET', orders, tostring(number), head .. string.sub(body, 2))
redis.call('PEXPIRE', orders, string.format('%.0f', latest - now_ms))
-- Only a hint. Who may not publish may still order: processes look at each poll.
redis.pcall('PUBLISH', channel, 'orders')
return { number, now_ms, call }
