import fc from 'fast-check';
import { type RateLimitedBody } from '../../lib/requests/rejections.js';
import { ProtobufWriter, statusDetails } from '../../lib/transports/grpc/status-details.js';
import { readStatus } from '../support/nest/google-rpc.js';
import protobuf from 'protobufjs';

const anything = fc.string({ unit: 'grapheme', maxLength: 200 });

describe('statusDetails', () => {
  it('is read by others as it was meant, whatever the texts and however long the wait', () => {
    fc.assert(
      fc.property(
        anything,
        anything.filter((text) => text !== ''),
        anything,
        fc.nat({ max: 3_155_760_000_000 }),
        (message, policy, domain, retryAfterMs) => {
          const body: RateLimitedBody = {
            ...{ status: 'error', statusCode: 429, code: 'RATE_LIMITED' },
            ...{ message, policy, retryAfterMs },
          };
          const status = readStatus(statusDetails(8, body, domain));
          const { RetryInfo, QuotaFailure, ErrorInfo } = status.details as {
            RetryInfo: { retryDelay: { seconds?: number; nanos?: number } };
            QuotaFailure: { violations: { subject: string }[] };
            ErrorInfo: { reason: string; domain?: string; metadata: { policy: string } };
          };
          const { seconds = 0, nanos = 0 } = RetryInfo.retryDelay;
          expect(seconds * 1000 + nanos / 1e6).toBe(retryAfterMs);
          expect(status).toMatchObject({ code: 8, ...(message !== '' && { message }) });
          expect(QuotaFailure.violations[0]?.subject).toBe(`policy:${policy}`);
          expect(ErrorInfo).toMatchObject({ reason: 'RATE_LIMITED', metadata: { policy } });
          expect(ErrorInfo.domain ?? '').toBe(domain);
        },
      ),
    );
  });
});

describe('ProtobufWriter', () => {
  const type = protobuf
    .parse('syntax = "proto3"; message Numbers { uint64 small = 1; uint64 far = 500; }')
    .root.lookupType('Numbers');

  it('writes every whole number that a number can be, in fields of any place', () => {
    const numbers = fc.oneof(
      fc.maxSafeNat(),
      fc.nat(300),
      fc.constantFrom(127, 128, 2 ** 31, 2 ** 32, 2 ** 53 - 1),
    );
    fc.assert(
      fc.property(numbers, numbers, (small, far) => {
        const bytes = new ProtobufWriter().uint(1, small).uint(500, far).finish();
        const read = type.toObject(type.decode(bytes), { longs: Number, defaults: true });
        expect(read).toEqual({ small, far });
      }),
    );
  });
});
