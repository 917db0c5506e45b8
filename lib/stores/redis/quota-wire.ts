import { createHash } from 'node:crypto';
import { type QuotaLimits } from '../../algorithms/quota/quota-limits.js';
import {
  type AppReply,
  type QuotaCall,
  type QuotaReply,
  type Shortage,
} from '../../algorithms/quota/quota-protocol.js';
import { leaseName } from '../../algorithms/quota/quota-state.js';

/** Between the numbers that apps have in a process and those that they have in the ledger. */
export interface AppNumbering {
  /** Undefined if the ledger has no such app. */
  inLedger(app: number): number | undefined;
  inProcess(number: number): number;
  /** Stands for the ledger's numbers. */
  readonly digest: number;
}

/** The answer of lease.lua: the reply, and for how many apps the ledger has numbers. */
export interface WireReply {
  readonly reply: QuotaReply;
  readonly apps: number;
}

/** By the number that the script gives them. */
const SHORTAGES: readonly Shortage[] = ['none', 'app', 'cluster'];
const SHORTEST_STATE_TTL_MS = 3_600_000;

/** A call as packed doubles, in the order of the header of lease.lua. Apps without a number are left out. */
export function packCall(call: QuotaCall, numbers: AppNumbering): Buffer {
  const { seenEpoch, seenSequence, leaving } = call;
  const figures = [numbers.digest, wireSeq(call), seenEpoch, seenSequence, leaving ? 1 : 0];
  for (const entry of call.apps) {
    const number = numbers.inLedger(entry.app);
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

/** So many bits of a digest, and a seq on top of them, are a whole number in a double. */
const DIGEST_BYTES = 6;

/** The seq of a call, counted from a number that its incarnation has for itself. */
function wireSeq(call: QuotaCall): number {
  const digest = createHash('sha256').update(leaseName(call)).digest();
  return digest.readUIntBE(0, DIGEST_BYTES) + call.seq;
}

/**
 * The reply of lease.lua; undefined if the bytes are not the whole reply to this very call. A call that was
 * settled before all of its apps were known is answered for fewer of them, but in their order.
 */
export function unpackReply(
  bytes: unknown,
  call: QuotaCall,
  numbers: AppNumbering,
): WireReply | undefined {
  if (!Buffer.isBuffer(bytes) || bytes.length % 8 !== 0) return undefined;
  let at = 0;
  let isWhole = true;
  const next = (): number => {
    const figure = at < bytes.length ? bytes.readDoubleLE(at) : NaN;
    at += 8;
    if (!Number.isFinite(figure)) isWhole = false;
    return figure;
  };
  if (next() !== wireSeq(call)) return undefined;
  const [epoch, sequence, nowMicros] = [next(), next(), next()];
  const overloaded = next() === 1;
  const [nodes, leaseCap, revision, leaseTtlMicros] = [next(), next(), next(), next()];
  const numbered = next();
  let asked = 0;
  const apps: AppReply[] = [];
  while (isWhole && at < bytes.length) {
    const [app, granted] = [numbers.inProcess(next()), next()];
    const shortage = SHORTAGES[next()];
    const [retryAfterMicros, remaining, appNodes, share] = [next(), next(), next(), next()];
    while (asked < call.apps.length && call.apps[asked]!.app !== app) asked++;
    const appCall = call.apps[asked++];
    const groups = next();
    if (shortage === undefined || groups !== appCall?.needs.length) return undefined;
    if (granted < 0 || granted > appCall.want) return undefined;
    const needs = appCall.needs.map(next);
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
  return isWhole ? { reply, apps: numbered } : undefined;
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
