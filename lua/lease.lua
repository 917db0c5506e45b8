-- Settles one call of a node with the cluster's ledger: report, give-back and request of all its apps.
--
-- KEYS[1]  the ledger, a packed string    KEYS[2]  the leases, a hash by node and incarnation
-- KEYS[3]  the deadlines, a sorted set    KEYS[4]  the limits, a hash that seed-limits.lua writes
-- ARGV[1]  the name of the lease: node and incarnation
-- ARGV[2]  the call, packed doubles: seq, seen epoch, seen sequence, 1 if the node is leaving; then per app
--          its number, tokens used, returned, demand per second, wanted, how many groups of needs, and
--          cost and count of each group. All of them whole numbers
-- ARGV[3]  now in microseconds; left out for the server's clock (tests inject time, nodes never do)
-- Reply    packed doubles: epoch, sequence, now, 1 if overloaded, nodes, lease cap, revision of the limits;
--          then per app its number, tokens granted, shortage (0 none, 1 app, 2 cluster), microseconds to
--          retry after, tokens remaining, nodes, how many groups of needs, and how many were granted of each.
--          Or one of the errors NOT_CONFIGURED (there are no limits) and NO_SUCH_APP
--
-- The arithmetic is that of lib/algorithms/quota, in whole numbers below 2^53, and agrees with it to the unit.
-- Time flows into the cluster and into every app's stock with each call. The rest of an app is read, brought
-- up to date and written back only when a call, an expiry or overload touches it, which comes to the same
-- because nothing but time has changed it since. A call that was settled before gets the same bytes again,
-- and nothing is written for it.

local ledger_key, leases_key, deadlines_key, limits_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local name, packed_call, injected = ARGV[1], ARGV[2], ARGV[3]
local UNITS_PER_TOKEN, MICROS_PER_MS, TICK_MS = 1000000, 1000, 100
local TICK_MICROS = TICK_MS * MICROS_PER_MS
local NO_SHORTAGE, SHORT_OF_APP, SHORT_OF_CLUSTER = 0, 1, 2
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min
local pack, unpack_struct, rep, sub = struct.pack, struct.unpack, string.rep, string.sub
local redis_call = redis.call

-- Limits: the figures of the cluster, all rates, all depths of stock; then the other figures, app by app -----

local LIMITS_SIZE, APP_LIMITS_FORMAT, APP_LIMITS_BYTES = 10, '<ddddddd', 56
local BURST, WEIGHT, ELASTIC, CREDIT_DEPTH, CREDIT_MICROS, CEILING_DEPTH, RESERVE = 1, 2, 3, 4, 5, 6, 7

