-- Writes a text over the one that its writer has read, and over no other: asked twice, it answers the same.
--
-- KEYS[1]  the text; its first line is its mark
-- ARGV[1]  the mark of the text that was read, empty if there was none
-- ARGV[2]  the mark of the new text
-- ARGV[3]  the new text, without its mark
-- ARGV[4]  how long it is kept, in milliseconds
-- ARGV[5]  the number of the call
-- Reply    1 if the new text is there, 0 if another one is; and the number of the call

local key = KEYS[1]
local read_mark, mark, text, ttl_ms, number = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local held = redis.call('GET', key)
local held_mark = held and string.match(held, '^[^\n]*') or ''
if held_mark == mark then
  return { 1, number }
end
if held_mark ~= read_mark then
  return { 0, number }
end
redis.call('SET', key, mark .. '\n' .. text, 'PX', ttl_ms)
return { 1, number }
