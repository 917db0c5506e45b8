-- Writes a record of the configuration if the stored one is still the one that the writer knows of.
--
-- KEYS[1]  the configuration, a hash: revision, id, current, previous, history_bytes
-- KEYS[2]  the history, a list of records, newest first
-- ARGV[1]  the revision that is to be replaced, 0 if there should be none
-- ARGV[2]  a revision that the new one has to be above as well
-- ARGV[3]  the id of the record
-- ARGV[4]  the record as JSON, without its revision and time
-- ARGV[5]  how many records the history keeps at most
-- ARGV[6]  and how many bytes
-- ARGV[7]  the channel on which the new revision is told
-- ARGV[8]  the highest revision that can be: a higher one was not counted by anybody
-- ARGV[9]  the number of the call
-- Reply    1 if it was written, now or by an earlier attempt, else 0; the revision that holds now;
--          the milliseconds now; the number of the call

local config, history = KEYS[1], KEYS[2]
local expected, above = tonumber(ARGV[1]), tonumber(ARGV[2])
local id, body = ARGV[3], ARGV[4]
local most_records, most_bytes = tonumber(ARGV[5]), tonumber(ARGV[6])
local channel, highest, call = ARGV[7], tonumber(ARGV[8]), ARGV[9]

local time = redis.call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- A text that is no such number was not written here, and may be replaced like nothing.
local function whole(text)
  local number = tonumber(text or 0)
  if number and number >= 0 and number <= highest and number % 1 == 0 then return number end
  return 0
end

local stored = redis.call('HMGET', config, 'revision', 'id', 'current', 'history_bytes')
local current = whole(stored[1])
if stored[2] == id then return { 1, current, now_ms, call } end
if current ~= expected then return { 0, current, now_ms, call } end

local revision = math.max(expected, above) + 1
-- Put together as text: cjson cannot tell an empty object from an empty list.
local number = string.format('%.0f', revision)
local head = string.format('{"revision":%s,"atMs":%.0f,', number, now_ms)
local record = head .. string.sub(body, 2)

local records = redis.call('LPUSH', history, record)
local bytes = whole(stored[4]) + #record
while records > most_records or (bytes > most_bytes and records > 1) do
  bytes = bytes - #redis.call('RPOP', history)
  records = records - 1
end
-- A count that was spoilt, or whose history is gone, does not stay wrong for good.
if records == 1 then bytes = #record end
redis.call('HSET', config, 'revision', number, 'id', id, 'current', record,
  'previous', stored[3] or '', 'history_bytes', string.format('%.0f', bytes))
-- Only a hint, and nothing but the number: who hears it reads. Who may not publish may still write.
redis.pcall('PUBLISH', channel, number)
return { 1, revision, now_ms, call }
