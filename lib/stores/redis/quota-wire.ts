import {
  type AppReply,
  type QuotaCall,
  type QuotaLimits,
  type QuotaReply,
  type Shortage,
} from '../../algorithms/quota/index.js';

/** Between the numbers that apps have in a process and those that they have in the ledger. */
export interface Places {
  /** Undefined if the ledger has no such app. */
  inLedger(app: number): number | undefined;
  inProcess(number: number): number;
  /** Stands for the ledger's numbers. */
  readonly digest: number;
}

/** What lease.lua answers: the reply, and for how many apps the ledger has numbers. */
export interface WireReply {
  readonly reply: QuotaReply;
  readonly apps: number;
}

/** By the number that the script gives them. */
const SHORTAGES: readonly Shortage[] = ['none', 'app', 'cluster'];
const SHORTEST_STATE_TTL_MS = 3_600_000;

/** A call as packed doubles, in the order of the header of lease.lua. Apps without a place are left out. */
export function packCall(call: QuotaCall, places: Places): Buffer {
  const { digest } = places;
  const figures = [digest, call.seq, call.seenEpoch, call.seenSequence, call.leaving ? 1 : 0];
  for (const entry of call.apps) {
    const number = places.inLedger(entry.app);
    if (number === undefined) continue;
    const { used, returned, demand, want, needs, refunded = 0, late, owed = 0 } = entry;
    figures.push(number, used, returned, demand, want, needs.length);
    figures.push(refunded, late?.tokens ?? 0, late?.takenMicros ?? 0, owed);
    for (const { cost, count } of needs) figures.push(cost, count);
  }
  return packed(figures);
}

/** Limits as packed doubles; the digest stands for the numbers of their apps. */
export function packLimits(limits: QuotaLimits, digest: number): Buffer {
  const { apps } = limits;
  return packed([
    limits.revision,
    digest,
    limits.capacity,
    limits.depth,
    limits.learningDepth,
    limits.maxCostUnits,
    limits.leaseTtlMicros,
    limits.paceMicros,
    limits.reserveTarget,
    limits.leaseBudget,
    stateTtlMs(limits),
    ...apps.map((app) => app.guaranteed),
    ...apps.map((app) => app.stockDepth),
    ...apps.flatMap((app) => [
      app.burst,
      app.weight,
      app.elastic ? 1 : 0,
      app.creditDepth,
      app.creditMicros,
      app.ceilingDepth,
      app.reserved,
    ]),
  ]);
}

export function packNumbers(numbers: readonly number[]): Buffer {
  return packed(numbers);
}

export function unpackReply(bytes: Buffer, places: Places): WireReply {
  let at = 0;
  const next = (): number => {
    const figure = bytes.readDoubleLE(at);
    at += 8;
    return figure;
  };
  const [epoch, sequence, nowMicros] = [next(), next(), next()];
  const overloaded = next() === 1;
  const [nodes, leaseCap, revision, leaseTtlMicros] = [next(), next(), next(), next()];
  const numbered = next();
  const apps: AppReply[] = [];
  while (at < bytes.length) {
    const [app, granted] = [places.inProcess(next()), next()];
    const shortage = SHORTAGES[next()]!;
    const [retryAfterMicros, remaining, appNodes, share] = [next(), next(), next(), next()];
    const needs = Array.from({ length: next() }, next);
    apps.push({
      app,
      granted,
      needs,
      shortage,
      retryAfterMicros,
      remaining,
      nodes: appNodes,
      share,
    });
  }
  const reply = {
    ...{ epoch, sequence, nowMicros, overloaded, nodes, leaseCap },
    ...{ revision, leaseTtlMicros, apps },
  };
  return { reply, apps: numbered };
}

/** Once all is full again and every lease is over, nothing is lost when the state is. */
function stateTtlMs({ capacity, depth, leaseTtlMicros, apps }: QuotaLimits): number {
  const toFill = capacity === 0 ? 0 : (2 * depth) / capacity;
  const longestCredit = Math.max(0, ...apps.map((app) => app.creditMicros));
  const micros = Math.max(toFill, longestCredit) + leaseTtlMicros;
  return Math.max(SHORTEST_STATE_TTL_MS, Math.ceil(micros / 1000));
}

function packed(figures: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(figures.length * 8);
  for (const [index, figure] of figures.entries()) bytes.writeDoubleLE(figure, index * 8);
  return bytes;
}
