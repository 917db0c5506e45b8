-- Settles one call of a node with the cluster's ledger: report, give-back and request of all its apps.
--
-- KEYS[1]  the ledger, a hash: state, limits, shares, run_id; a field per app; a field per lease
-- KEYS[2]  the deadlines of the leases, a sorted set
-- KEYS[3]  the limits, a hash that seed-limits.lua writes
-- KEYS[4]  what was consumed, a hash: cost and count by app, and by app and method
-- ARGV[1]  the name of the lease: incarnation, a colon, node
-- ARGV[2]  the call, packed doubles: digest of the apps that the node has numbers for, seq (counted from a number
--          that no other incarnation has, so that the reply to one call cannot pass for that to another), seen
--          epoch, seen sequence, 1 if it is leaving; then per app its number, tokens used, returned, demand per
--          second, wanted, how many groups of needs, tokens refunded, tokens granted too late and when they were
--          taken, tokens owed, and cost and count of each group. All of them whole numbers
-- ARGV[3]  now in microseconds, or '' for the server's clock (tests inject time, nodes never do)
-- ARGV[4…] fields of what was consumed, each with what is added to it. It is only counted, nothing is taken for it
-- Reply    packed doubles: seq, epoch, sequence, now, 1 if overloaded, nodes, lease cap, revision of the limits,
--          microseconds that a lease lasts, how many apps have numbers; then per app its number, tokens granted,
--          shortage (0 none, 1 app, 2 cluster), microseconds to retry after, tokens remaining, nodes, tokens per
--          second beyond the guarantee during overload, how many groups of needs, and how many were granted of each.
--          Or one of the errors NOT_CONFIGURED (there are no limits) and OTHER_APPS (they have other numbers)
--
-- The arithmetic is that of lib/algorithms/quota, in whole numbers below 2^53, and agrees with it to the unit.
--
-- The costs here are bytes that go through Lua, commands and functions, in this order. So a call reads and writes
-- the fields that it needs and no others. Time flows into the cluster and into every app's stock with each call;
-- the rest of an app is brought up to date only when something touches it, which comes to the same because
-- nothing but time has changed it since. And once per tick everything is touched, the server is looked at and
-- the limits are copied into the ledger if they are new. A call that was settled before gets the same bytes
-- again, and nothing is written for it.
--
-- Instants are those of the server's clock and an offset, which grows when that clock steps back by more than a
-- second: so the instants of the ledger, and those that nodes have heard, never run backwards, and tokens flow at once.
--
-- Apps go by number. A number never changes hands: apps are added at the end, and one that is gone keeps its place
-- with limits that grant nothing. Where the list of names has begun anew the digests tell, and so does the ledger.

local ledger_key, deadlines_key, limits_key, consumed_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local name, packed_call, injected = ARGV[1], ARGV[2], ARGV[3]
local UNITS_PER_TOKEN, MICROS_PER_MS, TICK_MS, TICK_MICROS, CLOCK_STEP_MICROS = 1000000, 1000, 100, 100000, 1000000
local NO_SHORTAGE, SHORT_OF_APP, SHORT_OF_CLUSTER = 0, 1, 2
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min
local pack, unpack_struct = struct.pack, struct.unpack
local char, rep, sub = string.char, string.rep, string.sub
local redis_call = redis.call

-- The call --------------------------------------------------------------------------------------------------

local CALL_SIZE, ENTRY_SIZE = 5, 10
local ANSWER, SHORTAGE, MISSING = 1, 2, 3
local call_size = #packed_call / 8
-- Lua returns no more than some 8,000 values at once, which the apps of a large call may exceed.
local MOST_VALUES = 4000
local call = { unpack_struct('<' .. rep('d', min(call_size, MOST_VALUES)), packed_call) }
for at = MOST_VALUES, call_size - 1, MOST_VALUES do
  local part = { unpack_struct('<' .. rep('d', min(call_size - at, MOST_VALUES)), packed_call, 8 * at + 1) }
  for i = 1, #part do call[at + i] = part[i] end
end
local numbering, seq, seen_epoch, seen_sequence, is_leaving = call[1], call[2], call[3], call[4], call[5] == 1

-- Where the entry of each app lies in the call. From here on the first app is number 1.
local entries, entry_count, has_needs, last_app = {}, 0, false, 0
local fields, field_count = { 'state', 'limits', name }, 3
local next_entry = CALL_SIZE + 1
while next_entry <= call_size do
  local app, groups = call[next_entry] + 1, call[next_entry + 5]
  call[next_entry] = app
  if groups > 0 then has_needs = true end
  if app > last_app then last_app = app end
  entry_count = entry_count + 1
  entries[entry_count] = next_entry
  fields[field_count + entry_count] = app < 256 and char(app) or tostring(app)
  next_entry = next_entry + ENTRY_SIZE + 2 * groups
