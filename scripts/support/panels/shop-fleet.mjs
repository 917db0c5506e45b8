// Two hours of a shop with three processes, for pictures: the requests are made up, the monitor that counts them, its
// alerts and its metrics are the library's.

const NODES = ['shop-1', 'shop-2', 'shop-3'];
const CAPACITY = 8000;
/** Tokens a second: what usually comes, what is sure, what there may be. */
const APPS = {
  checkout: { usual: 900, guaranteed: 2000, burst: 4000, priority: 0 },
  search: { usual: 1400, guaranteed: 2000, burst: 4000, priority: 1 },
  reports: { usual: 500, guaranteed: 600, burst: 1500, priority: 2 },
};
/** Of the requests of search that are denied, as many get an answer that was kept. */
const ANSWERED = 0.6;
export const SCRAPE_SECONDS = 15;

/** Alerts learn before that what is usual. */
export const SHOWN = { from: 30, to: 120 };

/** In minutes from the start. */
export const EVENTS = [
  { name: 'burst', from: 44, to: 50, words: '3.5 × the searches, and a flood of logins' },
  { name: 'outage', from: 64, to: 70, words: 'Redis is away' },
  { name: 'overload', from: 82, to: 90, words: '3.6 × of everything' },
  { name: 'slow', from: 103, to: 110, words: 'a slow database' },
];

/** A day in Unix time that is always the same: pictures change with the code only. */
export const START_MS = Date.UTC(2026, 0, 5, 12);

