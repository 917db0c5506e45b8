import { type ContenderName } from '../contenders/index.js';
import { atMost } from '../support/bars.js';
import { ContenderProcess } from '../support/contender-process.js';
import { type FootprintJob } from '../support/protocol.js';
import { inRounds } from '../support/rounds.js';
import { median } from '../support/statistics.js';
import { type Series, type Suite } from '../support/suite.js';

const KEY_COUNTS = [100_000, 1_000_000];
const BARRED_KEY_COUNT = 1_000_000;
const MOST_BYTES = 150;
const METRIC = 'bytes/key';
const BASELINE = 'Map of objects';

/** Few rounds are enough: bytes do not depend on how busy the machine is. */
const ROUNDS = 5;

const CONTENDERS: ReadonlyMap<string, ContenderName> = new Map([
  [BASELINE, 'floor'],
  ['weir', 'weir'],
  ['rate-limiter-flexible', 'rate-limiter-flexible'],
  ['@nestjs/throttler', 'nestjs-throttler'],
  ['express-rate-limit', 'express-rate-limit'],
]);

export const footprint: Suite = {
  name: 'footprint',
  about: 'bytes of heap and array buffers that a key takes, its own string included',

  async run(context) {
    const series: Series[] = [];
    for (const keys of KEY_COUNTS) {
      const caseName = `${keys.toLocaleString('en')} keys`;
      const taken = await inRounds([...CONTENDERS], ROUNDS, ([label, contender], round) => {
        context.progress(caseName, `round ${round + 1} of ${ROUNDS}, ${label}`);
        return bytesPerKey(contender, keys);
      });
      const byLabel = new Map([...taken].map(([[label], bytes]) => [label, bytes]));
      for (const [contender, values] of byLabel) {
        const baseline = byLabel.get(BASELINE);
        series.push({ case: caseName, contender, metric: METRIC, values, baseline });
      }
    }
    const barred = `${BARRED_KEY_COUNT.toLocaleString('en')} keys`;
    const weir = series.find((one) => one.case === barred && one.contender === 'weir');
    const found = median(weir?.values ?? []);
    return {
      series,
      bars: [atMost(`${barred}: weir ≤ ${MOST_BYTES} ${METRIC}`, found, MOST_BYTES)],
    };
  },
};

async function bytesPerKey(contender: ContenderName, keys: number): Promise<number> {
  // Long enough that no key has recovered, and so could be dropped, before it is counted.
  const options = { keys, limit: 100, periodMs: 24 * 86_400_000 };
  const job: FootprintJob = { kind: 'footprint', contender, options };
  const running = await ContenderProcess.start(job);
  try {
    return (await running.measure()).bytesPerKey;
  } finally {
    await running.stop();
  }
}
