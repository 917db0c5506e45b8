import { type Clock } from '../../common/clock.js';
import {
  PUSHBACK,
  RESOURCE_EXHAUSTED,
  RETRY_AFTER,
  UNAVAILABLE,
  type GrpcMetadata,
} from './grpc-status.js';
import { servedStatusOf } from './status-reader.js';

/** A pushback that is forgotten costs one call that is refused again. */
const MOST_KEPT = 10_000;
/** Reasons are words of the server's, and so many are kept. */
const LONGEST_REASON = 64;

export interface Pushback {
  readonly code: number;
  /** The server's own, if it gave one: clients tell denials from failures by it. */
  readonly reason: string;
  readonly leftMs: number;
}

/** Remembers which calls a server does not want to see for a while. */
export class Pushbacks {
  private readonly known = new Map<string, Omit<Pushback, 'leftMs'> & { untilMicros: number }>();

  constructor(
    private readonly clock: Pick<Clock, 'now'>,
    private readonly longestMs: number,
  ) {}

  /** A server that said something absurd must not silence a client for good. */
  note(call: string, { code, metadata }: { code: number; metadata: GrpcMetadata }): void {
    if (code !== RESOURCE_EXHAUSTED && code !== UNAVAILABLE) return;
    // A negative pushback means "do not retry this one", and says nothing about others.
    const waitMs = millisecondsIn(metadata, PUSHBACK) ?? millisecondsIn(metadata, RETRY_AFTER);
    if (waitMs === undefined) return;
    const untilMicros = this.clock.now() + Math.min(waitMs, this.longestMs) * 1000;
    this.known.delete(call);
    this.known.set(call, { code, reason: reasonOf(code, metadata), untilMicros });
    if (this.known.size > MOST_KEPT) this.known.delete(this.known.keys().next().value!);
  }

  of(call: string): Pushback | undefined {
    const pushback = this.known.get(call);
    if (pushback === undefined) return undefined;
    const leftMs = Math.ceil((pushback.untilMicros - this.clock.now()) / 1000);
    if (leftMs > 0) return { code: pushback.code, reason: pushback.reason, leftMs };
    this.known.delete(call);
    return undefined;
  }
}

function reasonOf(code: number, metadata: GrpcMetadata): string {
  const said = servedStatusOf({ code, metadata })?.reason;
  if (said !== undefined && said.length <= LONGEST_REASON) return said;
  return code === UNAVAILABLE ? 'OVERLOADED' : 'RATE_LIMITED';
}

function millisecondsIn(metadata: GrpcMetadata, name: string): number | undefined {
  const said = String(metadata.get(name)[0]);
  return /^\d{1,15}$/.test(said) && Number(said) > 0 ? Number(said) : undefined;
}
