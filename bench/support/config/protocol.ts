/** The role of a process of the fleet. */
export interface MemberSetup {
  readonly url: string;
  readonly nodeId: string;
}

/** The clock of this machine, the same in all of its processes. */
export const sharedMicros = (): number => Number(process.hrtime.bigint() / 1000n);

/** A message on this channel is all that a bare subscriber waits for. */
export const BARE_CHANNEL = 'bench:bare';
export const BARE_KEY = 'bench:bare';

export type MemberOrder =
  | { readonly order: 'open'; readonly setup: MemberSetup }
  | { readonly order: 'publish' | 'update'; readonly number: number };

export type MemberReport =
  | { readonly report: 'opened' }
  /** The instant of the call that all others wait for. */
  | { readonly report: 'begun'; readonly number: number; readonly atMicros: number }
  /** The instant at which this process had the message, or used the revision. */
  | { readonly report: 'got'; readonly number: number; readonly atMicros: number }
  | { readonly report: 'failed'; readonly reason: string };