end

local now = tonumber(injected)
if not now then
  local time = redis_call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- The ledger ------------------------------------------------------------------------------------------------

-- The figures of the cluster; then all stocks: that of an app is state[STOCK + number].
local STATE_SIZE, STOCK = 13, 13
-- Limits: the figures of the cluster; limits[RATE + number] and, the depth of stock, limits[stock_depth + number].
local LIMITS_SIZE, RATE = 11, 11
-- An app: figures that change, and limits.
local APP_FORMAT, APP_SIZE, APP_LIMITS_BYTES = '<dddddddddddddddd', 16, 56
local CREDIT, CREDIT_SINCE, ROOM, OUTSTANDING, DEMAND, NODES, AS_OF, GRANTED, USED = 1, 2, 3, 4, 5, 6, 7, 8, 9
local BURST, WEIGHT, ELASTIC, CREDIT_DEPTH, CREDIT_MICROS, CEILING_DEPTH, RESERVED = 10, 11, 12, 13, 14, 15, 16
-- A lease: seq, deadline, how many apps; what is held of each, by the bucket that it came from; the last reply.
local LEASE_FORMAT, LEASE_BYTES, HELD_FORMAT, HELD_BYTES, HELD_SIZE = '<ddd', 24, '<ddddd', 40, 5
local FROM_STOCK, FROM_CREDIT, LENT, ASKED = 2, 3, 4, 5

local found = redis_call('HMGET', ledger_key, unpack(fields))
local packed_state, packed_limits, stored = found[1], found[2], found[3]
local apps = packed_state and #packed_state / 8 - STATE_SIZE or 0
local limits, stock_depth
local state, last, level, outstanding, epoch, sequence, learning_until, is_overloaded, tick, demand, nodes
-- No lease is overdue before the first of these; the server was looked at then.
local next_deadline, looked_at
-- The ledger's instants less those of the server's clock.
local offset = 0
local is_new, is_after_loss, is_due = not packed_state, not packed_state and seen_epoch > 0, true

if packed_state and #packed_limits == 8 * (LIMITS_SIZE + 2 * apps) then
  state = { unpack_struct('<' .. rep('d', STATE_SIZE + apps), packed_state) }
  limits = { unpack_struct('<' .. rep('d', LIMITS_SIZE + 2 * apps), packed_limits) }
  stock_depth = RATE + apps
  last, level, outstanding, epoch, sequence, learning_until, is_overloaded, tick, demand, nodes,
    next_deadline, looked_at, offset = unpack(state, 1, STATE_SIZE)
  is_overloaded = is_overloaded == 1
  is_after_loss = seen_epoch == epoch and seen_sequence > sequence or seen_epoch > epoch
  local behind = last - (now + offset)
  if behind > CLOCK_STEP_MICROS then offset = offset + behind end
  now = now + offset
  -- A clock that is behind may be that of another server, which is one more reason to look.
  is_due = is_after_loss or now - looked_at >= TICK_MICROS or behind > TICK_MICROS or limits[2] ~= numbering
    or last_app > apps
elseif packed_state then
  -- Figures in another order than this one: what they are cannot be told, and only the epochs go on.
  epoch = unpack_struct('<d', packed_state, 25)
  is_after_loss = true
end

local run_id, new_limits, new_apps, has_changed
if is_due then
  local record = redis_call('HMGET', limits_key, 'packed', 'digests')
  new_limits = record[1]
  if not new_limits then return redis.error_reply('NOT_CONFIGURED the cluster has no limits yet') end
  new_apps = #record[2] / 8
  -- Both the node and the ledger may have heard of fewer apps, if those come first in the list.
  local digests = { unpack_struct('<' .. rep('d', new_apps), record[2]) }
  local is_known = false
  for app = 1, new_apps do is_known = is_known or digests[app] == numbering and last_app <= app end
  if not is_known then return redis.error_reply('OTHER_APPS the apps have other numbers than the node knows of') end
  local info = redis.pcall('INFO', 'server')
  run_id = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
  is_after_loss = is_after_loss or packed_state and (redis_call('HGET', ledger_key, 'run_id') ~= run_id
    -- The deadlines are a key of their own, and may be evicted alone.
    or redis_call('ZCARD', deadlines_key) ~= nodes
    -- Limits of other apps: whose the tokens are cannot be told any more.
    or limits[2] ~= digests[apps])
  is_new = is_new or is_after_loss
  -- Tokens that flowed in so far came under the limits of the ledger; new ones hold from here on.
  if is_new then
    apps = new_apps
    stock_depth = RATE + apps
    packed_limits = sub(new_limits, 1, 8 * (LIMITS_SIZE + 2 * apps))
    limits = { unpack_struct('<' .. rep('d', LIMITS_SIZE + 2 * apps), packed_limits) }
  elseif limits[1] ~= unpack_struct('<d', new_limits) or apps ~= new_apps then
    has_changed = true
  end
