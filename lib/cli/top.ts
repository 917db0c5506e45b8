import { type Cancel, type Clock } from '../common/clock.js';
import { StoreUnavailableError, withoutSecrets } from '../common/errors.js';
import { withoutSteering } from '../common/quoted.js';
import { decodeMerged, unreadableText } from '../observability/fleet/merged.js';
import { type Unreadable } from '../observability/fleet/snapshot.js';
import { type FleetState } from '../observability/state.js';
import { verdict } from '../observability/verdict.js';
import { RedisBoard } from '../stores/redis/redis-board.js';
import { readArguments, FLAG } from './arguments.js';
import { DONE, FAILED, type Command, type Output } from './command.js';
import { STORE_HELP, STORE_OPTIONS, withStore } from './store-options.js';
import { type Terminal } from './terminal.js';
import {
  topFrame,
  topText,
  VIEWS,
  type ScreenLine,
  type Style,
  type TopState,
} from './top-frame.js';

const PERIOD_MS = 1000;
const WATCH_KEPT_MS = 15_000;
const MOST_RATES = 60;
const LONGEST_FILTER = 40;

export const top: Command = {
  name: 'top',
  takes: '',
  about: 'watch the fleet: what it decides, whom it limits, and what is wrong',
  options: [
    '--once            one table, and no more; also where the output is not a terminal',
    ...STORE_HELP.filter((text) => !text.startsWith('--json')),
    '--json            for machines: a line each second',
  ],
  more: ['Keys: 1 to 6 views, s sort, / filter, p pause, ? help, q quit. NO_COLOR is respected.'],
  run(args, output, terminal) {
    const options = { ...STORE_OPTIONS, once: FLAG } as const;
    const { values } = readArguments(args, options, [0, 0]);
    return withStore(values, async ({ connection, prefix, clock, config }) => {
      // The first answer says whether there is a store at all.
      await config.read();
      const { client } = connection;
      const board = new RedisBoard({ client, prefix }, clock);
      try {
        const read = async (): Promise<Seen> => {
          await board.set('watch', '1', WATCH_KEPT_MS);
          const text = await board.get('merged');
          return text === undefined ? undefined : decodeMerged(text);
        };
        const isOnce = values.once === true || (!values.json && !terminal.isTerminal);
        if (isOnce) return showOnce(await read(), values.json === true, output);
        if (values.json) return await writeLines({ read, clock, terminal, output });
        return await new Top(read, terminal, clock).run();
      } finally {
        board.close();
      }
    });
  },
};

/** The figures that processes have written lately. */
type Seen = FleetState | Unreadable | undefined;

function showOnce(seen: Seen, isJson: boolean, output: Output): number {
  const fleet = typeof seen === 'string' ? undefined : seen;
  if (isJson) output.log(fleet === undefined ? 'null' : jsonOf(fleet));
  else if (fleet !== undefined) output.log(topText({ ...FIRST, fleet, rates: [rateOf(fleet)] }));
  if (fleet !== undefined) return DONE;
  output.error(
    typeof seen === 'string'
      ? `Nothing can be shown: ${unreadableText(seen)}.`
      : 'No process has written figures in the last seconds (is one running, with this --prefix?).',
  );
  return FAILED;
}

const jsonOf = (fleet: FleetState): string => JSON.stringify({ verdict: verdict(fleet), ...fleet });

interface LinesDeps {
  readonly read: () => Promise<Seen>;
  readonly clock: Pick<Clock, 'after'>;
  readonly terminal: Pick<Terminal, 'onEnd'>;
  readonly output: Output;
}

/** Figures that are the same as a second ago are not told again. */
export async function writeLines({ read, clock, terminal, output }: LinesDeps): Promise<number> {
  let code: number | undefined;
  let wake: () => void = () => {};
  const stop = terminal.onEnd((ended) => {
    code = ended;
    wake();
  });
  let toldMs = 0;
  try {
    while (code === undefined) {
      const seen = await read();
      const fleet = typeof seen === 'string' ? undefined : seen;
      if (fleet !== undefined && fleet.atMs !== toldMs) output.log(jsonOf(fleet));
      toldMs = fleet?.atMs ?? 0;
      await new Promise<void>((resolve) => {
        const cancel = clock.after(PERIOD_MS, resolve);
        wake = () => {
          cancel();
          resolve();
        };
        if (code !== undefined) wake();
      });
    }
  } finally {
    stop();
  }
  return code;
}

const rateOf = ({ series }: FleetState): number =>
  series.find(({ name }) => name === 'total')?.rate ?? 0;

const FIRST: TopState = {
  ...{ fleet: undefined, rates: [], ageS: 0, fault: undefined, view: 'overview' },
  ...{ sortBy: undefined, filter: '', isTyping: false, isPaused: false, showsHelp: false },
};

