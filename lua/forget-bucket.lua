-- Forgets a bucket, so that its key starts anew, and notes when: a debt from before then is none any more.
--
-- KEYS[1]  the bucket
-- KEYS[2]  when it was reset, in microseconds; kept for as long as anybody may still report a debt
-- ARGV[1]  now in microseconds, or '' for the server's clock
-- ARGV[2]  time to live of the note in milliseconds
-- ARGV[3]  the number of the call
-- Reply    1 if there was a bucket, else 0; and the number of the call

local now = ARGV[1]
if now == '' then
  local time = redis.call('TIME')
  now = string.format('%.0f', time[1] * 1000000 + time[2])
end
redis.call('SET', KEYS[2], now, 'PX', ARGV[2])
return { redis.call('UNLINK', KEYS[1]), ARGV[3] }