/** The scrapes of all processes, as lines of OpenMetrics. Gives each line to `write`. */
export async function scrapeShop(library, write) {
  const clock = new library.ManualClock(0, START_MS);
  const shop = new Shop(library, clock);
  const total = SHOWN.to * 60;
  for (let second = 1; second <= total; second++) {
    shop.second(second);
    clock.advance(1000);
    await library.settle();
    if (second % SCRAPE_SECONDS !== 0) continue;
    const at = START_MS / 1000 + second;
    for (const { name, monitor } of shop.nodes) {
      for (const line of monitor.text().split('\n')) {
        const [, metric, labels, value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
        if (metric === undefined) continue;
        const all = [`job="shop"`, `instance="${name}"`, ...(labels ? [labels] : [])].join(',');
        write(`${metric}{${all}} ${value} ${at}`);
      }
    }
  }
  shop.stop();
}

/** Always the same numbers, from 0 to 1. */
function random(seed = 7) {
  return () => (seed = (seed * 16807) % 2147483647) / 2147483647;
}

class Shop {
  constructor(library, clock) {
    this.library = library;
    this.draw = random();
    this.nodes = NODES.map((name, place) => new Node(library, clock, name, place));
  }

  second(second) {
    const minute = second / 60;
    const happens = (name) => {
      const { from, to } = EVENTS.find((one) => one.name === name);
      return minute >= from && minute < to;
    };
    // A wave of twenty minutes, and noise.
    const wave = 1 + 0.12 * Math.sin((minute / 20) * 2 * Math.PI);
    const noisy = (value) => value * (0.96 + 0.08 * this.draw());
    const asked = Object.entries(APPS).map(([app, { usual, guaranteed, burst, priority }]) => {
      let times = happens('overload') ? 3.6 : 1;
      if (app === 'search' && happens('burst')) times = 3.5;
      const demand = noisy(usual * wave * times);
      return { app, demand, guaranteed, burst, weight: this.library.quotaWeight(priority) };
    });
    const isAway = happens('outage');
    const demand = asked.reduce((sum, one) => sum + one.demand, 0);
    const shares = isAway
      ? asked.map((one) => Math.min(one.demand, 0.9 * one.guaranteed))
      : this.library.weightedShares(asked, CAPACITY);
    const apps = asked.map((one, i) => ({
      ...one,
      granted: shares[i],
      deniedByCluster: demand > CAPACITY ? Math.min(one.demand, one.burst) - shares[i] : 0,
    }));
    const state = {
      ...{ apps, demand, isAway, isOverloaded: demand > 0.9 * CAPACITY },
      ...{ isSlow: happens('slow'), isCrowded: happens('overload') },
      isFlooded: happens('burst'),
    };
    for (const node of this.nodes) node.second(state);
  }

  stop() {
    for (const { monitor } of this.nodes) monitor.stop();
  }
}

const round = Math.round;

/** One process: the counts of its features, as a real one would have them, and a real monitor of them. */
class Node {
  constructor(library, clock, name, place) {
    const { LogLinear, RequestCounts, wireOf } = library;
    this.name = name;
    this.isLeader = place === 0;
    this.listeners = new Map();
    this.storeIsUp = true;
    this.overloaded = false;
    this.openFor = 0;
    const client = {};
    this.calls = wireOf(client).calls;
    this.http = new RequestCounts();
    this.responses = { times: new LogLinear(), errors: 0, tick() {} };
    this.waitTimes = new LogLinear();
    this.databaseTimes = new LogLinear();
    this.policies = Object.fromEntries(
      ['login-ip', 'search-user', 'export-tenant'].map((policy) => [policy, policyCounts()]),
    );
    this.apps = Object.fromEntries(
      Object.entries(APPS).map(([app, { guaranteed, burst }]) => [
        app,
        { ...appCounts(), guaranteed, burst },
      ]),
    );
    this.quota = { decisions: 0, localHits: 0, remoteCalls: 0, apps: this.apps };
    this.line = { ran: 0, waited: 0, full: 0, late: 0, gone: 0 };
    this.standing = { standing: false, waiting: 0 };
    this.database = { ...new library.ResourceCounts(), inFlight: 2, waiting: 0, overdue: 0 };
    this.breaker = { state: 'closed', openings: 0 };
    this.fallbacks = new library.FallbackCounts();
    this.demand = 0;
    this.draw = random(name.length + place);
    const limiter = {
      redis: { client, prefix: 'weir' },
      stats: () => ({
        ...{ keys: 1200, policies: this.policies, waiting: {}, quota: this.quota },
        store: { nodes: NODES.length, strayReplies: 0, silences: 0 },
      }),
      on: (event, listener) => {
        this.listeners.set(event, listener);
        return () => {};
      },
      ...{ hotCounts: () => ({}), hotValues: () => [] },
      quota: { status: () => Promise.resolve(this.ledger()) },
    };
    const sources = new library.Sources({
      limiter,
      transports: { counts: () => new Map([['http', this.http]]) },
      protection: {
        stats: () => ({ database: { ...this.database, breaker: this.breaker } }),
        timesOf: () => this.databaseTimes,
      },
      degradation: () => ({
        ...{ resources: [], fallbacks: this.fallbacks.stats() },
        caches: { shared: undefined, process: { hits: 0, misses: 0 }, refused: {}, rejected: {} },
      }),
      overload: () => ({
        ...{ ...this.standing, turnMs: 4, factor: 1, load: undefined, exempt: 0, upgrades: 0 },
        byTier: { all: this.line },
      }),
      waitTimes: () => this.waitTimes,
      responses: this.responses,
      config: () => ({ revision: 42, refused: {} }),
    });
    const alerting = new library.Alerting({
      ...{ nodeId: name, service: 'shop', clock, sinks: [], fault: () => {} },
    });
    const document = { cluster: { capacity: CAPACITY }, apps: APPS };
    alerting.prepare(document)();
    const failed = (error) => {
      throw error;
    };
    const options = new library.MonitorOptions();
    this.monitor = new library.Monitor(name, options, sources, clock, failed, alerting);
    this.monitor.document = document;
    if (this.isLeader) {
      this.monitor.shared = new library.Fleet({
        ...{ nodeId: name, board: new library.MemoryBoard(clock), clock, maxSeries: 100 },
        snapshot: () => this.monitor.snapshot(),
        about: (seen) => this.monitor.fleetContext(seen),
        ...{ nodes: () => 1, isAlarmed: () => false, useSalt: () => {}, failed },
      });
    }
    this.monitor.start();
  }

  second(state) {
    const part = 1 / NODES.length;
    this.demand = state.demand;
    this.tell('store', this.storeIsUp, (this.storeIsUp = !state.isAway), (isUp) => ({
      state: isUp ? 'up' : 'away',
    }));
    this.tell('overload', this.overloaded, (this.overloaded = state.isOverloaded), (overloaded) => {
      return { overloaded };
    });
    const requests = { all: 0, denied: 0, degraded: 0 };
    for (const one of state.apps) this.useQuota(one, state, part, requests);
    this.usePolicies(state, part, requests);
    this.http.requests += requests.all;
    this.http.denied += requests.denied;
    this.http.handedOver += requests.degraded;
    const passed = requests.all - requests.denied - requests.degraded;
    this.callDatabase(state, round(passed * 0.7));
    this.answer(state, passed);
    this.stand(state, requests.all);
    this.askStore(state);
  }

  tell(event, before, after, message) {
    if (before !== after) this.listeners.get(event)(message(after));
  }

  useQuota({ app, demand, granted, deniedByCluster }, { isAway }, part, requests) {
    const counts = this.apps[app];
    const [all, allowed] = [round(demand * part), round(granted * part)];
    const denied = Math.max(0, all - allowed);
    const byCluster = Math.min(denied, round(Math.max(0, deniedByCluster) * part));
    const source = counts.bySource[isAway ? 'fallback' : 'local'];
    counts.mode = isAway ? 'offline' : denied > 0 ? 'paced' : 'batch';
    counts.allowed += all - denied;
    counts.used += all - denied;
    counts.denied += denied;
    source.allowed += all - denied;
    source.denied += denied;
    source.deniedByCluster += byCluster;
    this.quota.decisions += all;
    this.quota.localHits += isAway ? all : round(all * (denied > 0 ? 0.97 : 0.995));
    this.quota.remoteCalls += isAway ? 0 : 20;
    requests.all += all;
    const kept = app === 'search' ? round(denied * ANSWERED) : 0;
    for (let n = 0; n < kept; n++) this.fallbacks.answered(1, 'limited', 'search');
    requests.degraded += kept;
    requests.denied += denied - kept;
  }

  usePolicies({ apps, isAway, isFlooded }, part, requests) {
    const source = isAway ? 'fallback' : 'store';
    const search = apps.find(({ app }) => app === 'search').demand * part;
    const logins = 40 * (isFlooded ? 6 : 1) * part;
    const loginsDenied = isFlooded ? logins - 35 * part : logins * 0.02;
    this.decide('search-user', isAway ? source : 'local', search * 0.995, search * 0.005, 0);
    this.decide('login-ip', source, logins - loginsDenied, loginsDenied, 0);
    this.decide('export-tenant', source, 25 * part, 0, 2 * part);
    requests.all += round(logins);
    requests.denied += round(loginsDenied);
  }

  decide(policy, source, allowed, denied, shadowDenied) {
    const counts = this.policies[policy];
    const [passed, turnedAway, noted] = [allowed, denied, shadowDenied].map((count) =>
      Math.floor(count + this.draw()),
    );
    for (const target of [counts, counts.bySource[source]]) {
      target.allowed += passed;
      target.denied += turnedAway;
      target.shadowDenied += noted;
    }
  }

  /** Slow calls open the breaker, for half a minute at a time; what it holds back gets a kept answer. */
  callDatabase({ isSlow }, calls) {
    const { database, breaker, draw } = this;
    if (this.openFor > 0 && --this.openFor === 0) breaker.state = 'closed';
    database.calls += calls;
    if (breaker.state === 'open') {
      database.open += calls;
      for (let n = 0; n < calls; n++) {
        this.fallbacks.answered(n % 20 === 0 ? 3 : 2, 'open', 'product-page');
      }
      return;
    }
    const failed = isSlow ? round(calls * 0.2) : 0;
    database.succeeded += calls - failed;
    database.failed += failed;
    database.slow += isSlow ? round(calls * 0.6) : 0;
    spread(this.databaseTimes, calls, isSlow ? 180 : 6, draw);
    if (!isSlow || draw() > 0.25) return;
    breaker.state = 'open';
    breaker.openings++;
    this.openFor = 25 + round(10 * draw());
  }

  answer({ isCrowded, isSlow }, requests) {
    const isHeld = this.breaker.state === 'open';
    const medianMs = isSlow && !isHeld ? 220 : isCrowded ? 45 : 14;
    spread(this.responses.times, requests, medianMs, this.draw);
    this.responses.errors += round(requests * (isSlow && !isHeld ? 0.12 : 0.001));
  }

  stand({ isCrowded }, requests) {
    const waiting = isCrowded ? round(20 + 30 * this.draw()) : 0;
    this.standing = { standing: isCrowded, waiting };
    const waited = isCrowded ? round(requests * 0.5) : 0;
    const late = isCrowded ? round(requests * 0.06) : 0;
    const full = isCrowded ? round(requests * 0.03) : 0;
    this.line.ran += requests - waited - late - full;
    this.line.waited += waited;
    this.line.late += late;
    this.line.full += full;
    spread(this.waitTimes, waited, 22, this.draw);
  }

  askStore({ isAway, isCrowded }) {
    const { draw } = this;
    const { buckets, lease, config, board } = this.calls;
    const calls = [
      [buckets, 60, 0.5],
      [lease, 20, 0.7],
      [config, 0.2, 0.6],
      [board, 0.2, 0.8],
    ];
    for (const [op, perSecond, medianMs] of calls) {
      const count = perSecond < 1 ? Number(draw() < perSecond) : perSecond;
      if (isAway) {
        // The breaker on the store lets one try in a while.
        op.failures[draw() < 0.3 ? 'timeout' : 'connection'] += Math.min(count, 2);
        continue;
      }
      spread(op.times, count, medianMs * (isCrowded ? 2 : 1), draw);
      op.items += count;
    }
  }

  ledger() {
    if (!this.isLeader) return undefined;
    return {
      ...{ asOfMs: 0, epoch: 1, revision: 42, capacity: CAPACITY, depth: 1600, level: 1200 },
      ...{ outstanding: 300, used: 0, demand: this.demand, overloaded: this.overloaded },
      ...{ apps: {}, nodes: NODES.length },
    };
  }
}

/** Times around a median, as answers have them: a few take several times as long. At most forty stand for all. */
function spread(times, count, medianMs, draw) {
  const weight = Math.max(1, Math.floor(count / 20));
  for (let n = 0; n < count; n += weight) {
    const z = Math.sqrt(-2 * Math.log(draw())) * Math.cos(2 * Math.PI * draw());
    times.record(medianMs * 1000 * Math.exp(0.55 * z), weight);
  }
}

const sourceCounts = () => ({ allowed: 0, denied: 0, shadowDenied: 0, deniedByCluster: 0 });
const bySource = () => ({ local: sourceCounts(), store: sourceCounts(), fallback: sourceCounts() });
const policyCounts = () => ({
  ...sourceCounts(),
  bySource: bySource(),
  passedOver: {},
  overflowed: 0,
  scarce: 0,
});
const appCounts = () => ({
  mode: 'batch',
  tokens: 60,
  ...sourceCounts(),
  used: 0,
  bySource: bySource(),
});
