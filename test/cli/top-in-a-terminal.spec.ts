import { join } from 'node:path';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { startRedis, stopAll, until, withRedis } from '../support/index.js';
import { exited, spawnOwned } from '../support/processes.js';
import { quietFleet } from '../observability/snapshots.js';

const ESC = '\u001b';
const SCREEN_ON = `${ESC}[?1049h`;
const SCREEN_OFF = `${ESC}[?1049l`;

describe('weir top in a terminal of the system', () => {
  beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
  afterAll(stopAll);

  it.each([
    ['q', 'q'],
    ['Ctrl-C', '\u0003'],
  ])('draws its screen, obeys its keys, and gives it back at %s', async (_, key) => {
    const redis = await startRedis();
    const text = JSON.stringify({ v: 1, ...quietFleet() });
    await withRedis(redis.port, (client) => client.set('weir:{monitor}:merged', text));
    const command = `${process.execPath} ${join(root, 'bin/weir.mjs')} top --url ${redis.url}`;
    // A pseudo terminal, as a person has it; its size is told to it.
    const child = spawnOwned(
      'script',
      ['-qec', `stty rows 24 cols 80; ${command}; echo "code $?"; stty -a`, '/dev/null'],
      { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, TERM: 'xterm' } },
    );
    let shown = '';
    child.stdout!.setEncoding('utf8').on('data', (part: string) => (shown += part));
    await until(() => shown.includes('All quiet: 12 nodes'), { what: 'the screen' });
    expect(shown).toContain(SCREEN_ON);
    // Each line is written at its place; what is left without the signs for the terminal is what one reads.
    const lines = shown.slice(shown.indexOf(SCREEN_ON)).split(new RegExp(`${ESC}\\[\\d+;1H`));
    const signs = new RegExp(`${ESC}\\[[\\d;?]*[A-Za-z]`, 'g');
    const widths = lines.map((line) => [...line.replaceAll(signs, '')].length);
    expect(lines.length).toBeGreaterThan(5);
    expect(lines.length).toBeLessThanOrEqual(25);
    expect(Math.max(...widths)).toBeLessThanOrEqual(80);
    const before = shown.length;
    child.stdin!.write('?');
    await until(() => shown.slice(before).includes('sort by the next column'), {
      what: 'the help',
    });
    child.stdin!.write(key);
    await exited(child);
    const after = shown.slice(shown.lastIndexOf(SCREEN_OFF));
    expect(after.startsWith(SCREEN_OFF)).toBe(true);
    // The terminal is as it was: lines are echoed, and keys are its own again.
    expect(after).toMatch(/code \d+/);
    expect(after).toMatch(/ icanon /);
    expect(after).toMatch(/ echo /);
  });
});
