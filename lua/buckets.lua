-- Settles a batch of takes, peeks and refunds in one go, each take of several buckets all or nothing.
--
-- KEYS     one per bucket
-- ARGV[1]  now in microseconds, or '' for the server's clock (tests inject time, nodes never do)
-- ARGV[2]  the plan, whole numbers set apart by blanks; for each call: kind (0 take, 1 peek, 2 refund),
--          number of checks, and for each check: number of its key, number of its limit, cost
-- ARGV[3…] the limits, eight figures each: algorithm (1 token bucket, 2 leaky policer, 3 leaky shaper,
--          4 sliding window), units per token (window: ticks per sub-window), units per microsecond,
--          units when full, longest delay in microseconds, sub-windows, microseconds per tick, time to
--          live in milliseconds
-- Reply    now, then for each check: level and wait. A denied check's level comes as -1 - level.
--
-- The arithmetic is that of lib/algorithms, in whole numbers below 2^53, and agrees with it to the unit.
-- State is packed doubles: level, last, full (buckets), or newest, width in microseconds, counts (window).
-- Nothing is written for a call that is denied.

local injected, plan = ARGV[1], ARGV[2]
local TAKE, PEEK = 0, 1
local TOKEN_BUCKET, SHAPER, WINDOW = 1, 3, 4
local FIRST_LIMIT, LIMIT_SIZE = 3, 8
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min

local now = tonumber(injected)
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local limits = {}
local function limit_at(number)
  local limit = limits[number]
  if not limit then
    local at = FIRST_LIMIT + (number - 1) * LIMIT_SIZE
    limit = {
      algorithm = tonumber(ARGV[at]),
      per_token = tonumber(ARGV[at + 1]),
      per_micro = tonumber(ARGV[at + 2]),
      full = tonumber(ARGV[at + 3]),
      max_delay = tonumber(ARGV[at + 4]),
      windows = tonumber(ARGV[at + 5]),
      tick = tonumber(ARGV[at + 6]),
      ttl = ARGV[at + 7],
    }
    limits[number] = limit
  end
  return limit
end

-- Buckets -----------------------------------------------------------------------------------------

-- A limit of other figures keeps how full the bucket was, not the number of units.
local function read_bucket(limit, raw)
  if not raw or #raw ~= 24 then
    local empty = limit.algorithm == TOKEN_BUCKET and limit.full or 0
    return { level = empty, last = now }
  end
  local level, last, full = struct.unpack('<ddd', raw)
  if full ~= limit.full then level = floor(level / full * limit.full) end
  return { level = level, last = last }
end

local function write_bucket(limit, state)
  return struct.pack('<ddd', state.level, state.last, limit.full)
end

local function measure_tokens(limit, state, cost)
  local level = min(limit.full, state.level + max(0, now - state.last) * limit.per_micro)
  local left = level - cost * limit.per_token
  if left >= 0 then return true, left, 0 end
  return false, level, max(0, state.last - now) + ceil(-left / limit.per_micro)
end

local function measure_water(limit, state, cost)
  local behind = max(0, state.last - now)
  local water = max(0, state.level - max(0, now - state.last) * limit.per_micro)
  local filled = water + cost * limit.per_token
  local refusal, delay = 0, 0
  if filled > limit.full then refusal = behind + ceil((filled - limit.full) / limit.per_micro) end
  if limit.algorithm == SHAPER then
    delay = behind + ceil(water / limit.per_micro)
    refusal = max(refusal, delay - limit.max_delay)
  end
  if refusal == 0 then return true, limit.full - filled, delay end
  return false, limit.full - water, refusal
end

-- Both kinds are written as what is left or what has been poured in after `cost`, which may be negative.
local function commit_bucket(limit, state, cost)
  local elapsed = max(0, now - state.last) * limit.per_micro
  if limit.algorithm == TOKEN_BUCKET then
    state.level = min(limit.full, min(limit.full, state.level + elapsed) - cost * limit.per_token)
  else
    state.level = max(0, max(0, state.level - elapsed) + cost * limit.per_token)
  end
  state.last = max(state.last, now)
end

-- Sliding window ----------------------------------------------------------------------------------

local function window_format(windows)
  return '<' .. string.rep('d', windows + 3)
end

local function width_micros(limit)
  return limit.per_token * limit.tick
end

local function ticks_not_before(limit, state)
  return max(floor(now / limit.tick), state.newest * limit.per_token)
end

-- A window cut in another way keeps all its counts, as if they had just been taken.
local function read_window(limit, raw)
  local ring = limit.windows + 1
  local state = { newest = floor(floor(now / limit.tick) / limit.per_token), counts = {} }
  for i = 0, ring - 1 do state.counts[i] = 0 end
  if not raw or #raw < 32 or #raw % 8 ~= 0 then return state end
  local stored = #raw / 8 - 2
  local values = { struct.unpack(window_format(stored - 1), raw) }
  if stored == ring and values[2] == width_micros(limit) then
    state.newest = values[1]
    for i = 0, ring - 1 do state.counts[i] = values[i + 3] end
  else
    state.newest = floor(values[1] * values[2] / width_micros(limit))
    local total = 0
    for i = 3, stored + 2 do total = total + values[i] end
    state.counts[state.newest % ring] = total
  end
  return state
