import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/** Reads whatever comes on so many connections. */
const READER = `
  const [port, count] = process.argv.slice(1).map(Number);
  for (let n = 0; n < count; n++) require('node:net').connect(port, '127.0.0.1').resume();
  process.stdin.on('end', () => process.exit(0)).resume();
`;

/** The least that the kernel and Node take to tell something to so many: connections of another process, and nothing above them. */
export async function bareSockets(count: number): Promise<readonly Socket[]> {
  const sockets: Socket[] = [];
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.push(socket.on('error', () => undefined));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  // It ends with this process: then its input ends.
  spawn(process.execPath, ['-e', READER, String(port), String(count)], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  while (sockets.length < count) await pause(1);
  return sockets;
}
