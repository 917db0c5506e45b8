-- Settles a batch of takes, peeks, refunds and leases in one go; a take of several buckets is all or nothing.
--
-- KEYS     one per bucket, and for a debt when the bucket was reset (forget-bucket.lua)
-- ARGV[1]  now in microseconds, or '' for the server's clock (tests inject time, nodes never do)
-- ARGV[2]  the plan, a JSON array of whole numbers. A take of one bucket, which most are, is the number of
--          its key and the cost. Any other call is -1 - kind (0 take, 1 peek, 2 refund, 4 late refund),
--          the number of its checks, for a late refund the instant of the take, and then the same pair
--          for each of them; but for a debt -6, the number of the key of its reset, the age in
--          microseconds and the pair, and for a lease -4, the number of its key, the tokens wanted, a
--          generation, and the tokens used and returned of that one and of the one before it. The number
--          of the batch ends it
-- ARGV[3]  the number of each key's limit, a JSON array, or '' if there is only one limit
-- ARGV[4…] the limits, eight figures each: algorithm (1 token bucket, 2 leaky policer, 3 leaky shaper,
--          4 sliding window) plus ten times the revision of the configuration that the limit is from,
--          units per token, units per microsecond, units when full, longest delay in microseconds,
--          of a window its period and its sub-windows in microseconds, time to live in milliseconds
--          (twice as long as a bucket needs to recover)
-- Reply    now, and the level of each check, -1 - level if it is denied; then, for every check with a wait,
--          its number and the wait. A lease counts as three checks: level, tokens granted, generation.
--          If a bucket was of a later revision than its caller, the latest such revision, negative. The
--          number of the batch ends it
--
-- The arithmetic is that of lib/algorithms, in whole numbers below 2^53, and agrees with it to the unit.
-- A leaky bucket is kept as the room that is left in it; so it is the same arithmetic as a token bucket.
-- A level below zero is a debt: one bucket at most, told as a level of zero with the wait that it makes.
-- State is packed doubles: level, last, full, expiry (buckets), or newest, period, sub-window, expiry,
-- counts (window). Nothing is written for a call that is denied. A bucket of which tokens are leased has
-- five more: how many were granted in the generation of `last`, and in the one before, and are not yet
-- reported as used or returned; the units that one of either counts for, its weight; and how far the bucket's
-- time is ahead of a clock that has stepped back (lib/algorithms/leased-bucket.ts has the reasons).
-- A clock that has stepped back by up to a second is waited for. A larger step is the new base of every
-- bucket that is asked for: its level is kept, and the new base is written even if the call is denied.
-- A bucket of which a caller had a revision ends with its limit: revision, four figures, and a byte. It
-- keeps the latest limit that it has seen, and everybody is decided under that one.

local injected = ARGV[1]
local plan = cjson.decode(ARGV[2])
local limit_numbers = ARGV[3] ~= '' and cjson.decode(ARGV[3])
local TAKE, REFUND, LEASE, LATE_REFUND, DEBT = 0, 2, 3, 4, 5
local SHAPER, WINDOW = 3, 4
local FIRST_LIMIT, LIMIT_SIZE, REVISION_STEP = 4, 8, 10
local BUCKET_FORMAT, BUCKET_BYTES, LEASED_BYTES = '<dddd', 32, 72
local CLOCK_STEP_MICROS = 1000000
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min
local pack, unpack_struct = struct.pack, struct.unpack

local now = tonumber(injected)
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local limits = {}
for at = FIRST_LIMIT, #ARGV, LIMIT_SIZE do
  local algorithm, revision = tonumber(ARGV[at]), nil
  local period, sub_window = tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6])
  if algorithm > REVISION_STEP then
    revision = floor(algorithm / REVISION_STEP)
    algorithm = algorithm - revision * REVISION_STEP
  end
  limits[#limits + 1] = {
    algorithm = algorithm,
    revision = revision,
    per_token = tonumber(ARGV[at + 1]),
    per_micro = tonumber(ARGV[at + 2]),
    full = tonumber(ARGV[at + 3]),
    max_delay = tonumber(ARGV[at + 4]),
    period = period,
    sub_window = sub_window,
    windows = period > 0 and ceil(period / sub_window),
    ttl = ARGV[at + 7],
    ttl_micros = tonumber(ARGV[at + 7]) * 1000,
  }