end

if not is_new and now < last then now = last end
if is_due then looked_at = now end

local revision, _, capacity, depth, learning_depth, max_cost, lease_ttl, pace, reserve_target, lease_budget, state_ttl =
  unpack(limits, 1, LIMITS_SIZE)

if is_new then
  stored = false
  last, outstanding, epoch, sequence = now, 0, max(epoch or 0, seen_epoch) + 1, 0
  level = is_after_loss and 0 or depth
  learning_until = is_after_loss and now + lease_ttl or 0
  is_overloaded, tick, demand, nodes = false, now, 0, 0
  next_deadline = now + lease_ttl
  state = {}
  for app = 1, apps do state[STOCK + app] = is_after_loss and 0 or limits[stock_depth + app] end
end

local was_stored = stored
local lease_seq, deadline, held_count
if stored then
  lease_seq, deadline, held_count = unpack_struct(LEASE_FORMAT, stored)
  if seq <= lease_seq then return sub(stored, LEASE_BYTES + HELD_BYTES * held_count + 1) end
end

-- Refill ----------------------------------------------------------------------------------------------------

local elapsed, all_stock = now - last, 0
if capacity > 0 then
  local most = (now < learning_until and learning_depth or depth) - outstanding
  level = min(level + capacity * elapsed, max(0, most))
else
  level = math.huge
end
for app = 1, apps do
  local stock, most = state[STOCK + app] + limits[RATE + app] * elapsed, limits[stock_depth + app]
  if stock > most then stock = most end
  state[STOCK + app] = stock
  -- A debt of an app makes no other app richer.
  if stock > 0 then all_stock = all_stock + stock end
end

-- Puts units into the stock of an app, or takes them out.
local function add_stock(app, units)
  local stock = state[STOCK + app]
  local sum = max(0 - limits[stock_depth + app], min(limits[stock_depth + app], stock + units))
  state[STOCK + app] = sum
  all_stock = all_stock + (max(0, sum) - max(0, stock))
end

-- The depth of an app's part of an overloaded cluster, in milliseconds of its rate: more where the cluster is so
-- deep that leases last longer.
local function share_span()
  return max(2 * TICK_MS, min(4 * TICK_MS, floor(depth / max(1, capacity) / MICROS_PER_MS)))
end
local share_ms = share_span()

-- During overload: the share of an app is shares[number], its rate in units per millisecond shares[apps + number].
local shares
if is_overloaded then
  shares = { unpack_struct('<' .. rep('d', 2 * apps), redis_call('HGET', ledger_key, 'shares')) }
  for app = 1, apps do
    local rate = shares[apps + app]
    local share, most = shares[app] + floor(rate * elapsed / MICROS_PER_MS), share_ms * rate
    if most < max_cost then most = max_cost end
    if share > most then share = most end
    shares[app] = share
  end
end

