import { clientAddress } from '../../lib/common/address.js';
import { Metadata } from '@grpc/grpc-js';
import {
  addressOfPeer,
  headerOfCall,
  valueOfMessage,
  type ServerCall,
} from '../../lib/transports/grpc/server-calls.js';

describe('addressOfPeer', () => {
  it.each([
    ['203.0.113.7:50123', '203.0.113.7'],
    ['ipv4:203.0.113.7:50123', '203.0.113.7'],
    ['203.0.113.7', '203.0.113.7'],
    ['::1:50123', '::1'],
    ['2001:db8::1:50123', '2001:db8::1'],
    ['2001:db8:1:2:3:4:5:6:50123', '2001:db8:1:2:3:4:5:6'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2:3:4:5:6'],
    ['::1', '::1'],
    ['::ffff:203.0.113.7:50123', '::ffff:203.0.113.7'],
    ['[2001:db8::1]:50123', '2001:db8::1'],
    ['ipv6:[2001:db8::1]:50123', '2001:db8::1'],
    ['fe80::1%eth0:50123', 'fe80::1%eth0'],
    ['unknown', undefined],
    ['unix:/run/shop.sock', undefined],
    ['', undefined],
  ])('finds in %s the address %s', (peer, address) => {
    expect(addressOfPeer(peer)).toBe(address);
  });

  it('gives a caller one key, whatever port it calls from', () => {
    const keys = ['2001:db8::1:50123', '2001:db8::1:7'].map((peer) =>
      clientAddress(addressOfPeer(peer)!),
    );
    expect(keys).toEqual(['2001:db8:0:0::/64', '2001:db8:0:0::/64']);
  });
});

describe('valueOfMessage', () => {
  const message = { sku: 'a', buyer: { id: 7 }, request: { sku: 'b' }, bytes: Buffer.from([1]) };

  it.each([
    ['sku', 'a'],
    ['request.sku', 'a'],
    ['request.request.sku', 'b'],
    ['buyer.id', 7],
    ['bytes', 'AQ=='],
    ['buyer.name', undefined],
    ['sku.length', undefined],
    ['__proto__', undefined],
    ['constructor.name', undefined],
    ['buyer.__proto__.constructor', undefined],
  ])('finds at %s the value %s', (path, value) => {
    expect(valueOfMessage(message, path.split('.'))).toBe(value);
  });

  it('finds nothing where there is no message', () => {
    expect(valueOfMessage(undefined, ['sku'])).toBeUndefined();
  });
});

describe('headerOfCall', () => {
  const metadata = new Metadata();
  metadata.add('x-client', 'one');
  metadata.add('x-client', 'two');
  metadata.add('a-bin', Buffer.from([0xff]));
  metadata.add('b-bin', Buffer.from([0xfe]));
  const call = { metadata } as unknown as ServerCall;

  it('counts what was sent twice as one, and tells bytes apart that are no text', () => {
    const values = ['x-client', 'a-bin', 'b-bin', 'none'].map((name) => headerOfCall(call, name));
    expect(values).toEqual(['one,two', '/w==', '/g==', undefined]);
  });
});
