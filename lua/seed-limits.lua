-- Writes the limits of a cluster if they are still the ones that the writer knows of.
--
-- KEYS[1]  the limits, a hash: revision, figures (JSON, for people), packed (for lease.lua)
-- ARGV[1]  the revision that is to be replaced, 0 if there should be none
-- ARGV[2]  the figures as JSON
-- ARGV[3]  the limits, packed doubles in the order of lease.lua, without the revision that comes first there
-- Reply    1 if they were written, else 0; and the revision that holds now

local limits_key = KEYS[1]
local expected, figures, packed = tonumber(ARGV[1]), ARGV[2], ARGV[3]

local current = tonumber(redis.call('HGET', limits_key, 'revision') or 0)
if current ~= expected then return { 0, current } end
local revision = current + 1
packed = struct.pack('<d', revision) .. packed
redis.call('HSET', limits_key, 'revision', revision, 'figures', figures, 'packed', packed)
return { 1, revision }
