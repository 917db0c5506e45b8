import { isDeepStrictEqual } from 'node:util';
import { Logger } from '@nestjs/common';
import { NEST_MAJORS } from '../support/nest/nest-majors.js';
import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { stopAll, until } from '../support/index.js';
import { EXPECTATIONS, Visitor } from './expectations.js';
import { Host, MESSAGES, TRANSPORTS, WITH_FALLBACKS } from './host.js';
import { passed } from './outcome.js';

// The same routes and the same expectations, whatever a request comes by. The applications are a
// process of their own, on the built package and on either Nest.
const hosts = new Map<number, Host>();

beforeAll(async () => {
  Logger.overrideLogger(false);
  await ensureBuilt();
  await Promise.all(NEST_MAJORS.map(async (major) => hosts.set(major, await Host.start(major))));
}, BUILD_TIMEOUT_MS);
afterAll(async () => {
  await Promise.all([...hosts.values()].map((host) => host.stop()));
  await stopAll();
});

describe.each(NEST_MAJORS)('on Nest %i', (major) => {
  const host = (): Host => hosts.get(major)!;

  describe.each(TRANSPORTS[major])('over %s', (transport) => {
    it.each(Object.keys(EXPECTATIONS))('%s', async (what) => {
      await EXPECTATIONS[what]!(new Visitor(host().callOf(transport)));
    });
  });

  it.each(MESSAGES[major])('events over %s are dropped and counted', async (wire) => {
    const client = host().clientOf(wire);
    for (let i = 0; i < 3; i++) await client.emit('event', { key: 'sender' });
    const expected = { seen: ['sender', 'sender'], dropped: { 'Events.event': 1 } };
    await until(async () => isDeepStrictEqual(await client.send('events', {}), expected), {
      timeoutMs: 20_000,
      what: 'two events to be seen and one to be dropped',
    });
  });

  it.each(WITH_FALLBACKS[major])('another answer is given over %s if there is one', async (one) => {
    const visitor = new Visitor(host().callOf(one));
    expect(await visitor.call('degraded')).toEqual(passed('simplified'));
  });

  it('the log tells of dropped events, of resources and of hidden errors, and of nothing else', () => {
    const expected = [
      /Events\.event: 1 event over/,
      /\d+ requests? without an answer \(BREAKER_OPEN\), the last one by resource "closed"/,
      /\[RateLimitAlerts\] .*warning breakerOpen: resource:closed: the breaker is open/,
      // A clock that is moved by a minute within a turn takes it for a long one.
      /\[Overload\] .*(has had no rest|has rested again|A turn of the event loop took)/,
      /\[RateLimitAlerts\] .*line: total: (requests stand in line|line is over)/,
      /Fallbacks\.degraded failed, and its caller got another answer: \S*BreakerOpenError/,
    ];
    const lines = host()
      .written.split('\n')
      .filter((line) => line !== '' && !expected.some((text) => text.test(line)));
    expect(lines).toEqual([]);
  });
});
