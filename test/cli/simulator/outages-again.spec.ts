import { type History, type HistoryEvent } from '../../../lib/cli/simulator/history/history.js';
import { type HistoryPlan } from '../../../lib/cli/simulator/history/plan.js';
import { HistoryRun } from '../../../lib/cli/simulator/history/run-history.js';

const ROUNDS = 12;
/** A round of rest and outage before the first one that is counted: the processes get to know each other. */
const FROM_MS = 2600;
const PROCESSES = 4;
/** The store is there for so long: processes need a while to find that out, and one of them then empties the bucket. */
const THERE_MS = 1000;

/**
 * The worst that can be done with outages again and again: one process empties the bucket whenever the store
 * is there, and the others use up their shares as soon as it is away and rest until it is back.
 */
function worst(plan: HistoryPlan, awayMs: number, cost: number, holds: number): History {
  const ask = (atMs: number, process: number, count: number): HistoryEvent => {
    return { atMs, kind: 'ask', process, limit: 0, key: 'k0', cost, count };
  };
  const events: HistoryEvent[] = [];
  for (let process = 0; process < PROCESSES; process++) {
    for (let atMs = 0; atMs < 2100; atMs += 300) events.push(ask(atMs + process, process, 1));
  }
  for (let round = 0; round < ROUNDS; round++) {
    const atMs = FROM_MS + round * (awayMs + THERE_MS);
    events.push({ atMs, kind: 'down', forMs: awayMs });
    for (let process = 1; process < PROCESSES; process++) {
      events.push(ask(atMs + 2, process, Math.ceil(holds / PROCESSES)));
    }
    for (let ms = 0; ms < THERE_MS; ms += 10) {
      events.push(ask(atMs + awayMs + ms, 0, Math.ceil(holds / 4)));
    }
  }
  return { seed: 1, plan, events: events.sort((a, b) => a.atMs - b.atMs) };
}

/** Tokens per second in the rounds. */
async function rateOf(history: History): Promise<number> {
  const run = new HistoryRun(history);
  const untilMs = history.events.at(-1)!.atMs;
  let admitted = 0;
  run.onAdmitted = (_limit, tokens) => {
    const ms = run.time.seconds() * 1000;
    if (ms >= FROM_MS && ms <= untilMs) admitted += tokens;
  };
  expect((await run.run()).broken).toBeUndefined();
  return (admitted * 1000) / (untilMs - FROM_MS);
}

const base = { processes: PROCESSES, decisionTimeoutMs: 20, maxCost: 1, changes: false };

describe('outages again and again, each a little longer than the bucket takes to fill', () => {
  it('let less than twice the rate of a policy pass: one burst more for each', async () => {
    const [rate, burst] = [100, 40];
    const plan: HistoryPlan = {
      ...base,
      policies: [{ name: 'p0', kind: 'exact', rate, burst, periodMs: 1000, failureMode: 'local' }],
      quota: undefined,
    };
    const awayMs = (burst / rate) * 1000 + 20;
    const got = await rateOf(worst(plan, awayMs, 1, burst));
    const cycle = (awayMs + THERE_MS) / 1000;
    expect(got).toBeGreaterThan(rate);
    expect(got).toBeLessThanOrEqual(rate + burst / cycle);
  });

  it('let less than 1.81 times the capacity of a quota pass: 0.9 of the guaranteed part of B more for each', async () => {
    const [capacity, guaranteed] = [1000, 900];
    const apps = [{ name: 'a0', guaranteed, burst: 3000, priority: 0 as const }];
    const plan: HistoryPlan = { ...base, policies: [], quota: { capacity, unit: 1, apps } };
    const holds = 0.2 * capacity;
    const awayMs = (holds / capacity) * 1000 + 20;
    const got = await rateOf(worst(plan, awayMs, 1, holds));
    const cycle = (awayMs + THERE_MS) / 1000;
    // A return of the store costs more than it brings: in all the rate is below the capacity.
    expect(got).toBeGreaterThan(0.5 * capacity);
    expect(got).toBeLessThanOrEqual(capacity + (0.81 * holds) / cycle);
  });
});
