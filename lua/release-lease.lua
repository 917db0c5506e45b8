-- Gives up a lease, if it is still its owner's.
--
-- KEYS[1]  the lease
-- ARGV[1]  the owner's mark
-- Reply    1 if it was given up, 0 if it was somebody else's or nobody's

local lease = KEYS[1]
local mark = ARGV[1]

if redis.call('GET', lease) ~= mark then
  return 0
end
return redis.call('DEL', lease)
