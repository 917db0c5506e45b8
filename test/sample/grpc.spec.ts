import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { credentials, loadPackageDefinition, type ServiceError } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { freePort } from '../support/free-port.js';
import { exited, spawnOwned, stopAll } from '../support/processes.js';
import { until } from '../support/until.js';

interface InventoryClient {
  get(item: { sku: string }, callback: (error: ServiceError | null) => void): void;
  close(): void;
}

beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
afterAll(stopAll);

describe('the sample of gRPC', () => {
  let app: ChildProcess;
  let port: number;
  let written = '';

  beforeAll(async () => {
    port = await freePort();
    app = spawnOwned(process.execPath, [join(root, 'build/sample/03-grpc/main.js')], {
      env: { ...process.env, PORT: String(port) },
    });
    for (const stream of [app.stdout, app.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (written += text));
    }
    await until(() => written.includes('Listening'), { timeoutMs: 20_000, what: 'the tour' });
  });

  it('takes its reader on a tour of all limits, and tells what was promised and seen', () => {
    const lines = written
      .trim()
      .split('\n')
      .map((line) => line.replace(/\d{2,} ms|: \d{2,}\)/g, '…').trim());
    expect(lines.filter((line) => /^(promised|✓|✗|ok|8) /.test(line))).toEqual([
      'promised  three lookups of an article for each caller, then status 8',
      '✓ seen    ok  {"sku":"tea","pieces":7}',
      'ok  {"sku":"tea","pieces":7}',
      'ok  {"sku":"tea","pieces":7}',
      'ok  {"sku":"jam","pieces":7}',
      '8   Too many requests (retry-after-ms…',
      'promised  two streams of any length, and five messages of imports',
      '✓ seen    ok  {"sku":"tea","pieces":7} {"sku":"tea","pieces":6} {"sku":"tea","pieces":5}',
      'ok  {"imported":5}',
      '8   Too many requests (retry-after-ms…',
      'promised  a server that has pushed back is left alone: nothing is sent',
      '✓ seen    8   The server asked for … of patience; this call was not sent (retry-after-ms…',
    ]);
    expect(lines).toContain('3 of 3 promises were kept.');
    expect(lines.at(-1)).toContain(`Listening on localhost:${port} `);
  });

  it('limits other callers too', async () => {
    const definition = loadSync(join(root, 'sample/03-grpc/inventory.proto'));
    const { inventory } = loadPackageDefinition(definition) as unknown as {
      inventory: { Inventory: new (...args: unknown[]) => InventoryClient };
    };
    const client = new inventory.Inventory(`localhost:${port}`, credentials.createInsecure());
    const codeOf = (sku: string) =>
      new Promise<number>((resolve) => client.get({ sku }, (error) => resolve(error?.code ?? 0)));
    const codes = await Promise.all(Array.from({ length: 5 }, () => codeOf('salt')));
    client.close();
    expect(codes.sort()).toEqual([0, 0, 0, 8, 8]);
  });

  it('ends when it is asked to', async () => {
    app.kill('SIGTERM');
    await exited(app);
    expect(app.signalCode).toBe('SIGTERM');
  });
});