end

-- By number of the key: the limit, when the stored state will expire, and the state itself. That of a
-- bucket is its level as of now, and how far its last change lies in the future (a clock stepped back).
local stored = redis.call('MGET', unpack(KEYS))
local limit_of, expiries, levels, behinds, windows = {}, {}, {}, {}, {}
local changed = {}

-- Leases ------------------------------------------------------------------------------------------

-- Buckets of which tokens are leased, by number of the key: how many by generation, their weights, and the
-- units that may lie in the bucket beside them. A script pays for every function and table that it makes, used or
-- not; so there is nothing here until a batch has such a bucket.
local leases

local function open_leases()
  local GENERATION_MICROS, COUNTERS_FORMAT, COUNTERS_AT = 1000000, '<ddddd', 33
  -- Leased tokens count for up to two generations, and only then can the bucket be full again.
  leases = { more_ttl_micros = 4 * GENERATION_MICROS }

  local function room_beside(limit, current, weight, previous, older_weight)
    return max(0, limit.full - (current * weight + previous * older_weight))
  end

  -- Tokens of a limit of other figures weigh no less, as a part of the bucket, than they did.
  local function weigh(limit, tokens, weight, full)
    if tokens == 0 then return limit.per_token end
    if full ~= limit.full then weight = ceil(weight / full * limit.full) end
    return max(limit.per_token, weight)
  end

  -- Each stretch between two generations is refilled under what was outstanding in it. Gives the level
  -- as of now; or, if nothing is outstanding any more, as of when that began, and that instant.
  function leases.refill(key, limit, level, last, raw, full)
    local current, previous, weight, older_weight, ahead = unpack_struct(COUNTERS_FORMAT, raw, COUNTERS_AT)
    weight = weigh(limit, current, weight, full)
    older_weight = weigh(limit, previous, older_weight, full)
    if last - now > CLOCK_STEP_MICROS then ahead, last = ahead + last - now, now end
    while current + previous > 0 do
      local room = room_beside(limit, current, weight, previous, older_weight)
      local boundary = (floor((last + ahead) / GENERATION_MICROS) + 1) * GENERATION_MICROS - ahead
      level = min(room, level + max(0, min(now, boundary) - last) * limit.per_micro)
      last = max(last, min(now, boundary))
      if last < boundary then
        leases[key] = {
          current = current,
          previous = previous,
          weight = weight,
          older_weight = older_weight,
          room = room,
          ahead = ahead,
        }
        return level, last
      end
      current, previous = 0, current
      weight, older_weight = limit.per_token, weight
    end
    if ahead > 0 then
      leases[key] = {
        current = 0,
        previous = 0,
        weight = limit.per_token,
        older_weight = limit.per_token,
        room = limit.full,
        ahead = ahead,
      }
    else
      -- Its state has become a shorter one, and is written anew.
      expiries[key] = nil
    end
    return level, last
  end

  -- Books what a node reports of a generation and of the one before it, then grants what it wants.
  -- Tokens that a counter does not hold are neither booked nor returned: nothing comes into being.
  function leases.settle(key, want, generation, used, returned, older_used, older_returned)
    local limit = limit_of[key]
    local lease = leases[key] or { current = 0, previous = 0, ahead = 0 }
    local current, previous, back = lease.current, lease.previous, 0
    local this = floor((now + behinds[key] + lease.ahead) / GENERATION_MICROS)
    if generation == this + 1 then used, returned = older_used, older_returned end
    if generation == this or generation == this + 1 then
      current = current - min(used, current)
      back = min(returned, current)
      current = current - back
      used, returned = older_used, older_returned
    end
    if generation == this or generation == this - 1 then
      previous = previous - min(used, previous)
      local older_back = min(returned, previous)
      previous = previous - older_back
      back = back + older_back
    end
    local weight = current > 0 and lease.weight or limit.per_token
    local older_weight = previous > 0 and lease.older_weight or limit.per_token
    local room = room_beside(limit, current, weight, previous, older_weight)
    local worth = leases.worth and leases.worth(key, back)
    -- A caller that does not know the limit gets no tokens ahead: so one that returns some had them of its own limit.
    if worth then want = 0 end
    local level = min(room, levels[key] + (worth or back * limit.per_token))
    local granted = max(0, min(want, floor(level / limit.per_token)))
    -- Tokens that weigh more than they take out of the bucket need room for the rest.
    if weight > limit.per_token then
      granted = min(granted, floor((room - level) / (weight - limit.per_token)))
    end
    if granted > 0 or current < lease.current or previous < lease.previous then
      local is_lent = current + granted + previous > 0 or lease.ahead > 0
      -- A state that changes its length is written anew.
      if not is_lent or not leases[key] then expiries[key] = nil end
      lease = {
        current = current + granted,
        previous = previous,
        weight = weight,
        older_weight = older_weight,
        room = room - granted * weight,
        ahead = lease.ahead,
      }
      leases[key] = is_lent and lease or nil
      levels[key], changed[key] = level - granted * limit.per_token, true
    end
    return max(0, levels[key]), granted, this
  end

  function leases.pack(key, limit)
    local lease, last = leases[key], now + behinds[key]
    local state = pack(BUCKET_FORMAT, levels[key], last, limit.full, expiries[key])
    local current, previous = lease.current, lease.previous
    return state .. pack(COUNTERS_FORMAT, current, previous, lease.weight, lease.older_weight, lease.ahead)
  end
