import { Redis } from 'ioredis';
import { startRedis } from '../../test/support/redis-server.js';
import { type Suite, type SuiteReport } from '../support/suite.js';
import { localDecisions } from './quota/local-decisions.js';
import { scriptTime } from './quota/script-time.js';
import { sharedDecisions } from './quota/shared-decisions.js';
import { storeCalls } from './quota/store-calls.js';

export const quota: Suite = {
  name: 'quota',
  about: 'decisions from leased tokens, and what the leases cost Redis',

  async run(context) {
    const reports: SuiteReport[] = [await localDecisions(context)];
    const server = await startRedis();
    const observer = new Redis(server.adminUrl);
    try {
      for (const part of [sharedDecisions, storeCalls, scriptTime]) {
        reports.push(await part({ url: server.adminUrl, observer }, context));
      }
    } finally {
      observer.disconnect();
      await server.stop();
    }
    return {
      series: reports.flatMap(({ series }) => series),
      absences: reports.flatMap(({ absences = [] }) => absences),
      bars: reports.flatMap(({ bars }) => bars),
      notes: reports.flatMap(({ notes = [] }) => notes),
    };
  },
};
