import { type BinaryArgument } from '../../../stores/redis/scripts.js';
import { QuotaLedger } from '../../../algorithms/quota/quota-ledger.js';
import { compileQuota, type QuotaFigures } from '../../../algorithms/quota/quota-limits.js';
import {
  type AppCall,
  type QuotaCall,
  type QuotaReply,
} from '../../../algorithms/quota/quota-protocol.js';

/** The limits as seed-limits.lua keeps them. */
interface StoredLimits {
  readonly revision: number;
  readonly namesText: string;
  readonly names: readonly string[];
  readonly figures: QuotaFigures;
  readonly digests: readonly number[];
}

/** An error that the server answers with. */
export class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

/** Told of every token that a lease was given, or brought back, and of calls that are new. */
export interface LeaseWatch {
  moved(app: string, tokens: number): void;
  called(): void;
}

const SHORTAGES = ['none', 'app', 'cluster'];
/** Time between two looks of the ledger at the limits and at the server. */
const TICK_MICROS = 100_000;
const CLOCK_STEP_MICROS = 1_000_000;

/** The work of lua/lease.lua and lua/seed-limits.lua, by the ledger that they are held to. */
export class LeaseScripts {
  private record: StoredLimits | undefined;
  private ledger: QuotaLedger | undefined;
  /** The limits that the ledger goes by. */
  private held: StoredLimits | undefined;
  private lookedAt = 0;
  private runId = '';
  /** Replies whose tokens were told, and to which call: one that comes again gets no more. */
  private readonly told = new WeakMap<QuotaReply, number>();

  /** `heardSeq`: what a call gives back it gives back once, however often it comes. */
  constructor(readonly heardSeq = new Map<string, number>()) {}

  copy(): LeaseScripts {
    const copy = new LeaseScripts(this.heardSeq);
    copy.record = this.record;
    copy.ledger = this.ledger?.copy();
    copy.held = this.held;
    copy.lookedAt = this.lookedAt;
    copy.runId = this.runId;
    return copy;
  }

  seed(args: readonly BinaryArgument[]): [number, number, string, string] {
    const [, revisionText, known, namesText, figures, , digests, number] = args;
    const call = String(number);
    const revision = Number(revisionText);
    const held = this.record?.revision ?? -1;
    const heldNames = this.record?.namesText ?? '';
    if (held >= revision || heldNames !== String(known)) return [0, held, heldNames, call];
    this.record = {
      revision,
      namesText: String(namesText),
      names: JSON.parse(String(namesText)) as string[],
      figures: JSON.parse(String(figures)) as QuotaFigures,
      digests: doublesOf(digests as Buffer),
    };
    return [1, revision, this.record.namesText, call];
  }

  settle(
    args: readonly BinaryArgument[],
    serverNow: number,
    runId: string,
    watch: LeaseWatch,
  ): Buffer {
    const [, , , , nameText, packed, injected] = args;
    const name = String(nameText);
    const figures = doublesOf(packed as Buffer);
    const call = callOf(name, figures);
    const now = injected === '' ? serverNow : Number(injected);
    const ledger = this.ledgerFor(now, figures[0]!, call, runId);
    const { names } = this.held!;
    const reply = ledger.settle(now, call);
    const isFirst = call.seq > (this.heardSeq.get(name) ?? 0);
    this.heardSeq.set(name, Math.max(call.seq, this.heardSeq.get(name) ?? 0));
    const tell = (app: number, tokens: number): void => watch.moved(names[app]!, tokens);
    if (isFirst) {
      tellBack(call, tell);
      watch.called();
    }
    if (!this.told.has(reply)) {
      tellGranted(call, reply, tell);
      this.told.set(reply, call.seq);
    }
    return packReply(this.told.get(reply)!, reply, names.length);
  }

  /** Fields of the ledger as lease.lua packs them, as far as anybody reads them; null for what is not there. */
  fields(names: readonly BinaryArgument[]): (Buffer | null)[] {
    const state = this.ledger?.peek();
    if (state === undefined) return names.map(() => null);
    const { cluster, apps, leases } = state;
    const demand = apps.reduce((sum, app) => sum + app.demand, 0);
    return names.map((name) => {
      if (name === 'limits') return packed([this.held!.revision, this.held!.digests.at(-1) ?? 0]);
      if (name === 'shares') {
        return packed([...apps.map((app) => app.share), ...apps.map((app) => app.shareRate)]);
      }
      if (name === 'state') {
        return packed([
          ...[cluster.lastMicros, cluster.level, cluster.outstanding, cluster.epoch],
          ...[cluster.sequence, cluster.learningUntil, cluster.overloaded ? 1 : 0],
          ...[cluster.tickMicros, demand, leases.size, 0, this.lookedAt, cluster.offsetMicros],
          ...apps.map((app) => app.stock),
        ]);
      }
      const app = apps[(Buffer.isBuffer(name) ? name[0]! : Number(name)) - 1];
      if (app === undefined) return null;
      const { credit, creditSince, room, outstanding, nodes, granted, used } = app;
      const asOf = cluster.lastMicros;
      return packed([
        credit,
        creditSince,
        room,
        outstanding,
        app.demand,
        nodes,
        asOf,
        granted,
        used,
      ]);
    });
  }