end

-- Buckets -----------------------------------------------------------------------------------------

local function load_bucket(key, limit, raw)
  local level, last, behind = limit.full, now, 0
  if raw and #raw >= BUCKET_BYTES then
    local full
    level, last, full, expiries[key] = unpack_struct(BUCKET_FORMAT, raw)
    -- A limit of other figures keeps how full the bucket was, not the number of units.
    if full ~= limit.full then level = floor(level / full * limit.full) end
    local is_new_base = last - now > CLOCK_STEP_MICROS
    if #raw == LEASED_BYTES then
      if not leases then open_leases() end
      level, last = leases.refill(key, limit, level, last, raw, full)
    end
    if is_new_base then
      last, expiries[key], changed[key] = now, nil, true
    end
  end
  if now > last then
    level = level + (now - last) * limit.per_micro
    if level > limit.full then level = limit.full end
  else
    behind = last - now
  end
  levels[key], behinds[key] = level, behind
end

local function pack_bucket(key, limit)
  if leases and leases[key] then return leases.pack(key, limit) end
  return pack(BUCKET_FORMAT, levels[key], now + behinds[key], limit.full, expiries[key])
end

local function measure_bucket(key, limit, cost)
  local level, behind = levels[key], behinds[key]
  local left = level - cost * limit.per_token
  local refusal, delay = 0, 0
  if left < 0 then refusal = behind + ceil(-left / limit.per_micro) end
  if limit.algorithm == SHAPER then
    delay = behind + ceil((limit.full - level) / limit.per_micro)
    refusal = max(refusal, delay - limit.max_delay)
  end
  if refusal > 0 then return -1 - max(0, level), refusal end
  return left, delay
end

local function change_bucket(key, limit, cost)
  local room = leases and leases[key] and leases[key].room or limit.full
  levels[key] = min(room, levels[key] - cost * limit.per_token)
end

-- Sliding window ----------------------------------------------------------------------------------