const SGR: Readonly<Record<Style, string>> = {
  ...{ plain: '', strong: '\u001b[1m', dim: '\u001b[2m', good: '\u001b[32m' },
  ...{ info: '\u001b[36m', warning: '\u001b[33m', bad: '\u001b[31m' },
};
const RESET = '\u001b[0m';

/** The screen, and what keys do to it. One write for each frame, of the lines that have changed. */
export class Top {
  private state: TopState = FIRST;
  private shown: string[] = [];
  private heardMicros: number;
  private stopTicks: Cancel | undefined;
  private isReading = false;
  private end: (code: number) => void = () => {};

  constructor(
    private readonly read: () => Promise<Seen>,
    private readonly terminal: Terminal,
    private readonly clock: Pick<Clock, 'now' | 'every'>,
  ) {
    this.heardMicros = clock.now();
  }

  /** Resolves to the exit code when somebody quits. */
  async run(): Promise<number> {
    const ended = new Promise<number>((resolve) => (this.end = resolve));
    const close = this.terminal.open({
      key: (key) => this.key(key),
      resize: () => {
        this.shown = [];
        this.draw('\u001b[2J');
      },
      ended: (code) => this.end(code),
    });
    try {
      this.stopTicks = this.clock.every(PERIOD_MS, () => void this.tick());
      await this.tick();
      return await ended;
    } finally {
      this.stopTicks?.();
      close();
    }
  }

  private async tick(): Promise<void> {
    if (this.isReading || this.state.isPaused) return;
    this.isReading = true;
    try {
      const seen = await this.read();
      if (!this.state.isPaused) this.take(seen);
    } catch (error) {
      const fault = error instanceof StoreUnavailableError ? error.message : String(error);
      this.change({ fault: withoutSecrets(withoutSteering(fault)), ageS: this.ageS() });
    } finally {
      this.isReading = false;
    }
  }

  private take(fleet: Seen): void {
    const { rates, fleet: before } = this.state;
    // The last frame stays, and is known to be old.
    if (fleet === undefined || typeof fleet === 'string') {
      const fault = fleet && unreadableText(fleet);
      return this.change({ fault, ageS: this.ageS() });
    }
    const isNew = fleet.atMs !== before?.atMs;
    if (isNew) this.heardMicros = this.clock.now();
    const seen = isNew ? [...rates, rateOf(fleet)].slice(-MOST_RATES) : rates;
    this.change({ fleet, rates: seen, fault: undefined, ageS: this.ageS() });
  }

  private ageS(): number {
    return (this.clock.now() - this.heardMicros) / 1_000_000;
  }

  private key(key: string): void {
    const { state } = this;
    if (state.isTyping) return this.type(key);
    if (key === 'q') return this.end(DONE);
    const view = VIEWS[Number(key) - 1];
    if (view !== undefined) return this.change({ view, sortBy: undefined, showsHelp: false });
    if (key === 's') return this.change({ sortBy: (state.sortBy ?? -1) + 1 });
    if (key === '/') return this.change({ isTyping: true, filter: '' });
    if (key === 'p') return this.change({ isPaused: !state.isPaused });
    if (key === '?') return this.change({ showsHelp: !state.showsHelp });
    if (key === '\u001b') return this.change({ filter: '', showsHelp: false });
  }

  private type(key: string): void {
    const { filter } = this.state;
    if (key === '\r' || key === '\n') return this.change({ isTyping: false });
    if (key === '\u001b') return this.change({ isTyping: false, filter: '' });
    if (key === '\u007f' || key === '\b') return this.change({ filter: filter.slice(0, -1) });
    const text = withoutSteering(key);
    if (text !== '' && !key.startsWith('\u001b')) {
      this.change({ filter: `${filter}${text}`.slice(0, LONGEST_FILTER) });
    }
  }

  private change(next: Partial<TopState>): void {
    this.state = { ...this.state, ...next };
    this.draw();
  }

  private draw(before = ''): void {
    const { columns, rows, hasColors } = this.terminal;
    const lines = topFrame(this.state, columns, rows).map((one) => written(one, hasColors));
    const changed = Array.from({ length: Math.max(lines.length, this.shown.length) }, (_, row) => {
      const text = lines[row] ?? '';
      return text === this.shown[row] ? '' : `\u001b[${row + 1};1H${text}\u001b[K`;
    }).join('');
    this.shown = lines;
    if (before !== '' || changed !== '') this.terminal.write(before + changed);
  }
}

function written({ text, style }: ScreenLine, hasColors: boolean): string {
  return hasColors && SGR[style] !== '' ? `${SGR[style]}${text}${RESET}` : text;
}
