import { connect } from 'node:net';
import {
  startKafka,
  startMariadb,
  startMosquitto,
  startNats,
  startRabbitmq,
} from '../support/brokers.js';
import { stopAll } from '../support/index.js';

afterAll(stopAll);

/** True if somebody listens. */
const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });

describe.each([
  ['nats-server', startNats],
  ['mosquitto', startMosquitto],
  ['rabbitmq-server', startRabbitmq],
  ['kcat', startKafka],
  ['mariadbd', startMariadb],
])('%s', (_name, start) => {
  it('starts on ports of its own, several at once, and is gone after stop', async () => {
    const brokers = await Promise.all([start(), start()]);
    const ports = brokers.map(({ port }) => port);
    expect(new Set(ports).size).toBe(2);
    expect(await Promise.all(ports.map(answers))).toEqual([true, true]);
    await brokers[0].stop();
    expect(await Promise.all(ports.map(answers))).toEqual([false, true]);
    await brokers[1].stop();
    expect(await Promise.all(ports.map(answers))).toEqual([false, false]);
  }, 120_000);
});