local WINDOW_BYTES = 32

-- Every period is cut into the same sub-windows, which are numbered through.
local function number_at(limit, micros)
  return floor(micros / limit.period) * limit.windows + floor(micros % limit.period / limit.sub_window)
end

local function start_of(limit, number)
  return floor(number / limit.windows) * limit.period + number % limit.windows * limit.sub_window
end

local function pack_counts(limit, newest, expiry, counts)
  local format = '<dddd' .. string.rep('d', limit.windows)
  return pack(format, newest, limit.period, limit.sub_window, expiry, unpack(counts, 0, limit.windows - 1))
end

-- The window as of now: its counts by number modulo how many they are, and their sum. The newest sub-window
-- is that of now, or the one last used if the clock has stepped back a little. After a larger step the one
-- last used is that of now, and all others move with it.
local function read_window(limit, raw)
  local ring, newest = limit.windows, unpack_struct('<d', raw)
  local counts = { unpack_struct('<' .. string.rep('d', ring), raw, WINDOW_BYTES + 1) }
  local current, moved = number_at(limit, now), 0
  if current < newest then
    if start_of(limit, newest) - now > CLOCK_STEP_MICROS then
      moved = newest - current
    else
      current = newest
    end
  end
  local state, used = { newest = current, is_new_base = moved > 0 }, 0
  for number = current - ring + 1, current do
    local before = number + moved
    local count = before <= newest and counts[before % ring + 1] or 0
    state[number % ring] = count
    used = used + count
  end
  state.used = used
  return state
end