  /** The ledger as it is to be when a call of that numbering comes in. */
  private ledgerFor(now: number, digest: number, call: QuotaCall, runId: string): QuotaLedger {
    const { held } = this;
    const lastApp = Math.max(-1, ...call.apps.map(({ app }) => app));
    const isDue =
      this.ledger === undefined ||
      now - this.lookedAt >= TICK_MICROS ||
      // The ledger goes on from where it was when the clock has stepped back.
      this.lookedAt - now > CLOCK_STEP_MICROS ||
      held?.digests.at(-1) !== digest ||
      lastApp >= held.names.length;
    if (!isDue) return this.ledger!;
    const { record } = this;
    if (record === undefined) throw new ReplyError('NOT_CONFIGURED the cluster has no limits yet');
    if (!record.digests.some((one, index) => one === digest && lastApp <= index)) {
      throw new ReplyError('OTHER_APPS the apps have other numbers than the node knows of');
    }
    const limits = compileQuota(record.figures, record.names, record.revision);
    if (this.ledger === undefined) this.ledger = new QuotaLedger(limits);
    else if (held !== record) this.ledger.change(now, limits);
    if (this.runId !== '' && this.runId !== runId) this.ledger.distrust(now, call.seenEpoch);
    this.held = record;
    this.runId = runId;
    this.lookedAt = now;
    return this.ledger;
  }
}

/** Figures of an app before those of its needs. */
const ENTRY_SIZE = 10;
type Four = [number, number, number, number];
type Six = [number, number, number, number, number, number];

function callOf(name: string, figures: readonly number[]): QuotaCall {
  const [incarnation, ...node] = name.split(':');
  const apps: AppCall[] = [];
  for (let at = 5; at < figures.length;) {
    const [app, used, returned, demand, want, groups] = figures.slice(at) as Six;
    const [refunded, tokens, takenMicros, owed] = figures.slice(at + 6) as Four;
    at += ENTRY_SIZE;
    const needs = Array.from({ length: groups }, (_, group) => {
      return { cost: figures[at + 2 * group]!, count: figures[at + 2 * group + 1]! };
    });
    at += 2 * groups;
    const late = tokens > 0 ? { tokens, takenMicros } : undefined;
    apps.push({ app, used, returned, refunded, late, owed, demand, want, needs });
  }
  return {
    node: node.join(':'),
    incarnation: incarnation!,
    seq: figures[1]!,
    seenEpoch: figures[2]!,
    seenSequence: figures[3]!,
    leaving: figures[4] === 1,
    apps,
  };
}

function tellBack({ apps }: QuotaCall, moved: (app: number, tokens: number) => void): void {
  for (const { app, returned, refunded = 0, late } of apps) {
    moved(app, -returned - refunded - (late?.tokens ?? 0));
  }
}

function tellGranted(
  { apps }: QuotaCall,
  reply: QuotaReply,
  moved: (app: number, tokens: number) => void,
): void {
  for (const { app, granted, needs } of reply.apps) {
    const asked = apps.find((one) => one.app === app)!;
    moved(
      app,
      needs.reduce((sum, passed, i) => sum + passed * asked.needs[i]!.cost, granted),
    );
  }
}

function packReply(seq: number, reply: QuotaReply, numbered: number): Buffer {
  const { epoch, sequence, nowMicros, overloaded, nodes, leaseCap, revision } = reply;
  const figures = [seq, epoch, sequence, nowMicros, overloaded ? 1 : 0, nodes, leaseCap, revision];
  figures.push(reply.leaseTtlMicros, numbered);
  for (const one of reply.apps) {
    figures.push(one.app, one.granted, SHORTAGES.indexOf(one.shortage), one.retryAfterMicros);
    figures.push(one.remaining, one.nodes, one.share, one.needs.length, ...one.needs);
  }
  return packed(figures);
}

function packed(figures: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(figures.length * 8);
  figures.forEach((figure, index) => bytes.writeDoubleLE(figure, index * 8));
  return bytes;
}

function doublesOf(bytes: Buffer): number[] {
  return Array.from({ length: Math.floor(bytes.length / 8) }, (_, i) => bytes.readDoubleLE(8 * i));
}
