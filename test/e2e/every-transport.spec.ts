import { Logger } from '@nestjs/common';
import { NEST_MAJORS } from '../nest/nest-majors.js';
import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { stopAll } from '../support/index.js';
import { EXPECTATIONS, Visitor } from './expectations.js';
import { Host, TRANSPORTS } from './host.js';

// The same routes and the same expectations, whatever a request comes by. The applications are a
// process of their own, on the built package and on either Nest.
beforeAll(async () => {
  Logger.overrideLogger(false);
  await ensureBuilt();
}, BUILD_TIMEOUT_MS);
afterAll(stopAll);

describe.each(NEST_MAJORS)('on Nest %i', (major) => {
  let host: Host;

  beforeAll(async () => {
    host = await Host.start(major);
  }, 120_000);

  afterAll(() => host.stop());

  describe.each(TRANSPORTS[major])('over %s', (transport) => {
    it.each(Object.keys(EXPECTATIONS))('%s', async (what) => {
      await EXPECTATIONS[what]!(new Visitor(host.callOf(transport)));
    });
  });

  it('nothing was written to the log', () => {
    expect(host.written).toBe('');
  });
});
