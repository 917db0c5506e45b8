import { Load } from './load.js';
import { type ServerProcess } from './server-process.js';

/**
 * CPU time of the server for each request. Connections are made anew each time, before the clock
 * starts: servers close those that rest.
 */
export async function measureCpu(server: ServerProcess, requests: number): Promise<number> {
  const load = await Load.on(server.url);
  try {
    const before = await server.cpuMicros();
    const sent = await load.send(requests);
    return ((await server.cpuMicros()) - before) / sent;
  } finally {
    load.close();
  }
}