local packed_limits = redis_call('HGET', limits_key, 'packed')
if not packed_limits then return redis.error_reply('NOT_CONFIGURED the cluster has no limits yet') end
local apps = (#packed_limits - 8 * LIMITS_SIZE) / (16 + APP_LIMITS_BYTES)
local limits = { unpack_struct(rep('<d', LIMITS_SIZE + 2 * apps), packed_limits) }
local revision, capacity, depth, learning_depth, max_cost, lease_ttl, pace, reserve_target, lease_budget, state_ttl =
  unpack(limits, 1, LIMITS_SIZE)
-- The rate of an app is limits[RATE + number], the depth of its stock limits[STOCK_DEPTH + number].
local RATE, STOCK_DEPTH = LIMITS_SIZE, LIMITS_SIZE + apps
local first_limits = 8 * LIMITS_SIZE + 16 * apps + 1 - APP_LIMITS_BYTES

-- The call --------------------------------------------------------------------------------------------------

local CALL_SIZE, ENTRY_SIZE = 4, 6
local call_size = #packed_call / 8
local call = { unpack_struct(rep('<d', call_size), packed_call) }
local seq, seen_epoch, seen_sequence, is_leaving = call[1], call[2], call[3], call[4] == 1
-- Where the entry of each app lies in the call. The first app is number 1 from here on.
local entries, entry_count = {}, 0
do
  local at = CALL_SIZE + 1
  while at <= call_size do
    local app = call[at] + 1
    if app > apps then return redis.error_reply('NO_SUCH_APP the limits have fewer apps') end
    call[at] = app
    entry_count = entry_count + 1
    entries[entry_count] = at
    at = at + ENTRY_SIZE + 2 * call[at + 5]
  end
end

-- State: figures of the cluster, all stocks; shares and their rates; the rest app by app; the server's run_id ---

local STATE_SIZE, APP_FORMAT, APP_BYTES, RUN_ID_BYTES = 13, '<ddddddddd', 72, 40
local CREDIT, CREDIT_SINCE, ROOM, OUTSTANDING, DEMAND, NODES, AS_OF, GRANTED, USED = 1, 2, 3, 4, 5, 6, 7, 8, 9
-- A slot of the row that struct.unpack leaves for us: the limits of the app.
local LIMITS = 10
-- The stock of an app is state[STOCK + number].
local STOCK = STATE_SIZE
local state_format = rep('<d', STATE_SIZE + apps)
local first_share = 8 * (STATE_SIZE + apps) + 1
local first_app = first_share + 16 * apps - APP_BYTES

local now = tonumber(injected)
if not now then
  local time = redis_call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local raw = redis_call('GET', ledger_key)
local state, last, level, outstanding, epoch, sequence, learning_until, is_overloaded, tick, demand, nodes
-- No lease is overdue before the first of these; the server was looked at, and the keys will expire, then.
local next_deadline, looked_at, expiry
local run_id
local is_new, is_after_loss = not raw, not raw and seen_epoch > 0
local is_due = is_new

if raw and #raw == first_app - 1 + APP_BYTES * (apps + 1) + RUN_ID_BYTES then
  state = { unpack_struct(state_format, raw) }
  last, level, outstanding, epoch, sequence, learning_until, is_overloaded, tick, demand, nodes,
    next_deadline, looked_at, expiry = unpack(state, 1, STATE_SIZE)
  is_overloaded = is_overloaded == 1
  is_after_loss = seen_epoch == epoch and seen_sequence > sequence or seen_epoch > epoch
  is_due = is_after_loss or max(now, last) - looked_at >= TICK_MICROS
elseif raw then
  -- Limits of other apps: what the figures belong to cannot be told any more, only the epoch goes on.
  epoch = struct.unpack('<d', raw, 25)
  is_due, is_after_loss = true, true
end

if is_due then
  local info = redis.pcall('INFO', 'server')
  run_id = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or rep('?', RUN_ID_BYTES)
  is_after_loss = is_after_loss or raw and (run_id ~= sub(raw, -RUN_ID_BYTES)
    -- Where keys are evicted one by one, what is left does not add up.
    or redis_call('HLEN', leases_key) ~= nodes
    or redis_call('ZCARD', deadlines_key) ~= nodes)
  is_new = is_new or is_after_loss
  looked_at = max(now, last or 0)
end

if is_new then
  last, outstanding, epoch, sequence = now, 0, max(epoch or 0, seen_epoch) + 1, 0
  level = is_after_loss and 0 or depth
  learning_until = is_after_loss and now + lease_ttl or 0
  is_overloaded, tick, demand, nodes = false, now, 0, 0
  next_deadline, looked_at, expiry = now + lease_ttl, now, 0
  state = {}
  for app = 1, apps do state[STOCK + app] = is_after_loss and 0 or limits[STOCK_DEPTH + app] end
elseif now < last then
  now = last
end

-- A lease: its seq and deadline and, per app, what is held by the bucket that it came from; the last reply.
local LEASE_FORMAT, LEASE_BYTES, HELD_FORMAT, HELD_BYTES = '<ddd', 24, '<ddddd', 40
local FROM_STOCK, FROM_CREDIT, LENT, ASKED = 2, 3, 4, 5

local stored = not is_new and redis_call('HGET', leases_key, name)
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
  level = max(0, min(level + capacity * elapsed, most))
else
  level = math.huge
end
for app = 1, apps do
  local stock, most = state[STOCK + app] + limits[RATE + app] * elapsed, limits[STOCK_DEPTH + app]
  if stock > most then stock = most end
  state[STOCK + app] = stock
  all_stock = all_stock + stock
end

-- During overload: the share of an app is shares[number], its rate in units per millisecond shares[apps + number].
local shares
if is_overloaded then
  shares = { unpack_struct(rep('<d', 2 * apps), raw, first_share) }
  for app = 1, apps do
    local rate = shares[apps + app]
    local share, most = shares[app] + floor(rate * elapsed / MICROS_PER_MS), 2 * TICK_MS * rate
    if most < max_cost then most = max_cost end
    if share > most then share = most end
    shares[app] = share
  end
end

-- By number: the other figures of the apps that something will touch, up to date. Overload and the end of leases
-- may touch any app. There are no functions here, because making one costs as much as a command.
local is_tick = capacity > 0 and now - tick >= TICK_MICROS
local is_overdue = stored and deadline <= now
local is_anyone_due = not is_new and next_deadline <= now
local touches_all = is_new or is_tick or is_overdue or is_anyone_due or is_leaving
local touched = {}
for i = 1, touches_all and apps or entry_count do
  local app = touches_all and i or call[entries[i]]
  if not touched[app] then
    local app_limits = { unpack_struct(APP_LIMITS_FORMAT, packed_limits, first_limits + APP_LIMITS_BYTES * app) }
    local own
    if is_new then
      own = { app_limits[CREDIT_DEPTH], 0, app_limits[CEILING_DEPTH], 0, 0, 0, now, 0, 0 }
      if is_after_loss then own[CREDIT], own[CREDIT_SINCE], own[ROOM] = 0, now, 0 end
    else
      own = { unpack_struct(APP_FORMAT, raw, first_app + APP_BYTES * app) }
      local since, most = now - own[AS_OF], app_limits[CEILING_DEPTH] - own[OUTSTANDING]
      local room = own[ROOM] + app_limits[BURST] * since
      if room > most then room = most end
      if room < 0 then room = 0 end
      own[ROOM], own[AS_OF] = room, now
      if own[CREDIT_SINCE] > 0 and now - own[CREDIT_SINCE] >= app_limits[CREDIT_MICROS] then
        own[CREDIT], own[CREDIT_SINCE] = app_limits[CREDIT_DEPTH], 0
      end
    end
    own[LIMITS], touched[app] = app_limits, own
  end
end

-- Expiries: what was leased and neither used nor returned in time is destroyed, for it may have been used ----

-- Of overdue leases so many are ended per call, so that the loss of a whole fleet does not block the server.
local MOST_EXPIRIES = 64
local new_deadline = now + lease_ttl
local ended, moved
local end_lease
if is_overdue or is_anyone_due or is_leaving then
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
-- A lease that is renewed keeps its place among the deadlines until that has passed, and only then moves on.
if is_anyone_due then
  local due = redis_call('ZRANGE', deadlines_key, 0, MOST_EXPIRIES, 'WITHSCORES')
  ended, moved = {}, {}
  next_deadline = new_deadline
  for i = 1, #due, 2 do
    local other, place = due[i], tonumber(due[i + 1])
    if place <= now and i < 2 * MOST_EXPIRIES then
      local lease = other ~= name and redis_call('HGET', leases_key, other)
      place = lease and unpack_struct('<d', lease, 9) or new_deadline
      if place <= now then
        end_lease(lease)
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

-- Reports and give-backs ------------------------------------------------------------------------------------

-- By number of the app: what the node holds of it. And of all apps together.
local held_of, lease_count, holding, own_demand = {}, 0, 0, 0
local had_nodes = nodes
if stored then
  lease_count = held_count
  for i = 1, lease_count do
    local held = { unpack_struct(HELD_FORMAT, stored, LEASE_BYTES + HELD_BYTES * (i - 1) + 1) }
    held_of[held[1]] = held
    holding = holding + held[FROM_STOCK] + held[FROM_CREDIT] + held[LENT]
    own_demand = own_demand + held[ASKED]
  end
else
  nodes = nodes + 1
end

for i = 1, entry_count do
  local at = entries[i]
  local app = call[at]
  local own, held = touched[app], held_of[app]
  if not held then
    held = { app, 0, 0, 0, 0 }
    lease_count = lease_count + 1
    held_of[app] = held
    own[NODES] = own[NODES] + 1
  end
  local more = call[at + 3] - held[ASKED]
  held[ASKED] = call[at + 3]
  own_demand, own[DEMAND], demand = own_demand + more, own[DEMAND] + more, demand + more

  -- Used: the guaranteed ones first. What the node does not hold is ignored.
  local units = call[at + 1] * UNITS_PER_TOKEN
  if units > 0 then
    local from_stock = min(units, held[FROM_STOCK])
    local from_credit = min(units - from_stock, held[FROM_CREDIT])
    local lent = min(units - from_stock - from_credit, held[LENT])
    local total = from_stock + from_credit + lent
    held[FROM_STOCK] = held[FROM_STOCK] - from_stock
    held[FROM_CREDIT] = held[FROM_CREDIT] - from_credit
    held[LENT] = held[LENT] - lent
    holding = holding - total
    own[OUTSTANDING] = own[OUTSTANDING] - total
    own[USED] = own[USED] + total
    outstanding = outstanding - total
  end

  -- Given back: into the very buckets that they came from, the last lent first.
  units = call[at + 2] * UNITS_PER_TOKEN
  if units > 0 then
    local lent = min(units, held[LENT])
    local from_credit = min(units - lent, held[FROM_CREDIT])
    local from_stock = min(units - lent - from_credit, held[FROM_STOCK])
    local total = lent + from_credit + from_stock
    held[LENT] = held[LENT] - lent
    held[FROM_CREDIT] = held[FROM_CREDIT] - from_credit
    held[FROM_STOCK] = held[FROM_STOCK] - from_stock
    holding = holding - total
    own[OUTSTANDING] = own[OUTSTANDING] - total
    own[ROOM] = own[ROOM] + total
    own[GRANTED] = own[GRANTED] - total
    own[CREDIT] = min(own[LIMITS][CREDIT_DEPTH], own[CREDIT] + from_credit)
    if is_overloaded then shares[app] = shares[app] + lent + from_credit end
    outstanding = outstanding - total
    level = level + total
    local stock = state[STOCK + app]
    state[STOCK + app] = min(limits[STOCK_DEPTH + app], stock + from_stock)
    all_stock = all_stock + (state[STOCK + app] - stock)
  end
end

-- Overload: once per tick, is there any, and if so, what is everybody's share of the capacity? ---------------

if is_tick then
  local OVERLOAD_BEGINS, OVERLOAD_ENDS = 0.9, 0.85
  tick = now
  local was_overloaded, is_now = is_overloaded, demand > OVERLOAD_BEGINS * capacity
  if was_overloaded then is_now = demand >= OVERLOAD_ENDS * capacity end
  is_overloaded = is_now
  if is_now then
    -- Weighted water-filling, see lib/algorithms/quota/weighted-share.ts.
    local parts, sum = {}, 0
    for app = 1, apps do
      parts[app] = min(touched[app][DEMAND], limits[RATE + app])
      sum = sum + parts[app]
    end
    local left = capacity - sum
    for _ = 1, apps do
      if left <= 0 then break end
      local rooms, weights = {}, 0
      for app = 1, apps do
        local own = touched[app]
        rooms[app] = min(own[DEMAND], own[LIMITS][BURST]) - parts[app]
        if rooms[app] > 0 then weights = weights + own[LIMITS][WEIGHT] end
      end
      if weights == 0 then break end
      local rise = left / weights
      for app = 1, apps do
        if rooms[app] > 0 then rise = min(rise, rooms[app] / touched[app][LIMITS][WEIGHT]) end
      end
      for app = 1, apps do
        if rooms[app] > 0 then
          local given = min(rooms[app], rise * touched[app][LIMITS][WEIGHT])
          parts[app] = parts[app] + given
          left = left - given
        end
      end
    end
    shares = shares or {}
    for app = 1, apps do
      local rate = floor((parts[app] - min(touched[app][DEMAND], limits[RATE + app])) * MICROS_PER_MS)
      -- Whoever enters overload has one tick's worth; from then on the bucket keeps the account.
      local share = was_overloaded and shares[app] or rate * TICK_MS
      shares[app], shares[apps + app] = min(share, max(2 * TICK_MS * rate, max_cost)), rate
    end
  end
end

-- Grants ----------------------------------------------------------------------------------------------------

sequence = sequence + 1
local half_budget = floor(lease_budget / 2)
local part = max(1 / nodes, demand > 0 and own_demand / demand or 0)
local lease_cap = min(half_budget, max(reserve_target, floor(half_budget * part)))

-- Higher priorities come first, then those that were named first.
local order = entries
if entry_count > 1 then
  order = {}
  for i = 1, entry_count do
    local weight, place = touched[call[entries[i]]][LIMITS][WEIGHT], i
    while place > 1 and touched[call[order[place - 1]]][LIMITS][WEIGHT] < weight do
      order[place] = order[place - 1]
      place = place - 1
    end
    order[place] = entries[i]
  end
end

-- Requests that wait come before stock for those that may come, which is granted like requests of one token.
local NEEDS, WANTS = 1, 2
-- By place of the entry: what was granted, packed; which level was short, and of how much.
local answers, shortages, missing = {}, {}, {}
for phase = NEEDS, WANTS do
  for turn = 1, entry_count do
    local at = order[turn]
    local app = call[at]
    local own, held = touched[app], held_of[app]
    local answer, tokens = answers[at] or '', 0
    for group = 1, phase == WANTS and 1 or call[at + 5] do
      local cost, count = 1, call[at + 4]
      if phase == NEEDS then
        cost, count = call[at + ENTRY_SIZE + 2 * group - 2], call[at + ENTRY_SIZE + 2 * group - 1]
      else
        -- A node may hold so much and no more, and so may all of them; not getting what is beyond is no shortage.
        count = min(count, lease_cap - ceil(holding / UNITS_PER_TOKEN))
        if capacity > 0 then count = min(count, half_budget - ceil(outstanding / UNITS_PER_TOKEN)) end
        if count < 0 then count = 0 end
      end

      -- How much of it every level covers: first out of the app's guaranteed bucket, then beyond it.
      local per_request = cost * UNITS_PER_TOKEN
      local units, stock, room = count * per_request, state[STOCK + app], own[ROOM]
      local from_stock = units
      if stock < from_stock then from_stock = stock end
      if room < from_stock then from_stock = room end
      if level < from_stock then from_stock = level end
      local beyond, spends_credit = units - from_stock, false
      if beyond > 0 then
        local rest, by_app, app_limits = beyond, room - from_stock, own[LIMITS]
        spends_credit = is_overloaded or app_limits[ELASTIC] == 0
        if spends_credit and own[CREDIT] < by_app then by_app = own[CREDIT] end
        local by_cluster = level - from_stock - (all_stock - stock) - app_limits[RESERVE]
        if is_overloaded and shares[app] < by_cluster then by_cluster = shares[app] end
        beyond = max(0, min(rest, by_app, by_cluster))
        if beyond < rest and not shortages[at] then
          shortages[at] = by_cluster <= by_app and SHORT_OF_CLUSTER or SHORT_OF_APP
          missing[at] = per_request
        end
      end

      -- Each request is granted whole or not at all; what is beyond the guarantee goes first.
      tokens = floor((from_stock + beyond) / per_request)
      units = tokens * per_request
      if units < from_stock then from_stock = units end
      beyond = units - from_stock
      state[STOCK + app] = stock - from_stock
      all_stock = all_stock - from_stock
      level = level - units
      own[ROOM] = room - units
      own[GRANTED] = own[GRANTED] + units
      if beyond > 0 then
        if is_overloaded then shares[app] = shares[app] - beyond end
        if spends_credit then
          own[CREDIT] = own[CREDIT] - beyond
          if own[CREDIT_SINCE] == 0 then own[CREDIT_SINCE] = now end
        end
      end
      if phase == NEEDS then
        own[USED] = own[USED] + units
        answer = answer .. pack('<d', tokens)
      else
        local bucket = spends_credit and FROM_CREDIT or LENT
        held[FROM_STOCK] = held[FROM_STOCK] + from_stock
        held[bucket] = held[bucket] + beyond
        holding = holding + units
        own[OUTSTANDING] = own[OUTSTANDING] + units
        outstanding = outstanding + units
      end
    end

    if phase == WANTS then
      local shortage, retry_after, stock = shortages[at] or NO_SHORTAGE, 0, state[STOCK + app]
      if shortage ~= NO_SHORTAGE then
        -- When the guarantee alone, or the capacity if that is what is short, will have covered it.
        local rate = limits[RATE + app]
        if shortage == SHORT_OF_CLUSTER then rate = max(capacity, rate) end
        retry_after = rate == 0 and pace or max(1000, ceil(max(0, missing[at] - stock) / rate))
      end
      answer = pack('<ddddddd', app - 1, tokens, shortage, retry_after, floor(stock / UNITS_PER_TOKEN),
        own[NODES], call[at + 5]) .. answer
    end
    answers[at] = answer
  end
end

-- What is kept ----------------------------------------------------------------------------------------------

local reply = pack('<ddddddd', epoch, sequence, now, is_overloaded and 1 or 0, nodes, lease_cap, revision)
for i = 1, entry_count do reply = reply .. answers[entries[i]] end

local lease = pack(LEASE_FORMAT, seq, new_deadline, lease_count)
for app = 1, apps do
  local held = held_of[app]
  if held then lease = lease .. pack(HELD_FORMAT, app, held[2], held[3], held[4], held[5]) end
end
lease = lease .. reply
if is_leaving then end_lease(lease) end

-- While the keys would live for long enough, the ledger is overwritten in place, which costs half.
local is_renewed = expiry - now < state_ttl * 500
if is_renewed then expiry = now + state_ttl * 1000 end
local ledger = pack(state_format, now, capacity > 0 and level or 0, outstanding, epoch, sequence, learning_until,
  is_overloaded and 1 or 0, tick, demand, nodes, next_deadline, looked_at, expiry,
  unpack(state, STOCK + 1, STOCK + apps))
if shares then
  ledger = ledger .. pack(rep('<d', 2 * apps), unpack(shares, 1, 2 * apps))
elseif is_new then
  ledger = ledger .. rep('\0', 16 * apps)
end
for app = 1, apps do
  local own = touched[app]
  if own then
    local written, before = #ledger, first_app + APP_BYTES * app - 1
    if written < before then ledger = ledger .. sub(raw, written + 1, before) end
    ledger = ledger .. pack(APP_FORMAT, unpack(own, 1, USED))
  end
end
if is_renewed then
  ledger = ledger .. (is_new and run_id or sub(raw, #ledger + 1))
  redis_call('SET', ledger_key, ledger, 'PX', state_ttl)
else
  redis_call('SETRANGE', ledger_key, '0', ledger)
end

if is_new then redis_call('DEL', leases_key, deadlines_key) end
if ended and #ended > 0 then
  redis_call('HDEL', leases_key, unpack(ended))
  redis_call('ZREM', deadlines_key, unpack(ended))
end
if moved and #moved > 0 then redis_call('ZADD', deadlines_key, unpack(moved)) end
if not is_leaving then
  redis_call('HSET', leases_key, name, lease)
  if not was_stored then redis_call('ZADD', deadlines_key, new_deadline, name) end
elseif was_stored then
  redis_call('HDEL', leases_key, name)
  redis_call('ZREM', deadlines_key, name)
end
-- The last to leave takes the keys along, and the next to come has to give them a time to live again.
if is_renewed or had_nodes == 0 then
  redis_call('PEXPIRE', leases_key, state_ttl)
  redis_call('PEXPIRE', deadlines_key, state_ttl)
end
return reply
