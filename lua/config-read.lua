-- Reads the configuration, and the clock that its times are on.
--
-- KEYS[1]  the configuration, a hash: revision, id, current, previous
-- KEYS[2]  the orders, a hash
-- ARGV[1]  the id of the record that the reader has, or an empty text
-- ARGV[2]  the number of the call
-- Reply    the revision; the milliseconds now; 1 if the reader has the current record already, else 0;
--          the current record and the one before it, empty if there is none or they are not needed;
--          how many fields the orders have;
--          the number of the call

local config, orders = KEYS[1], redis.call('HLEN', KEYS[2])
local known, number = ARGV[1], ARGV[2]

local time = redis.call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local revision = redis.call('HGET', config, 'revision') or '0'
if known ~= '' and redis.call('HGET', config, 'id') == known then
  return { revision, now_ms, 1, '', '', orders, number }
end
local records = redis.call('HMGET', config, 'current', 'previous')
return { revision, now_ms, 0, records[1] or '', records[2] or '', orders, number }
