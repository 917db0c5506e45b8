import {
  type CallKind,
  type RemoteAnswer,
  type RemoteCall,
  type RemoteStore,
} from '../stores/remote-store.js';
import { type BoundCheck } from './remembered-denial.js';

/** Asks the store something other than a take. Resolves to undefined if it could not answer. */
export function callStore(
  store: RemoteStore,
  kind: CallKind.Peek | CallKind.Refund | CallKind.LateRefund,
  checks: readonly BoundCheck[],
  takenAtMicros?: number,
): Promise<readonly RemoteAnswer[] | undefined> {
  return new Promise((resolve) => {
    const call: RemoteCall = {
      kind,
      checks,
      ...(takenAtMicros !== undefined && { takenAtMicros }),
      settled: resolve,
      failed: () => resolve(undefined),
      settledLate: () => {},
    };
    store.submit(call);
  });
}
