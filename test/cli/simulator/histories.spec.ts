import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { historyOf, type History } from '../../../lib/cli/simulator/history/history.js';
import { runHistories } from '../../../lib/cli/simulator/history/run-histories.js';
import { runHistory } from '../../../lib/cli/simulator/history/run-history.js';
import { describeHistory, readHistory, shrink } from '../../../lib/cli/simulator/history/shrink.js';

const HISTORIES = 200;
/** All of these were lived through before, so a run that fails is never a matter of luck. */
const KNOWN = 3600;
/** Others each day, the same all day long. */
const today = Math.floor(Date.now() / 86_400_000);
const FIRST_SEED = Number(process.env.HISTORIES_SEED ?? 1 + ((today * HISTORIES) % KNOWN));

/** Each of these once broke a bound, or never got back to its rate; the first line says how. */
const DIRECTORY = fileURLToPath(new URL('histories/', import.meta.url));
const REGRESSIONS = readdirSync(DIRECTORY).map((file) => file.replace('.txt', ''));

describe('the whole path, through faults', () => {
  it.each(REGRESSIONS)('keeps its bounds in a history that broke one: %s', async (name) => {
    const history = readHistory(readFileSync(join(DIRECTORY, `${name}.txt`), 'utf8'));
    expect((await runHistory(history)).broken).toBeUndefined();
  });

  it(`keeps its bounds in ${HISTORIES} histories, from seed ${FIRST_SEED} on`, async () => {
    const shown: string[] = [];
    await runHistories(FIRST_SEED, HISTORIES, { log: (text) => void shown.push(text) });
    expect(shown.join('\n\n')).toBe('');
  }, 400_000);
});

describe('a history', () => {
  it('is the same every time', async () => {
    expect(historyOf(7)).toEqual(historyOf(7));
    expect(await runHistory(historyOf(7))).toEqual(await runHistory(historyOf(7)));
  });

  it('has as many events as were asked for, in order of time', () => {
    for (let seed = 1; seed <= 50; seed++) {
      const { events } = historyOf(seed);
      expect(events).toHaveLength(500);
      expect(events.map(({ atMs }) => atMs)).toEqual(
        events.map(({ atMs }) => atMs).sort((a, b) => a - b),
      );
    }
  });

  it('shrinks to the events that a failure needs, and is read back as it was', async () => {
    const isFault = (kind: string): boolean => kind === 'flush' || kind === 'acquire';
    const run = ({ events }: History) => {
      const acquires = events.filter(({ kind }) => isFault(kind)).length;
      const broken = acquires < 3 ? undefined : { check: 'bound', atMs: 1e9, detail: 'three' };
      return Promise.resolve({ broken });
    };
    const shrunk = await shrink(historyOf(3), run);
    expect(shrunk?.history.events).toHaveLength(3);
    expect(readHistory(describeHistory(shrunk!))).toEqual(shrunk!.history);
  });
});
