import { type ConsumptionTotal } from '../../algorithms/quota/consumption.js';
import { type QuotaLimits } from '../../algorithms/quota/quota-limits.js';
import { type QuotaCall } from '../../algorithms/quota/quota-protocol.js';
import { newAppState, newState, type LedgerAppState } from '../../algorithms/quota/quota-state.js';
import { type LedgerView } from '../../algorithms/quota/quota-status.js';

import { type AppNumbers } from './limits-record.js';

/** A name of an app has no such sign; a name of a method may, and comes last. */
const SEPARATOR = '|';
/** Where in the limits of the ledger the digest of its apps is. */
const DIGEST_AT = 8;

/** The fields, each with its figure, that a call adds to the hash of consumption. */
export function consumptionFields({ apps }: QuotaCall, names: readonly string[]): string[] {
  const fields: string[] = [];
  const add = (what: string, figure: number): number => fields.push(what, String(figure));
  for (const { app, consumption } of apps) {
    if (consumption === undefined) continue;
    const name = names[app]!;
    add(`cost${SEPARATOR}${name}`, consumption.cost);
    add(`count${SEPARATOR}${name}`, consumption.count);
    for (const { method, cost, count } of consumption.methods) {
      add(`cost${SEPARATOR}${name}${SEPARATOR}${method}`, cost);
      add(`count${SEPARATOR}${name}${SEPARATOR}${method}`, count);
    }
  }
  return fields;
}

/** The fields of the ledger that a view is made of: state, limits, shares, and one per app. */
export function viewFields(apps: number): (string | Buffer)[] {
  return [
    'state',
    'limits',
    'shares',
    ...Array.from({ length: apps }, (_, index) => fieldOf(index + 1)),
  ];
}

/** The ledger as lease.lua keeps it; see there for the order of the figures. */
export function viewOf(
  limits: QuotaLimits,
  [state, ledgerLimits, packedShares, ...appFields]: readonly (Buffer | null)[],
  consumed: Readonly<Record<string, string>>,
  numbers?: AppNumbers,
): LedgerView {
  const consumption = consumptionOf(limits, consumed);
  if (!state || !ledgerLimits || !isNumberedBy(numbers, ledgerLimits)) {
    return { limits, state: newState(limits, 0, 0, false), consumption };
  }
  const [last, level, outstanding, epoch, sequence, learning, overloaded, tick, , nodes, ...rest] =
    doublesOf(state);
  const [, , offset, ...stocks] = rest;
  const shares = doublesOf(packedShares ?? Buffer.alloc(0));
  const isLearning = last! < learning!;
  return {
    limits,
    consumption,
    state: {
      cluster: {
        lastMicros: last!,
        offsetMicros: offset!,
        level: level!,
        outstanding: outstanding!,
        epoch: epoch!,
        sequence: sequence!,
        learningUntil: learning!,
        overloaded: overloaded === 1,
        tickMicros: tick!,
      },
      apps: limits.apps.map((app, index) => {
        const bytes = appFields[index];
        // The ledger learns of new apps with its next tick.
        if (!bytes) return newAppState(app, last!, isLearning);
        return {
          ...appState(doublesOf(bytes)),
          stock: stocks[index] ?? 0,
          share: shares[index] ?? 0,
          shareRate: shares[shares.length / 2 + index] ?? 0,
        };
      }),
      leases: { size: nodes! },
    },
  };
}

/** Whether the ledger numbers the apps as the record does, or did before the last ones were added. */
function isNumberedBy(numbers: AppNumbers | undefined, ledgerLimits: Buffer): boolean {
  return numbers?.digests.includes(ledgerLimits.readDoubleLE(DIGEST_AT)) === true;
}

function appState(
  figures: readonly number[],
): Omit<LedgerAppState, 'stock' | 'share' | 'shareRate'> {
  const [credit, creditSince, room, outstanding, demand, nodes, , granted, used] = figures;
  return {
    credit: credit!,
    creditSince: creditSince!,
    room: room!,
    outstanding: outstanding!,
    demand: demand!,
    nodes: nodes!,
    granted: granted!,
    used: used!,
  };
}

/** The field of an app, which is called by its number from 1 on. */
function fieldOf(number: number): string | Buffer {
  return number < 256 ? Buffer.from([number]) : String(number);
}

function doublesOf(bytes: Buffer): number[] {
  return Array.from({ length: Math.floor(bytes.length / 8) }, (_, i) => bytes.readDoubleLE(8 * i));
}

function consumptionOf(
  limits: QuotaLimits,
  consumed: Readonly<Record<string, string>>,
): Map<number, ConsumptionTotal> {
  const totals = limits.apps.map((): ConsumptionTotal => {
    return { cost: 0, count: 0, methods: new Map() };
  });
  const indexOf = new Map(limits.apps.map(({ app }, index) => [app, index]));
  for (const [field, figure] of Object.entries(consumed)) {
    const [what, app = '', ...method] = field.split(SEPARATOR);
    const total = totals[indexOf.get(app) ?? -1];
    if (total === undefined || (what !== 'cost' && what !== 'count')) continue;
    if (method.length === 0) total[what] = Number(figure);
    else methodOf(total, method.join(SEPARATOR))[what] = Number(figure);
  }
  return new Map(totals.entries());
}

function methodOf({ methods }: ConsumptionTotal, name: string): { cost: number; count: number } {
  let use = methods.get(name);
  if (use === undefined) methods.set(name, (use = { cost: 0, count: 0 }));
  return use;
}
