import { EventEmitter, once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Viewers, type FrameEvents } from '../../lib/dashboard/viewers.js';
import { ManualClock } from '../support/manual-clock.js';

/** A response whose reader is as slow as the test wants it. */
class FakeResponse extends EventEmitter {
  statusCode = 0;
  readonly written: string[] = [];
  isReading = true;
  isDestroyed = false;
  isEnded = false;

  setHeader(): void {}
  removeHeader(): void {}
  write(part: Buffer | string): boolean {
    this.written.push(part.toString());
    return this.isReading;
  }
  end(): void {
    this.isEnded = true;
  }
  destroy(): void {
    this.isDestroyed = true;
  }
}

const frameOf = (sequence: number, state: Buffer | string, tick = state): FrameEvents => ({
  ...{ sequence, state: () => Buffer.from(state), tick: () => Buffer.from(tick) },
});

const refuse = (): never => {
  throw new Error('no JSON');
};
const UNREADABLE: FrameEvents = { sequence: 0, state: refuse, tick: refuse };

const stand = (most = 100) => {
  const clock = new ManualClock();
  let made = 0;
  let madeMicros: number | undefined;
  let stops = 0;
  const tasks = new Set<() => void>();
  const faults: unknown[] = [];
  const store = { isBroken: false, isUnreadable: false };
  const viewers = new Viewers({
    clock,
    most,
    failed: (error) => faults.push(error),
    eachSecond: (task) => {
      tasks.add(task);
      return () => {
        stops++;
        tasks.delete(task);
      };
    },
    // New each second, as that of the page.
    frame: () => {
      if (store.isBroken) return Promise.reject(new Error('no frame'));
      if (madeMicros !== clock.now()) made++;
      madeMicros = clock.now();
      if (store.isUnreadable) return Promise.resolve(UNREADABLE);
      return Promise.resolve(frameOf(made, `state ${made}\n`, `tick ${made}\n`));
    },
  });
  const enter = async (isReading = true): Promise<FakeResponse> => {
    const response = new FakeResponse();
    await viewers.add(response as unknown as ServerResponse);
    response.isReading = isReading;
    return response;
  };
  const second = async (): Promise<void> => {
    clock.advance(1000);
    await viewers.tick();
  };
  return { viewers, enter, second, tasks, store, faults, made: () => made, stops: () => stops };
};

describe('viewers of the dashboard', () => {
  it('get all of a frame first, then the changes of each second', async () => {
    const { enter, second } = stand();
    const all = [await enter(), await enter()];
    await second();
    all.push(await enter());
    await second();
    const [first, , late] = all.map(({ written }) => written.slice(1));
    expect(first).toEqual(['state 1\n', 'tick 2\n', 'tick 3\n']);
    expect(late).toEqual(['state 2\n', 'tick 3\n']);
  });

  it('are not sent a frame twice', async () => {
    const { enter, viewers } = stand();
    const one = await enter();
    await viewers.tick();
    expect(one.written.slice(1)).toEqual(['state 1\n']);
  });

  it('cost nothing while there are none', async () => {
    const { enter, tasks, stops } = stand();
    expect(tasks.size).toBe(0);
    const one = await enter();
    expect(tasks.size).toBe(1);
    one.emit('close');
    expect([tasks.size, stops()]).toEqual([0, 1]);
  });

  it('that do not read are passed over, get the latest when they read again, and nothing is kept', async () => {
    const { enter, second, viewers } = stand();
    const slow = await enter(false);
    await second();
    const full = slow.written.length;
    for (let n = 0; n < 5; n++) await second();
    expect(slow.written).toHaveLength(full);
    expect(viewers.skipped).toBe(5);
    slow.isReading = true;
    slow.emit('drain');
    await second();
    // Changes of a frame that it has not had would tell it nothing.
    expect(slow.written.slice(full)).toEqual(['state 8\n']);
    await second();
    expect(slow.written.slice(full)).toEqual(['state 8\n', 'tick 9\n']);
    expect(slow.isDestroyed).toBe(false);
  });

  it('that do not read for ten seconds are cut, and the others notice nothing', async () => {
    const { enter, second, viewers } = stand();
    const [dead, well] = [await enter(false), await enter()];
    for (let n = 0; n < 12; n++) await second();
    expect(dead.isDestroyed).toBe(true);
    expect([viewers.count, viewers.cut]).toEqual([1, 1]);
    expect(well.written.filter((text) => text.startsWith('tick'))).toHaveLength(12);
  });

  it('are ended after five minutes, so that the guards are asked again', async () => {
    const { enter, second, viewers } = stand();
    const one = await enter();
    for (let n = 0; n < 299; n++) await second();
    expect(one.isEnded).toBe(false);
    await second();
    expect([one.isEnded, viewers.count]).toEqual([true, 0]);
  });

  it('stay when a frame cannot be made, and get all of the next one', async () => {
    const { enter, second, store, faults } = stand();
    const one = await enter();
    store.isBroken = true;
    const late = await enter();
    await second();
    expect(faults).toEqual([new Error('no frame'), new Error('no frame')]);
    store.isBroken = false;
    store.isUnreadable = true;
    await second();
    expect(faults[2]).toEqual(new Error('no JSON'));
    expect([one.isEnded, late.isEnded]).toEqual([false, false]);
    store.isUnreadable = false;
    await second();
    expect(one.written.slice(1)).toEqual(['state 1\n', 'state 3\n']);
    expect(late.written.slice(1)).toEqual(['state 3\n']);
  });

  it('are ended after five minutes and cut after ten seconds, with or without a frame', async () => {
    const { enter, second, store, viewers } = stand();
    const [one, dead] = [await enter(), await enter(false)];
    await second();
    store.isBroken = true;
    for (let n = 0; n < 298; n++) await second();
    expect([one.isEnded, dead.isDestroyed]).toEqual([false, true]);
    await second();
    expect([one.isEnded, viewers.count]).toEqual([true, 0]);
  });

  it('are no more than may be', async () => {
    const { enter, viewers } = stand(2);
    await enter();
    await enter();
    await expect(enter()).rejects.toMatchObject({ status: 503 });
    expect(viewers.refused).toBe(1);
  });

  it('are all ended when the application closes', async () => {
    const { enter, viewers, tasks } = stand();
    const all = [await enter(), await enter()];
    viewers.close();
    expect(all.every(({ isEnded }) => isEnded)).toBe(true);
    expect([viewers.count, tasks.size]).toEqual([0, 0]);
    await expect(enter()).rejects.toMatchObject({ status: 503 });
  });
});

