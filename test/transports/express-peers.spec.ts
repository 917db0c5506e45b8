import express from 'express';
import fc from 'fast-check';
import { ExpressPeers } from '../../lib/transports/http/express-peers.js';
import { type HttpRequest } from '../../lib/transports/shared/requests.js';

type Application = ReturnType<typeof express>;

const requestTo = (app: Application, peer: string | undefined, forwardedFor?: string) =>
  Object.assign(Object.create(app.request) as HttpRequest, {
    headers: { 'x-forwarded-for': forwardedFor },
    socket: { remoteAddress: peer },
  });

const address = fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom('127.0.0.1', '10.1.2.3', '::1'));
const trusts = fc.constantFrom(
  ...[false, true, 0, 1, 2, 'loopback', '10.0.0.0/8', ['127.0.0.1', '10.1.2.3']],
  (peer: string, hop: number) => hop === 0 && peer.endsWith('1'),
);

describe('the address of a caller of Express', () => {
  it('is what Express says, whoever is trusted', () => {
    const peers = new ExpressPeers();
    fc.assert(
      fc.property(
        trusts,
        address,
        fc.option(fc.array(fc.oneof(address, fc.constantFrom('', 'unknown', ' ')))),
        (trust, peer, told) => {
          const app = express().set('trust proxy', trust);
          const request = requestTo(app, peer, told?.join(', '));
          expect(peers.of(request) ?? request.ip).toBe(request.ip);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('is known without what proxies have said, unless their word counts', () => {
    const app = express();
    const peers = new ExpressPeers();
    expect(peers.of(requestTo(app, '192.0.2.1', '203.0.113.7'))).toBe('192.0.2.1');
    app.set('trust proxy', 1);
    expect(peers.of(requestTo(app, '192.0.2.1', '203.0.113.7'))).toBeUndefined();
    app.set('trust proxy', false);
    expect(peers.of(requestTo(app, undefined))).toBeUndefined();
  });

  it('is left to an application that has one of its own', () => {
    const app = express();
    const peers = new ExpressPeers();
    const request = requestTo(app, '192.0.2.1');
    expect(peers.of(request)).toBe('192.0.2.1');
    Object.defineProperty(request, 'ip', { value: '198.51.100.9' });
    expect(peers.of(request)).toBeUndefined();

    const another = express();
    Object.defineProperty(another.request, 'ip', { get: () => '198.51.100.9' });
    expect(peers.of(requestTo(another, '192.0.2.1'))).toBeUndefined();
    expect(peers.of({ ip: '198.51.100.9', method: 'GET', headers: {} })).toBeUndefined();
    expect(peers.of(Object.create(null) as HttpRequest)).toBeUndefined();
  });
});
