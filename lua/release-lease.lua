-- Gives up a lease, if it is still its owner's.
--
-- KEYS[1]  the lease
-- ARGV[1]  the owner's mark
-- ARGV[2]  the number of the call
-- Reply    1 if it was given up, 0 if it was somebody else's or nobody's; and the number of the call

local lease = KEYS[1]
local mark, number = ARGV[1], ARGV[2]

if redis.call('GET', lease) ~= mark then
  return { 0, number }
end
return { redis.call('DEL', lease), number }