-- The end of leases. A lease that was renewed keeps its place among the deadlines until that has passed, and only
-- then moves on. At most so many end per call, so that the loss of a whole fleet does not block the server.
local MOST_EXPIRIES = 64
local new_deadline = now + lease_ttl
local is_overdue = stored and deadline <= now
local over, ended, moved
if not is_new and next_deadline <= now then
  local due = redis_call('ZRANGE', deadlines_key, 0, MOST_EXPIRIES, 'WITHSCORES')
  over, ended, moved = {}, {}, {}
  next_deadline = new_deadline
  for i = 1, #due, 2 do
    local other, place = due[i], tonumber(due[i + 1])
    if place <= now and i < 2 * MOST_EXPIRIES then
      local lease = other ~= name and redis_call('HGET', ledger_key, other)
      place = lease and unpack_struct('<d', lease, 9) or new_deadline
      if place <= now then
        over[#over + 1] = lease
        ended[#ended + 1] = other
      else
        moved[#moved + 1] = place
        moved[#moved + 1] = other
      end
    end
    if place > now or i > 2 * MOST_EXPIRIES then next_deadline = min(next_deadline, place) end
  end
end
if new_deadline < next_deadline then next_deadline = new_deadline end

-- The apps that something will touch, by number, and the list of them: those of the call, or all.
local is_tick = capacity > 0 and now - tick >= TICK_MICROS
local is_anyone_over = is_overdue or over and #over > 0
local touched, touch_list, touch_count = {}, fields, entry_count
local touches_all = is_due or is_tick or is_anyone_over or is_leaving
if touches_all then
  field_count, touch_list, touch_count = 0, {}, apps
  for app = 1, apps do touch_list[app] = app < 256 and char(app) or tostring(app) end
  if not is_new and apps > 0 then found = redis_call('HMGET', ledger_key, unpack(touch_list)) end
end
for i = 1, touch_count do
  local app = touches_all and i or call[entries[i]]
  if not touched[app] then
    local own
    if is_new then
      own = { 0, now, 0, 0, 0, 0, now, 0, 0 }
    else
      own = { unpack_struct(APP_FORMAT, found[field_count + i]) }
    end
    if is_new then
      own[BURST], own[WEIGHT], own[ELASTIC], own[CREDIT_DEPTH], own[CREDIT_MICROS], own[CEILING_DEPTH], own[RESERVED] =
        unpack_struct('<ddddddd', new_limits, #packed_limits + APP_LIMITS_BYTES * (i - 1) + 1)
      if not is_after_loss then own[CREDIT], own[CREDIT_SINCE], own[ROOM] = own[CREDIT_DEPTH], 0, own[CEILING_DEPTH] end
    else
      local since, most = now - own[AS_OF], own[CEILING_DEPTH] - own[OUTSTANDING]
      local room = own[ROOM] + own[BURST] * since
      if most < 0 then most = 0 end
      if room > most then room = most end
      own[ROOM], own[AS_OF] = room, now
      local credit_since = own[CREDIT_SINCE]
      if credit_since > 0 and now - credit_since >= own[CREDIT_MICROS] then
        own[CREDIT], own[CREDIT_SINCE] = own[CREDIT_DEPTH], 0
      end
    end
    touched[app] = own
  end
end

-- New limits: every bucket stays as full as it was, beside what is leased out of it ---------------------------

if has_changed then
  -- Products are beyond 2^53, so a full bucket or a full debt may come out a unit beyond its depth.
  local function scaled(filled, from, to) return from == 0 and 0 or max(0 - to, min(to, floor(filled * to / from))) end
  local old, old_depth, old_apps, old_stock_depth = limits, depth, apps, stock_depth
  apps = new_apps
  stock_depth = RATE + apps
  packed_limits = sub(new_limits, 1, 8 * (LIMITS_SIZE + 2 * apps))
  limits = { unpack_struct('<' .. rep('d', LIMITS_SIZE + 2 * apps), packed_limits) }
  local was_capped = capacity > 0
  revision, _, capacity, depth, learning_depth, max_cost, lease_ttl, pace, reserve_target, lease_budget, state_ttl =
    unpack(limits, 1, LIMITS_SIZE)
  share_ms = share_span()
  -- Without a capacity nothing is above it; and one that is new is held against the demand at once.
  is_overloaded = is_overloaded and capacity > 0
  is_tick = capacity > 0 and now - tick >= TICK_MICROS
  new_deadline = now + lease_ttl
  next_deadline = min(next_deadline, new_deadline)
  -- The caller's own place may have been chosen under the old limits; one that is too early does no harm.
  for i = 1, moved and #moved or 0, 2 do moved[i] = min(moved[i], new_deadline) end
  local most = (now < learning_until and learning_depth or depth) - outstanding
  level = min(max(0, most), scaled(was_capped and level or 0, old_depth, depth))
  if capacity == 0 then level = math.huge end
  -- The rates of the shares come after the shares of all apps, so they move.
  for app = shares and old_apps or 0, 1, -1 do shares[apps + app] = shares[old_apps + app] end
  all_stock = 0
  for app = 1, apps do
    local is_added, own = app > old_apps, touched[app] or { 0, 0, 0, 0, 0, 0, now, 0, 0 }
    local was_credit, was_ceiling = own[CREDIT_DEPTH], own[CEILING_DEPTH]
    own[BURST], own[WEIGHT], own[ELASTIC], own[CREDIT_DEPTH], own[CREDIT_MICROS], own[CEILING_DEPTH], own[RESERVED] =
      unpack_struct('<ddddddd', new_limits, #packed_limits + APP_LIMITS_BYTES * (app - 1) + 1)
    if is_added then
      -- As with a new cluster: full, but not after a loss.
      local is_full = now >= learning_until
      touched[app] = own
      touch_list[app] = app < 256 and char(app) or tostring(app)
      if shares then shares[app], shares[apps + app] = 0, 0 end
      state[STOCK + app] = is_full and limits[stock_depth + app] or 0
      own[CREDIT], own[CREDIT_SINCE], own[ROOM] =
        is_full and own[CREDIT_DEPTH] or 0, is_full and 0 or now, is_full and own[CEILING_DEPTH] or 0
    else
      state[STOCK + app] = scaled(state[STOCK + app], old[old_stock_depth + app], limits[stock_depth + app])
      own[ROOM] = min(max(0, own[CEILING_DEPTH] - own[OUTSTANDING]), scaled(own[ROOM], was_ceiling, own[CEILING_DEPTH]))
      own[CREDIT] = scaled(own[CREDIT], was_credit, own[CREDIT_DEPTH])
    end
    all_stock = all_stock + max(0, state[STOCK + app])
    -- Credit that there was none of before has yet to be earned.
    if own[CREDIT] < own[CREDIT_DEPTH] and own[CREDIT_SINCE] == 0 then own[CREDIT_SINCE] = now end
    if own[CREDIT_SINCE] > 0 and now - own[CREDIT_SINCE] >= own[CREDIT_MICROS] then
      own[CREDIT], own[CREDIT_SINCE] = own[CREDIT_DEPTH], 0
    end
    if shares then shares[app] = min(shares[app], max(share_ms * shares[apps + app], max_cost)) end
  end
  touch_count = apps
end

-- Expiries: what was leased and neither used nor returned in time is destroyed, for it may have been used ----

local end_lease
if is_anyone_over or is_leaving then
  end_lease = function(lease)
    local _, _, count = unpack_struct(LEASE_FORMAT, lease)
    for at = LEASE_BYTES + 1, LEASE_BYTES + HELD_BYTES * count, HELD_BYTES do
      local app, from_stock, from_credit, lent, asked = unpack_struct(HELD_FORMAT, lease, at)
      local own, total = touched[app], from_stock + from_credit + lent
      own[OUTSTANDING] = own[OUTSTANDING] - total
      own[DEMAND] = own[DEMAND] - asked
      own[NODES] = own[NODES] - 1
      outstanding = outstanding - total
      demand = demand - asked
    end
    nodes = nodes - 1
  end
end
if is_overdue then
  end_lease(stored)
  stored = false
end
if over then
  for i = 1, #over do end_lease(over[i]) end
end

-- Reports and give-backs ------------------------------------------------------------------------------------

-- Tokens of the node: of an app after held[held_at[number]], in the order of the lease. And of all apps together.
local held
local held_size, held_at, holding, own_demand = 0, {}, 0, 0
local had_nodes = nodes
if stored then
  held_size = HELD_SIZE * held_count
  held = { unpack_struct('<' .. rep('d', held_size), stored, LEASE_BYTES + 1) }
  for part = 0, held_size - 1, HELD_SIZE do
    held_at[held[part + 1]] = part
    holding = holding + held[part + FROM_STOCK] + held[part + FROM_CREDIT] + held[part + LENT]
    own_demand = own_demand + held[part + ASKED]
  end
else
  held = {}
  nodes = nodes + 1
end

for i = 1, entry_count do
  local at = entries[i]
  local app = call[at]
  local own, part = touched[app], held_at[app]
  if not part then
    part = held_size
    held_size = held_size + HELD_SIZE
    held_at[app] = part
    held[part + 1], held[part + FROM_STOCK], held[part + FROM_CREDIT], held[part + LENT], held[part + ASKED] =
      app, 0, 0, 0, 0
    own[NODES] = own[NODES] + 1
  end
  local asked = call[at + 3]
  local more = asked - held[part + ASKED]
  if more ~= 0 then
    held[part + ASKED] = asked
    own_demand, own[DEMAND], demand = own_demand + more, own[DEMAND] + more, demand + more
  end

  -- Used: the guaranteed ones first. What the node does not hold is ignored.
  local units = call[at + 1] * UNITS_PER_TOKEN
  if units > 0 then
    local left = units
    for bucket = part + FROM_STOCK, part + LENT do
      local there = held[bucket]
      local taken = there < left and there or left
      held[bucket], left = there - taken, left - taken
    end
    local total = units - left
    holding = holding - total
    own[OUTSTANDING] = own[OUTSTANDING] - total
    own[USED] = own[USED] + total / UNITS_PER_TOKEN
    outstanding = outstanding - total
  end

  -- Given back: into the very buckets that they came from, the last lent first.
  units = call[at + 2] * UNITS_PER_TOKEN
  if units > 0 then
    local lent = min(units, held[part + LENT])
    local from_credit = min(units - lent, held[part + FROM_CREDIT])
    local from_stock = min(units - lent - from_credit, held[part + FROM_STOCK])
    local total = lent + from_credit + from_stock
    held[part + LENT] = held[part + LENT] - lent
    held[part + FROM_CREDIT] = held[part + FROM_CREDIT] - from_credit
    held[part + FROM_STOCK] = held[part + FROM_STOCK] - from_stock
    holding = holding - total
    own[OUTSTANDING] = own[OUTSTANDING] - total
    -- There is room for it, unless the limits became lower since.
    own[ROOM] = max(own[ROOM], min(own[ROOM] + total, own[CEILING_DEPTH] - own[OUTSTANDING]))
    own[GRANTED] = max(0, own[GRANTED] - total / UNITS_PER_TOKEN)
    own[CREDIT] = min(own[CREDIT_DEPTH], own[CREDIT] + from_credit)
    if is_overloaded then shares[app] = shares[app] + lent + from_credit end
    outstanding = outstanding - total
    if capacity > 0 then level = max(level, min(level + total, depth - outstanding)) end
    add_stock(app, from_stock)
  end
  -- Refunded, or granted too late: where it came from is not known any more, so it goes to what the app is sure of;
  -- above no depth. What was taken and never used comes back less what has flowed in since.
  for figure = 6, 7 do
    local tokens = call[at + figure]
    if tokens > 0 then
      local since = figure == 7 and max(0, now - call[at + 8]) or 0
      units = tokens * UNITS_PER_TOKEN
      own[ROOM] = max(own[ROOM],
        min(own[ROOM] + max(0, units - own[BURST] * since), own[CEILING_DEPTH] - own[OUTSTANDING]))
      own[USED], own[GRANTED] = max(0, own[USED] - tokens), max(0, own[GRANTED] - tokens)
      local most = (now < learning_until and learning_depth or depth) - outstanding
      level = max(level, min(level + max(0, units - capacity * since), most))
      add_stock(app, max(0, units - limits[RATE + app] * since))
    end
  end
  -- Owed: used without a grant. No bucket owes more than it holds.
  local owed = call[at + 9]
  if owed > 0 then
    units = owed * UNITS_PER_TOKEN
    own[ROOM] = max(own[ROOM] - units, 0 - own[CEILING_DEPTH])
    own[USED] = own[USED] + owed
    if capacity > 0 then level = max(level - units, 0 - depth) end
    add_stock(app, 0 - units)
  end
  -- The part of the entry that has been read makes room for the answer to it.
  call[at + ANSWER], call[at + SHORTAGE] = '', NO_SHORTAGE
end

-- Overload: once per tick, is there any, and if so, what is everybody's share of the capacity? ---------------

if is_tick then
  local OVERLOAD_BEGINS, OVERLOAD_ENDS = 0.9, 0.85
  tick = now
  local was_overloaded = is_overloaded
  is_overloaded = demand > OVERLOAD_BEGINS * capacity
  if was_overloaded then is_overloaded = demand >= OVERLOAD_ENDS * capacity end
  if is_overloaded then
    -- Weighted water-filling, see lib/algorithms/quota/weighted-share.ts.
    local parts, sum = {}, 0
    for app = 1, apps do
      parts[app] = min(touched[app][DEMAND], limits[RATE + app])
      sum = sum + parts[app]
    end
    local left, weights, rooms, need, short, short_count = capacity - sum, 0, {}, {}, {}, 0
    for app = 1, apps do
      local own = touched[app]
      rooms[app] = min(own[DEMAND], own[BURST]) - parts[app]
      if rooms[app] > 0 then
        need[app] = rooms[app] / own[WEIGHT]
        weights = weights + own[WEIGHT]
        short_count = short_count + 1
        short[short_count] = app
      end
    end
    table.sort(short, function(a, b) return need[a] < need[b] or need[a] == need[b] and a < b end)
    for i = 1, short_count do
      if left <= 0 then break end
      local app = short[i]
      local weight = touched[app][WEIGHT]
      local given = min(rooms[app], left * weight / weights)
      parts[app] = parts[app] + given
      left = left - given
      weights = weights - weight
    end
    shares = shares or {}
    for app = 1, apps do
      local rate = floor((parts[app] - min(touched[app][DEMAND], limits[RATE + app])) * MICROS_PER_MS)
      -- Full at first: demand that just moved to another node is no reason to cut anybody's lease.
      local most = max(share_ms * rate, max_cost)
      shares[app], shares[apps + app] = was_overloaded and min(shares[app], most) or most, rate
    end
  end
end

-- Grants ----------------------------------------------------------------------------------------------------

sequence = sequence + 1
local half_budget = floor(lease_budget / 2)
local bucket_depth = now < learning_until and learning_depth or depth
-- Rounded up, or many nodes that hold a token or two each would be kept from a part of the capacity.
local even = ceil(half_budget / nodes)
local node_part = even
if own_demand > 0 then
  local by_demand = ceil(half_budget * own_demand / demand)
  node_part = max(by_demand, min(even, 2 * by_demand))
end
local lease_cap = min(half_budget, max(reserve_target, node_part))

-- A node may hold so much and no more, and so may all of them; not getting what is beyond is no shortage.
local free = lease_cap - ceil(holding / UNITS_PER_TOKEN)
if capacity > 0 then free = min(free, half_budget - ceil(outstanding / UNITS_PER_TOKEN)) end

-- Higher priorities come first, then those that were named first. There are few priorities: one pass for each.
local order = entries
if entry_count > 1 then
  local ordered, weight = 0, math.huge
  order = {}
  while ordered < entry_count do
    local next_weight = 0
    for i = 1, entry_count do
      local entry = entries[i]
      local this = touched[call[entry]][WEIGHT]
      if this == weight then
        ordered = ordered + 1
        order[ordered] = entry
      elseif this < weight and this > next_weight then
        next_weight = this
      end
    end
    weight = next_weight
  end
end

-- Requests that wait come before stock for those that may come, which is granted like requests of one token.
local NEEDS, WANTS = 1, 2
for phase = has_needs and NEEDS or WANTS, WANTS do
  for turn = 1, entry_count do
    local at = order[turn]
    local app = call[at]
    local own, answer, tokens = touched[app], call[at + ANSWER], 0
    for group = 1, phase == WANTS and 1 or call[at + 5] do
      local cost, count, ahead = 1, call[at + 4], 0
      if phase == NEEDS then
        cost, count = call[at + ENTRY_SIZE + 2 * group - 2], call[at + ENTRY_SIZE + 2 * group - 1]
      else
        local of_app = floor(own[CEILING_DEPTH] / 2 / UNITS_PER_TOKEN) - ceil(own[OUTSTANDING] / UNITS_PER_TOKEN)
        -- Where an app asks for more than it may have, what is there must also last for the excess of all nodes until
        -- they call again. Else this one is told of a shortage, though it may have all that it wants.
        if count > 0 then
          local may = own[BURST]
          if is_overloaded then
            may = min(may, min(own[DEMAND], limits[RATE + app]) + shares[apps + app] / MICROS_PER_MS)
          end
          ahead = max(0, ceil((own[DEMAND] - may) * pace))
        end
        count = max(0, min(count, free, of_app))
      end

      tokens = 0
      if count > 0 or ahead > 0 then
        -- How much of it every level covers: first out of the app's guaranteed bucket, then beyond it.
        local per_request = cost * UNITS_PER_TOKEN
        local units, stock, room = count * per_request, state[STOCK + app], own[ROOM]
        local from_stock = ahead > units and ahead or units
        if stock < from_stock then from_stock = stock end
        if room < from_stock then from_stock = room end
        if level < from_stock then from_stock = level end
        if from_stock < 0 then from_stock = 0 end
        local beyond, spends_credit = (ahead > units and ahead or units) - from_stock, false
        tokens = count
        if beyond > 0 then
          local rest, by_app = beyond, room - from_stock
          spends_credit = own[ELASTIC] == 0
          if spends_credit and own[CREDIT] < by_app then by_app = own[CREDIT] end
          local others = all_stock - max(0, stock)
          local by_cluster = level - from_stock - others
          if is_overloaded then
            -- A share that is all of the app's ceiling is what an idle cluster would give it as well.
            if min(own[DEMAND], limits[RATE + app]) + shares[apps + app] / MICROS_PER_MS < own[BURST] then
              by_cluster = min(by_cluster, shares[app])
            else
              by_app = min(by_app, shares[app])
            end
          else
            by_cluster = by_cluster - floor(own[RESERVED] * max(0, bucket_depth - outstanding - others))
          end
          beyond = max(0, min(rest, by_app, by_cluster))
          if beyond < rest then
            if call[at + SHORTAGE] == NO_SHORTAGE then
              call[at + SHORTAGE] = by_cluster <= by_app and SHORT_OF_CLUSTER or SHORT_OF_APP
              call[at + MISSING] = per_request
            end
            tokens = min(count, floor((from_stock + beyond) / per_request))
            units = tokens * per_request
          end
        end

        -- Each request is granted whole or not at all; what is beyond the guarantee goes first.
        if units < from_stock then from_stock = units end
        beyond = units - from_stock
        if beyond > 0 then
          if is_overloaded then shares[app] = shares[app] - beyond end
          if spends_credit then
            own[CREDIT] = own[CREDIT] - beyond
            if own[CREDIT_SINCE] == 0 then own[CREDIT_SINCE] = now end
          end
        end

        state[STOCK + app] = stock - from_stock
        all_stock = all_stock - from_stock
        level = level - units
        own[ROOM] = room - units
        own[GRANTED] = own[GRANTED] + units / UNITS_PER_TOKEN
        if phase == NEEDS then
          own[USED] = own[USED] + units / UNITS_PER_TOKEN
        else
          local part = held_at[app]
          local bucket = part + (spends_credit and FROM_CREDIT or LENT)
          held[part + FROM_STOCK] = held[part + FROM_STOCK] + from_stock
          held[bucket] = held[bucket] + beyond
          own[OUTSTANDING] = own[OUTSTANDING] + units
          outstanding = outstanding + units
          free = free - tokens
        end
      end
      if phase == NEEDS then answer = answer .. pack('<d', tokens) end
    end

    if phase == WANTS then
      local shortage, retry_after, stock = call[at + SHORTAGE], 0, state[STOCK + app]
      if shortage ~= NO_SHORTAGE then
        -- When the guarantee alone, or the capacity if that is what is short, will have covered it.
        local rate = limits[RATE + app]
        if shortage == SHORT_OF_CLUSTER then rate = max(capacity, rate) end
        retry_after = rate == 0 and pace or max(1000, ceil(max(0, call[at + MISSING] - stock) / rate))
      end
      local share = is_overloaded and floor(shares[apps + app] / MICROS_PER_MS) or 0
      answer = pack('<dddddddd', app - 1, tokens, shortage, retry_after, max(0, floor(stock / UNITS_PER_TOKEN)),
        own[NODES], share, call[at + 5]) .. answer
    end
    call[at + ANSWER] = answer
  end
end

-- State that is kept ------------------------------------------------------------------------------------------

local reply =
  pack('<dddddddddd', seq, epoch, sequence, now, is_overloaded and 1 or 0, nodes, lease_cap, revision, lease_ttl, apps)
if entry_count == 1 then
  reply = reply .. call[entries[1] + ANSWER]
else
  local in_order = { reply }
  for i = 1, entry_count do in_order[i + 1] = call[entries[i] + ANSWER] end
  reply = table.concat(in_order)
end

-- A node that holds nothing of an app and asks for nothing does not count among its nodes.
for i = 1, entry_count do
  local at = entries[i]
  local app = call[at]
  local part = held_at[app]
  local left = part and held[part + ASKED] + held[part + FROM_STOCK] + held[part + FROM_CREDIT] + held[part + LENT]
  if left == 0 and call[at + 4] + call[at + 5] == 0 then
    -- The last app takes its place.
    held_size = held_size - HELD_SIZE
    for figure = 1, HELD_SIZE do held[part + figure] = held[held_size + figure] end
    held_at[held[part + 1]] = part
    held_at[app] = nil
    touched[app][NODES] = touched[app][NODES] - 1
  end
end

-- Leases may last shorter than before; but this node has been promised more, and may not hear of the change.
if stored and deadline > new_deadline then new_deadline = deadline end
local lease = pack('<ddd' .. rep('d', held_size), seq, new_deadline, held_size / HELD_SIZE,
  unpack(held, 1, held_size)) .. reply
if is_leaving then end_lease(lease) end

packed_state = pack('<' .. rep('d', STATE_SIZE + apps),
  now, capacity > 0 and level or 0, outstanding, epoch, sequence, learning_until,
  is_overloaded and 1 or 0, tick, demand, nodes, next_deadline, looked_at, offset,
  unpack(state, STOCK + 1, STOCK + apps))
local changes, size = { 'state', packed_state }, 2
for i = 1, touch_count do
  changes[size + 1] = touch_list[field_count + i]
  changes[size + 2] = pack(APP_FORMAT, unpack(touched[touches_all and i or call[entries[i]]], 1, APP_SIZE))
  size = size + 2
end
if not is_leaving then
  changes[size + 1], changes[size + 2] = name, lease
  size = size + 2
end
if shares then
  changes[size + 1], changes[size + 2] = 'shares', pack('<' .. rep('d', 2 * apps), unpack(shares, 1, 2 * apps))
  size = size + 2
end
if is_due then
  changes[size + 1], changes[size + 2] = 'limits', packed_limits
  changes[size + 3], changes[size + 4] = 'run_id', run_id
end

if is_new then redis_call('UNLINK', ledger_key, deadlines_key) end
redis_call('HSET', ledger_key, unpack(changes))
if ended and #ended > 0 then
  redis_call('HDEL', ledger_key, unpack(ended))
  redis_call('ZREM', deadlines_key, unpack(ended))
end
if moved and #moved > 0 then redis_call('ZADD', deadlines_key, unpack(moved)) end
if is_leaving then
  redis_call('HDEL', ledger_key, name)
  redis_call('ZREM', deadlines_key, name)
elseif not was_stored then
  redis_call('ZADD', deadlines_key, new_deadline, name)
end
-- Where nobody held a lease the deadlines are a new key.
if is_due or had_nodes == 0 then
  redis_call('PEXPIRE', ledger_key, state_ttl)
  redis_call('PEXPIRE', deadlines_key, state_ttl)
end
if #ARGV > 3 then
  -- Names of methods may come from outside: when there are too many of them, no more are added.
  local MOST_FIELDS = 10000
  local is_full = redis_call('HLEN', consumed_key) >= MOST_FIELDS
  for i = 4, #ARGV, 2 do
    if not is_full or redis_call('HEXISTS', consumed_key, ARGV[i]) == 1 then
      redis_call('HINCRBY', consumed_key, ARGV[i], ARGV[i + 1])
    end
  end
end
return reply
