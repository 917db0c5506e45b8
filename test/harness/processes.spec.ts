import { existsSync } from 'node:fs';
import { exited, makeTempDir, spawnOwned, stopAll } from '../support/processes.js';
import { Reaper } from '../support/reaper.js';
import { until } from '../support/until.js';

afterAll(stopAll);

describe('stopAll', () => {
  it('ends every process and removes every directory that was started here', async () => {
    const dir = makeTempDir();
    const children = [spawnOwned('sleep', ['60']), spawnOwned('sleep', ['60'])];
    await stopAll();
    expect(children.map(({ signalCode }) => signalCode)).toEqual(['SIGKILL', 'SIGKILL']);
    expect(existsSync(dir)).toBe(false);
  });

  it('may be called with nothing to stop, and again', async () => {
    await stopAll();
    await stopAll();
  });
});

describe('Reaper', () => {
  it('ends what is left when its starter is gone, and only that', async () => {
    const reaper = new Reaper();
    const [left, spared, other] = Array.from({ length: 3 }, () => spawnOwned('sleep', ['60']));
    if (!left?.pid || !spared?.pid || !other?.pid) throw new Error('sleep did not start');
    const dir = makeTempDir();
    for (const { pid } of [spared, left, other]) reaper.watchProcess(pid as number);
    reaper.forgetProcess(spared.pid);
    reaper.watchDirectory(dir);

    // The end of its input is all that the reaper sees of the end of its starter.
    await reaper.dismiss();
    await Promise.all([exited(left), exited(other)]);
    expect([left.signalCode, other.signalCode]).toEqual(['SIGKILL', 'SIGKILL']);
    expect(existsSync(dir)).toBe(false);
    expect(spared.signalCode).toBeNull();
    expect(process.kill(spared.pid, 0)).toBe(true);
  });
});

describe('until', () => {
  it('gives what the condition gave once it holds', async () => {
    let calls = 0;
    expect(await until(() => (++calls === 3 ? 'third' : undefined))).toBe('third');
  });

  it('takes an error for not yet, and reports the last one', async () => {
    const failure = await until(() => Promise.reject(new Error('refused')), {
      timeoutMs: 30,
      what: 'an answer',
    }).catch((error: unknown) => error);
    expect(failure).toMatchObject({
      message: 'waited 30 ms in vain for an answer',
      cause: { message: 'refused' },
    });
  });

  it('keeps its deadline when the condition never answers', async () => {
    const never = new Promise<boolean>(() => undefined);
    await expect(until(() => never, { timeoutMs: 30 })).rejects.toThrow('in vain');
  });
});
