-- Writes the limits of a cluster, unless there are some of the same or of a later revision.
--
-- KEYS[1]  the limits, a hash: revision; names (the apps by their numbers, JSON) and figures (JSON), for people too;
--          packed and digests, for lease.lua
-- ARGV[1]  the revision to write; 0 is what the code says, and replaces nothing
-- ARGV[2]  the names that the writer knows to be there, '' if none: what it writes continues them
-- ARGV[3]  the names, as they are to be
-- ARGV[4]  the figures
-- ARGV[5]  the limits, packed doubles in the order of lease.lua
-- ARGV[6]  the digests of the names, packed doubles: of the first, of the first two…
-- ARGV[7]  the number of the call
-- Reply    1 if they were written, else 0; the revision that holds now, -1 if none does; its names; and the number of
--          the call

local limits_key = KEYS[1]
local revision, known, names, figures, packed, digests = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

local stored = redis.call('HMGET', limits_key, 'revision', 'names')
local held, held_names = tonumber(stored[1] or -1), stored[2] or ''
if held_names == '' then held = -1 end
if held >= revision or held_names ~= known then return { 0, held, held_names, ARGV[7] } end

redis.call('HSET', limits_key, 'revision', revision, 'names', names, 'figures', figures, 'packed', packed, 'digests',
  digests)
return { 1, revision, names, ARGV[7] }
