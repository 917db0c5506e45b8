/** What a process of the fleet is told to be. */
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
  /** When the call was made that all others are waited for. */
  | { readonly report: 'begun'; readonly number: number; readonly atMicros: number }
  /** When this process had it: the message in its hands, or the revision in use. */
  | { readonly report: 'got'; readonly number: number; readonly atMicros: number }
  | { readonly report: 'failed'; readonly reason: string };
