-- Takes a lease that nobody holds, or holds its own for another term: asked twice, it answers the same.
--
-- KEYS[1]  the lease
-- ARGV[1]  the owner's mark
-- ARGV[2]  its term in milliseconds
-- ARGV[3]  the number of the call
-- Reply    1 if the lease is that owner's, 0 if it is somebody else's; and the number of the call

local lease = KEYS[1]
local mark, term_ms, number = ARGV[1], ARGV[2], ARGV[3]

local holder = redis.call('GET', lease)
if holder and holder ~= mark then
  return { 0, number }
end
redis.call('SET', lease, mark, 'PX', term_ms)
return { 1, number }
