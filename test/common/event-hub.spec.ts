import { EventHub } from '../../lib/common/event-hub.js';

interface Events {
  readonly news: number;
}

describe('a listener that fails', () => {
  it.each<[string, () => void]>([
    [
      'at once',
      () => {
        throw new Error('odd');
      },
    ],
    ['later', async () => Promise.reject(new Error('odd'))],
    [
      'when it is looked at',
      () =>
        ({
          get then() {
            throw new Error('odd');
          },
        }) as never,
    ],
  ])('%s keeps neither the others nor the process from going on', async (_, listener) => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const rejections: unknown[] = [];
    const listen = (error: unknown): void => void rejections.push(error);
    process.on('unhandledRejection', listen);
    const hub = new EventHub<Events>(['news']);
    const heard: number[] = [];
    hub.on('news', listener);
    hub.on('news', (event) => heard.push(event));
    hub.emit('news', 7);
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', listen);
    expect([heard, rejections]).toEqual([[7], []]);
    expect(warned.mock.calls).toEqual([[expect.objectContaining({ message: 'odd' })]]);
    warned.mockRestore();
  });
});
