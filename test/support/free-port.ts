import { createServer } from 'node:net';

// Below the range from which systems take the local ports of outgoing connections (Linux: from
// 32768). A port from that range may be gone when a server wants it back after a restart, and a
// client that knocks at a dead one can even be connected to itself. A cluster node also listens on
// its port + 10000, which stays below the range too.
const LOWEST_PORT = 10_300;
const HIGHEST_PORT = 22_600;
export const CLUSTER_BUS_OFFSET = 10_000;

const handedOut = new Set<number>();

/** A loopback port on which nobody listens now. Another process may still be faster: retry. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST_PORT + Math.floor(Math.random() * (HIGHEST_PORT - LOWEST_PORT));
    if (handedOut.has(port)) continue;
    if ((await isFree(port)) && (await isFree(port + CLUSTER_BUS_OFFSET))) {
      handedOut.add(port);
      return port;
    }
  }
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