-- A window cut in another way keeps all its counts, as if they had just been taken.
local function cut_anew(limit, raw)
  local newest, period, sub_window = unpack_struct('<ddd', raw)
  local ring, total, counts = (#raw - WINDOW_BYTES) / 8, 0, {}
  for i = 1, ring do total = total + unpack_struct('<d', raw, WINDOW_BYTES + 8 * i - 7) end
  local begun = start_of({ period = period, sub_window = sub_window, windows = ring }, newest)
  local number = number_at(limit, begun)
  for i = 0, limit.windows - 1 do counts[i] = i == number % limit.windows and total or 0 end
  return pack_counts(limit, number, 0, counts)
end

local function load_window(key, limit, raw)
  local state
  if raw and #raw > WINDOW_BYTES then
    local period, sub_window, expiry = unpack_struct('<ddd', raw, 9)
    local is_cut_alike = period == limit.period and sub_window == limit.sub_window
    state = read_window(limit, is_cut_alike and raw or cut_anew(limit, raw))
    if is_cut_alike then expiries[key] = expiry end
    if state.is_new_base then expiries[key], changed[key] = nil, true end
  else
    state = { newest = number_at(limit, now), used = 0 }
    for i = 0, limit.windows - 1 do state[i] = 0 end
  end
  windows[key] = state
end

local function measure_window(key, limit, cost)
  local state, ring = windows[key], limit.windows
  local left = limit.full - state.used
  if left >= cost then return left - cost, 0 end
  -- The oldest is forgotten first, and all of it at the latest.
  local excess, number = cost - left, state.newest - ring
  while excess > 0 and number < state.newest do
    number = number + 1
    excess = excess - state[number % ring]
  end
  -- Of a limit that was lowered meanwhile more may have been used than it has.
  return -1 - max(0, left), start_of(limit, number + ring) - now
end

local function add_to_window(state, slot, tokens)
  state[slot] = state[slot] + tokens
  state.used = state.used + tokens
end

-- Of what is given back it is not known when it was taken, so the oldest sub-window comes first: it counts no
-- longer than the one that the tokens were taken in.
local function change_window(key, limit, cost)
  local state, ring = windows[key], limit.windows
  if cost > 0 then return add_to_window(state, state.newest % ring, cost) end
  for number = state.newest - ring + 1, state.newest do
    local given = min(-cost, state[number % ring])
    add_to_window(state, number % ring, -given)
    cost = cost + given
  end
end

-- Late answers ------------------------------------------------------------------------------------

-- The rest of a take that was not used, to be given back: the bucket has refilled since, and others may have used
-- that. Of a bucket with another limit than the caller's nobody knows how much it is.
local function refund_late(key, cost, taken)
  local limit = limit_of[key]
  if limit.algorithm == WINDOW then
    local state, ring, number = windows[key], limit.windows, number_at(limit, taken)
    local is_kept = number <= state.newest and number > state.newest - ring
    local given = is_kept and min(cost, state[number % ring]) or 0
    if given == 0 then return end
    add_to_window(state, number % ring, -given)
    changed[key] = true
    return
  end
  local elapsed = now + behinds[key] - taken
  local units = cost * limit.per_token - elapsed * limit.per_micro
  if elapsed < 0 or units <= 0 then return end
  local room = leases and leases[key] and leases[key].room or limit.full
  levels[key], changed[key] = min(room, levels[key] + units), true
end

-- Tokens that were used all the same: at most one bucket below empty, or one window above full.
local function owe(key, cost)
  local limit = limit_of[key]
  changed[key] = true
  if limit.algorithm == WINDOW then
    local state = windows[key]
    return add_to_window(state, state.newest % limit.windows, max(0, min(cost, 2 * limit.full - state.used)))
  end
  levels[key] = max(-limit.full, levels[key] - cost * limit.per_token)
  -- It takes twice as long as usual until the bucket has recovered, and only then may it expire.
  if levels[key] < 0 then expiries[key] = nil end
end

-- Revisions ---------------------------------------------------------------------------------------

-- The work when a caller and a bucket have different revisions, which is seldom. All that it
-- works on is handed over: a function that reaches for it would be dear to make, used or not.
local function open_revisions(batch)
  local EXACT, GENERATION_MICROS = 2 ^ 53 - 1, 1000000
  -- By number of the key: the limit of who asked, where the bucket has a later and another one.
  local callers = {}
  local revisions = { latest = 0 }

  -- The same part of another whole, never rounded up (lib/algorithms/limit-change.ts has the reasons).
  local function part_of(amount, from, to)
    if amount == from then return to end
    local a, b = to, from
    while b > 0 do a, b = b, a % b end
    local numerator, denominator = to / a, from / a
    local product = amount * numerator
    if product <= EXACT and product >= -EXACT then return math.floor(product / denominator) end
    return math.floor(amount / denominator * numerator) - 1
  end

  local function stored_limit(algorithm, raw, bytes)
    local revision, per_token, a, b, ttl = struct.unpack('<ddddd', raw, bytes + 1)
    local limit = { algorithm = algorithm, revision = revision, per_token = per_token }
    limit.ttl, limit.ttl_micros = string.format('%.0f', ttl), ttl * 1000
    if algorithm == batch.WINDOW then
      limit.full = a
      limit.period, limit.sub_window = struct.unpack('<dd', raw, 9)
      limit.windows = bytes / 8 - 4
    else
      limit.per_micro, limit.max_delay, limit.full = a, b, (struct.unpack('<d', raw, 17))
    end
    return limit
  end

  local function is_same(a, b)
    local is_alike = a.per_token == b.per_token and a.full == b.full and a.ttl_micros == b.ttl_micros
    if not is_alike or a.algorithm ~= batch.WINDOW then
      return is_alike and a.per_micro == b.per_micro and a.max_delay == b.max_delay
    end
    return a.period == b.period and a.sub_window == b.sub_window
  end

  -- A debt of a bucket stays one, but is never more than one bucket.
  local function carried_level(level, from_full, to_full)
    return math.max(level < 0 and -to_full or 0, part_of(level, from_full, to_full))
  end

  local function carried_weight(tokens, weight, from_full, to)
    if tokens == 0 then return to.per_token end
    return math.max(to.per_token, -part_of(-weight, from_full, to.full))
  end

  -- Settled under the limit that it had, and then as full as it was under the one that it gets.
  local function carried_bucket(raw, bytes, from, to)
    local level, last = struct.unpack('<dd', raw)
    local current, previous, weight, older_weight, ahead = 0, 0, from.per_token, from.per_token, 0
    if bytes == batch.LEASED_BYTES then
      current, previous, weight, older_weight, ahead = struct.unpack('<ddddd', raw, 33)
    end
    while batch.now > last do
      local is_lent = current + previous > 0
      local boundary = (math.floor((last + ahead) / GENERATION_MICROS) + 1) * GENERATION_MICROS - ahead
      local till = is_lent and math.min(boundary, batch.now) or batch.now
      local room = math.max(0, from.full - (current * weight + previous * older_weight))
      level, last = math.min(room, level + (till - last) * from.per_micro), till
      if is_lent and last == boundary then
        current, previous, weight, older_weight = 0, current, from.per_token, weight
      end
    end
    weight = carried_weight(current, weight, from.full, to)
    older_weight = carried_weight(previous, older_weight, from.full, to)
    local room = math.max(0, to.full - (current * weight + previous * older_weight))
    level = math.min(room, carried_level(level, from.full, to.full))
    local head = struct.pack('<dddd', level, last, to.full, 0)
    if current + previous == 0 and ahead == 0 then return head end
    return head .. struct.pack('<ddddd', current, previous, weight, older_weight, ahead)
  end

  -- A window that is cut alike has its sums from the newest sub-window back scaled and rounded up; one cut
  -- in another way has its used part as if it had just been taken.
  local function carried_window(raw, _, from, to)
    local before = batch.read_window(from, raw)
    local newest, ring, counts, sum, scaled = before.newest, to.windows, {}, 0, 0
    if from.period == to.period and from.sub_window == to.sub_window then
      for number = newest, newest - ring + 1, -1 do
        sum = sum + before[number % ring]
        local up_to = -part_of(-sum, from.full, to.full)
        counts[number % ring], scaled = up_to - scaled, up_to
      end
    else
      newest = batch.number_at(to, math.max(batch.now, batch.start_of(from, newest)))
      local left = part_of(math.max(0, from.full - before.used), from.full, to.full)
      for i = 0, ring - 1 do counts[i] = 0 end
      counts[newest % ring] = to.full - math.max(0, left)
    end
    return batch.pack_counts(to, newest, 0, counts)
  end

  -- The limit that holds for a bucket, the bucket under it, and whether that is to be written.
  function revisions.settle(key, caller, raw, bytes, revision)
    if revision == 0 then
      -- Too little is known of a limit without a revision to settle under it.
      if caller.algorithm == batch.WINDOW then return caller, raw, true end
      local level, last, full = struct.unpack('<ddd', raw)
      local head = struct.pack('<dddd', carried_level(level, full, caller.full), last, caller.full, 0)
      if bytes < batch.LEASED_BYTES then return caller, head, true end
      local current, previous, weight, older_weight, ahead = struct.unpack('<ddddd', raw, 33)
      weight = carried_weight(current, weight, full, caller)
      older_weight = carried_weight(previous, older_weight, full, caller)
      return caller, head .. struct.pack('<ddddd', current, previous, weight, older_weight, ahead), true
    end
    local limit = stored_limit(caller.algorithm, raw, bytes)
    if (caller.revision or 0) < revision then
      batch.limit_of[key] = limit
      if not is_same(caller, limit) then callers[key] = caller end
      revisions.latest = math.max(revisions.latest, revision)
      return limit, raw:sub(1, bytes), false
    end
    local carried = limit.algorithm == batch.WINDOW and carried_window or carried_bucket
    return caller, carried(raw, bytes, limit, caller), true
  end

  -- The worth of tokens that come back from a caller with an earlier limit: the same part of this one,
  -- but no more than they are, because the bucket may have been filled up beside them.
  function revisions.worth(key, tokens)
    local limit, caller = batch.limit_of[key], callers[key]
    if not caller then return nil end
    local part = part_of(tokens * caller.per_token, caller.full, limit.full)
    return math.min(tokens * limit.per_token, math.max(0, part))
  end

  function revisions.is_behind(key)
    return callers[key] ~= nil
  end

  -- Levels in the units of who asked: whole tokens, and no more than the caller's limit has.
  function revisions.tell(reply, at, key)
    local caller, level = callers[key], reply[at]
    if not caller then return end
    local is_denied = level < 0
    if is_denied then level = -1 - level end
    level = math.min(caller.full, math.floor(level / batch.limit_of[key].per_token) * caller.per_token)
    reply[at] = is_denied and -1 - level or level
  end

  function revisions.tell_all(reply, steps)
    local at, check = 1, 1
    while at < #steps do
      local head, second = steps[at], steps[at + 1]
      at = at + 2
      if head > 0 then
        check = check + 1
        revisions.tell(reply, check, head)
      elseif head == -1 - batch.LEASE then
        revisions.tell(reply, check + 1, second)
        at, check = at + 6, check + 3
      elseif head == -1 - batch.DEBT then
        at, check = at + 3, check + 1
      else
        if head == -1 - batch.LATE_REFUND then at = at + 1 end
        for i = at, at + 2 * second - 1, 2 do
          check = check + 1
          if head > -1 - batch.REFUND then revisions.tell(reply, check, steps[i]) end
        end
        at = at + 2 * second
      end
    end
  end

  return revisions
end

-- The batch ---------------------------------------------------------------------------------------

local revisions

for key = 1, #KEYS do
  local limit, raw = limits[limit_numbers and limit_numbers[key] or 1], stored[key]
  limit_of[key] = limit
  local is_new = false
  if raw and (limit.revision or #raw % 8 == 1) and #raw >= BUCKET_BYTES then
    local bytes = #raw % 8 == 1 and #raw - 41 or #raw
    local revision = bytes < #raw and unpack_struct('<d', raw, bytes + 1) or 0
    if revision == limit.revision then
      raw = raw:sub(1, bytes)
    else
      revisions = revisions or open_revisions({
        now = now,
        limit_of = limit_of,
        number_at = number_at,
        pack_counts = pack_counts,
        read_window = read_window,
        start_of = start_of,
        LEASED_BYTES = LEASED_BYTES,
        WINDOW = WINDOW,
        LEASE = LEASE,
        REFUND = REFUND,
        LATE_REFUND = LATE_REFUND,
        DEBT = DEBT,
      })
      limit, raw, is_new = revisions.settle(key, limit, raw, bytes, revision)
    end
  end
  if limit.algorithm == WINDOW then
    load_window(key, limit, raw)
  else
    load_bucket(key, limit, raw)
  end
  if is_new then expiries[key], changed[key] = nil, true end
end

local function measure(key, cost)
  local limit = limit_of[key]
  if limit.algorithm == WINDOW then return measure_window(key, limit, cost) end
  return measure_bucket(key, limit, cost)
end

local function change(key, cost)
  local limit = limit_of[key]
  if limit.algorithm == WINDOW then
    change_window(key, limit, cost)
  else
    change_bucket(key, limit, cost)
  end
  changed[key] = true
end

local reply, checks, waits = { now }, 0, {}

local function answer(level, wait)
  checks = checks + 1
  reply[checks + 1] = level
  if wait > 0 then
    waits[#waits + 1] = checks
    waits[#waits + 1] = wait
  end
end

-- All checks are measured before any is taken. One that would have passed, had another not been denied,
-- reports the level that it found.
local function take_all(at, count)
  local granted, first = true, checks
  for i = at, at + 2 * count - 1, 2 do
    local level, wait = measure(plan[i], plan[i + 1])
    granted = granted and level >= 0
    answer(level, wait)
  end
  for i = at, at + 2 * count - 1, 2 do
    local key, cost = plan[i], plan[i + 1]
    first = first + 1
    if granted then
      change(key, cost)
    elseif reply[first + 1] >= 0 then
      reply[first + 1] = reply[first + 1] + cost * limit_of[key].per_token
    end
  end
end

local function ask_each(kind, at, count, taken)
  for i = at, at + 2 * count - 1, 2 do
    local key, cost = plan[i], plan[i + 1]
    local is_known = stored[key] or changed[key]
    if kind < REFUND then
      answer(measure(key, cost))
    else
      if kind == REFUND then
        if is_known then change(key, -cost) end
      elseif is_known and not (revisions and revisions.is_behind(key)) then
        refund_late(key, cost, taken)
      end
      answer(0, 0)
    end
  end
end

local at, last = 1, #plan
while at < last do
  local head, second = plan[at], plan[at + 1]
  at = at + 2
  local limit = limit_of[head]
  if limit and limit.algorithm < SHAPER and levels[head] >= second * limit.per_token then
    -- The arithmetic of nearly every take, written out because it pays.
    local left = levels[head] - second * limit.per_token
    levels[head], changed[head] = left, true
    checks = checks + 1
    reply[checks + 1] = left
  elseif limit then
    local level, wait = measure(head, second)
    if level >= 0 then change(head, second) end
    answer(level, wait)
  else
    local kind = -1 - head
    if kind == LEASE then
      if not leases then open_leases() end
      leases.worth = revisions and revisions.worth
      local level, granted, generation = leases.settle(second, unpack(plan, at, at + 5))
      answer(level, 0)
      answer(granted, 0)
      answer(generation, 0)
      at = at + 6
    elseif kind == DEBT then
      -- A reset forgives what was used before it. One in the future is of a clock that has stepped back since.
      local reset = tonumber(stored[second])
      if not reset or reset > now or reset <= now - plan[at] then owe(plan[at + 1], plan[at + 2]) end
      answer(0, 0)
      at = at + 3
    else
      local taken = kind == LATE_REFUND and plan[at]
      if taken then at = at + 1 end
      if kind == TAKE then take_all(at, second) else ask_each(kind, at, second, taken) end
      at = at + 2 * second
    end
  end
end

-- While a bucket would recover well before it expires, it is overwritten in place, which costs half.
for key = 1, #KEYS do
  if changed[key] then
    local limit, expiry = limit_of[key], expiries[key]
    local is_leased = leases and leases[key]
    local ttl_micros = limit.ttl_micros
    if is_leased then ttl_micros = ttl_micros + leases.more_ttl_micros end
    local in_place = expiry and stored[key] and expiry - now >= ttl_micros / 2
    if not in_place then expiries[key] = now + ttl_micros end
    local window = windows[key]
    local state = window and pack_counts(limit, window.newest, expiries[key], window) or pack_bucket(key, limit)
    if in_place then
      redis.call('SETRANGE', KEYS[key], '0', state)
    else
      if limit.revision then
        local figure, other = limit.per_micro, limit.max_delay
        if limit.algorithm == WINDOW then figure, other = limit.full, 0 end
        local ttl_ms = limit.ttl_micros / 1000
        state = state .. pack('<dddddB', limit.revision, limit.per_token, figure, other, ttl_ms, 0)
      end
      local ttl = is_leased and string.format('%.0f', ttl_micros / 1000) or limit.ttl
      redis.call('SET', KEYS[key], state, 'PX', ttl)
    end
  end
end

local latest = revisions and revisions.latest or 0
if latest > 0 then revisions.tell_all(reply, plan) end
for i = 1, #waits do reply[checks + 1 + i] = waits[i] end
if latest > 0 then reply[#reply + 1] = -latest end
reply[#reply + 1] = plan[last]
return reply