describe('frames on a real connection', () => {
  const FRAMES = 3;
  const stream = async (prepare: (response: ServerResponse) => void) => {
    let made = 0;
    const viewers = new Viewers({
      ...{ clock: new ManualClock(), most: 1, eachSecond: () => () => {}, failed: () => {} },
      frame: () => Promise.resolve(frameOf(++made, 'frame\n')),
    });
    const server = createServer((_, response) => {
      prepare(response);
      void viewers.add(response);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const answer = await fetch(`http://127.0.0.1:${port}/`);
    while (viewers.count < 1) await nextTurn();
    for (let n = 1; n < FRAMES; n++) await viewers.tick();
    viewers.close();
    const text = await answer.text();
    server.close();
    return text;
  };
  const EXPECTED = `: weir\n\n${'frame\n'.repeat(FRAMES)}`;

  it('are the bytes of the stream, ended by its connection', async () => {
    expect(await stream(() => {})).toBe(EXPECTED);
  });

  it('go through a response whose `write` somebody has replaced', async () => {
    const seen: string[] = [];
    const text = await stream((response) => {
      const write = response.write.bind(response) as (part: Buffer | string) => boolean;
      response.write = (part: Buffer | string) => {
        seen.push(part.toString());
        return write(part);
      };
    });
    expect(seen.join('')).toBe(EXPECTED);
    expect(text).toBe(EXPECTED);
  });
});

describe('a viewer that never reads, over a real socket', () => {
  it('fills the buffers of the kernel and little more, however much is due, and is cut; the other gets every frame', async () => {
    const FRAME = Buffer.alloc(12_000, 'x');
    const DUE_BYTES = 16_000_000;
    const clock = new ManualClock();
    let made = 0;
    const viewers = new Viewers({
      ...{ clock, most: 2, eachSecond: () => () => {}, failed: () => {} },
      frame: () => Promise.resolve(frameOf(++made, FRAME)),
    });
    const responses: ServerResponse[] = [];
    const server = createServer((_, response) => {
      responses.push(response);
      void viewers.add(response);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const open = () => {
      const socket = connect(port, '127.0.0.1');
      socket.write('GET / HTTP/1.1\r\nhost: weir\r\n\r\n');
      return socket;
    };
    const reader = open();
    let bytesRead = 0;
    reader.on('data', (part: Buffer) => (bytesRead += part.length));
    await once(reader, 'data');
    const dead = open().pause();
    const closed = once(dead, 'close');
    while (responses.length < 2) await nextTurn();
    const [, response] = responses as [ServerResponse, ServerResponse];
    let mostKept = 0;
    for (let due = 0; due < DUE_BYTES; due += FRAME.length) {
      clock.advance(5);
      await viewers.tick();
      await nextTurn();
      mostKept = Math.max(mostKept, response.writableLength);
    }
    expect(viewers.skipped).toBeGreaterThan(100);
    expect(mostKept).toBeLessThanOrEqual(65_536);
    expect([viewers.count, viewers.cut]).toEqual([2, 0]);
    clock.advance(10_000);
    await viewers.tick();
    expect([viewers.count, viewers.cut]).toEqual([1, 1]);
    // It sees its end only when it reads.
    dead.resume();
    await closed;
    while (bytesRead < DUE_BYTES) await nextTurn();
    viewers.close();
    reader.destroy();
    server.close();
  });
});