end

local function write_window(limit, state)
  local values = {}
  for i = 0, limit.windows do values[i + 1] = state.counts[i] end
  return struct.pack(window_format(limit.windows), state.newest, width_micros(limit), unpack(values))
end

local function count_of(limit, state, number)
  if number > state.newest or number < state.newest - limit.windows then return 0 end
  return state.counts[number % (limit.windows + 1)]
end

local function window_wait(limit, state, ticks, excess)
  local width = limit.per_token
  local current = floor(ticks / width)
  local wait, left = 0, width - (ticks - current * width)
  for number = current - limit.windows, current do
    local count = count_of(limit, state, number)
    if count * left >= excess then return wait + ceil(excess / count) end
    excess = excess - count * left
    wait = wait + left
    left = width
  end
  return wait
end

local function measure_window(limit, state, cost)
  local width = limit.per_token
  local ticks = ticks_not_before(limit, state)
  local current = floor(ticks / width)
  local whole = 0
  for number = current - limit.windows + 1, current do whole = whole + count_of(limit, state, number) end
  local oldest = count_of(limit, state, current - limit.windows)
  local used = whole * width + oldest * (width - (ticks - current * width))
  local left = limit.full - used - cost * width
  if left >= 0 then return true, left, 0 end
  local enough = ticks + window_wait(limit, state, ticks, -left)
  -- Time may have stepped back within a sub-window: then more counts than was ever admitted.
  return false, max(0, limit.full - used), enough * limit.tick - now
end

local function advance(limit, state)
  local ring = limit.windows + 1
  local current = floor(ticks_not_before(limit, state) / limit.per_token)
  for number = max(state.newest + 1, current - limit.windows), current do state.counts[number % ring] = 0 end
  state.newest = current
end

local function commit_window(limit, state, cost)
  local ring = limit.windows + 1
  advance(limit, state)
  if cost > 0 then
    local slot = state.newest % ring
    state.counts[slot] = state.counts[slot] + cost
    return
  end
  local owed = -cost
  for back = 0, limit.windows do
    local slot = (state.newest - back) % ring
    local given = min(owed, state.counts[slot])
    state.counts[slot] = state.counts[slot] - given
    owed = owed - given
  end
end

-- The batch ---------------------------------------------------------------------------------------

local stored = redis.call('MGET', unpack(KEYS))
local states, changed = {}, {}

local function state_of(key, limit)
  local state = states[key]
  if not state then
    local read = limit.algorithm == WINDOW and read_window or read_bucket
    state = read(limit, stored[key])
    states[key] = state
  end
  return state
end

local function measure(limit, state, cost)
  if limit.algorithm == WINDOW then return measure_window(limit, state, cost) end
  if limit.algorithm == TOKEN_BUCKET then return measure_tokens(limit, state, cost) end
  return measure_water(limit, state, cost)
end

local function commit(limit, state, key, cost)
  local apply = limit.algorithm == WINDOW and commit_window or commit_bucket
  apply(limit, state, cost)
  changed[key] = limit
end

local next_number = string.gmatch(plan, '%d+')
local function number() return tonumber(next_number()) end

local reply, size = { now }, 1
local keys, chosen, costs, befores = {}, {}, {}, {}

local function settle(kind, count)
  local granted = true
  local first = size
  for i = 1, count do
    local key, limit, cost = number(), limit_at(number()), number()
    local state = state_of(key, limit)
    if kind == TAKE or kind == PEEK then
      local allowed, level, wait = measure(limit, state, cost)
      granted = granted and allowed
      befores[i] = allowed and level + cost * limit.per_token or level
      reply[size + 1] = allowed and level or -1 - level
      reply[size + 2] = wait
    else
      if stored[key] or changed[key] then commit(limit, state, key, -cost) end
      reply[size + 1], reply[size + 2] = 0, 0
    end
    keys[i], chosen[i], costs[i] = key, limit, cost
    size = size + 2
  end
  if kind ~= TAKE then return end
  for i = 1, count do
    if granted then
      commit(chosen[i], states[keys[i]], keys[i], costs[i])
    elseif reply[first + 2 * i - 1] >= 0 then
      reply[first + 2 * i - 1] = befores[i] -- it would have been allowed, but nothing was taken
    end
  end
end

local kind = next_number()
while kind do
  settle(tonumber(kind), number())
  kind = next_number()
end

for key, limit in pairs(changed) do
  local write = limit.algorithm == WINDOW and write_window or write_bucket
  redis.call('SET', KEYS[key], write(limit, states[key]), 'PX', limit.ttl)
end

return reply
