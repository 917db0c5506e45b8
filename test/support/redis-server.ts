import type { ChildProcess } from 'node:child_process';
import { accessSync, closeSync, constants, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from './free-port.js';
import { leastUser } from './least-acl.js';
import { exited, hasExited, makeTempDir, removeTempDir, spawnOwned } from './processes.js';
import { infoField, withRedis } from './redis-client.js';
import { SteppedClock } from './stepped-clock.js';
import { until } from './until.js';

export type RedisConfig = Readonly<Record<string, string | number>>;

export interface RedisOptions {
  /** Directives of redis.conf, on top of the defaults (loopback only, no persistence). */
  readonly config?: RedisConfig;
  /** A fixed port; otherwise a free one is found. */
  readonly port?: number;
  readonly mode?: 'server' | 'sentinel';
  /** The server's wall clock can be stepped, with {@link RedisProcess.stepClock}. */
  readonly clock?: 'stepped';
}

const HOST = '127.0.0.1';
/** Where Linux keeps files in memory. */
const FILES_IN_MEMORY = '/dev/shm';
const START_TIMEOUT_MS = 10_000;
const STOP_GRACE_MS = 2_000;
const START_ATTEMPTS = 10;

class AddressInUseError extends Error {}

/** One redis-server process of our own. */
export class RedisProcess {
  readonly host = HOST;
  /** For the library: as the user with the least rights that the docs tell of. */
  readonly url: string;
  /** For the test itself, which may do anything. */
  readonly adminUrl: string;
  /** The arguments of the program; the rest of its settings are in the file named first. */
  readonly args: readonly string[];
  private readonly clock: SteppedClock | undefined;
  private child: ChildProcess | undefined;

  private constructor(
    readonly port: number,
    readonly dir: string,
    { config = {}, mode = 'server', clock }: RedisOptions,
  ) {
    this.adminUrl = `redis://${HOST}:${port}`;
    this.url = mode === 'sentinel' ? this.adminUrl : `redis://weir:weir@${HOST}:${port}`;
    this.args = [this.configFile, ...(mode === 'sentinel' ? ['--sentinel'] : [])];
    const defaults: RedisConfig =
      mode === 'sentinel' ? {} : { save: '', appendonly: 'no', user: leastUser() };
    const all: RedisConfig = {
      port,
      bind: HOST,
      'protected-mode': 'no',
      dir,
      ...defaults,
      ...config,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name} ${quoteEmpty(value)}\n`);
    writeFileSync(this.configFile, lines.join(''));
    this.clock = clock === 'stepped' ? new SteppedClock(dir) : undefined;
  }

  /** @internal use {@link startRedis} */
  static async start(options: RedisOptions): Promise<RedisProcess> {
    for (let attempt = 1; ; attempt++) {
      const dir = makeTempDir(placeOf(options));
      const server = new RedisProcess(options.port ?? (await freePort()), dir, options);
      try {
        await server.launch();
        return server;
      } catch (error) {
        await server.kill();
        removeTempDir(dir);
        // Between the look for a free port and the start another process can take it.
        if (!(error instanceof AddressInUseError) || attempt === START_ATTEMPTS) throw error;
      }
    }
  }

  get pid(): number {
    if (!this.child?.pid || !this.alive) throw new Error(`redis on port ${this.port} is down`);
    return this.child.pid;
  }

  get alive(): boolean {
    return this.child !== undefined && !hasExited(this.child);
  }

  /** The log of the server so far. */
  get log(): string {
    return readFileSync(this.logFile, 'utf8');
  }

  /** Ends the server in order: SIGTERM, then SIGKILL if it does not go. Removes its directory. */
  async stop(): Promise<void> {
    await this.end('SIGTERM');
    removeTempDir(this.dir);
  }

  /** SIGKILL: the crash. The directory stays, for {@link restart}. */
  async kill(): Promise<void> {
    await this.end('SIGKILL');
  }

  /** SIGSTOP: connections stay open and are even accepted, but nothing answers. */
  pause(): void {
    process.kill(this.pid, 'SIGSTOP');
  }

  resume(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  /** The server's wall clock goes forward, or back, by so much; it must have been asked for. */
  stepClock(ms: number): void {
    if (!this.clock) throw new Error("start the server with clock: 'stepped'");
    this.clock.step(ms);
  }

  /** Kills the server if it runs and starts it on the same port, without data. */
  async restart(): Promise<void> {
    await this.kill();
    await until(() => this.launch().then(() => true), {
      timeoutMs: START_TIMEOUT_MS,
      what: `redis to start again on port ${this.port}`,
    });
  }

  private async launch(): Promise<void> {
    const log = openSync(this.logFile, 'w');
    const env = { ...process.env, ...this.clock?.env };
    const child = spawnOwned(serverProgram(), this.args, { stdio: ['ignore', log, log], env });
    closeSync(log);
    this.child = child;
    child.once('error', () => undefined);
    try {
      await until(async () => hasExited(child) || (await this.answers()), {
        timeoutMs: START_TIMEOUT_MS,
        what: `redis to answer on port ${this.port}`,
      });
    } finally {
      if (hasExited(child)) this.throwStartFailure();
    }
  }

  /** The config file tells our server from a stranger's that was faster to take the port. */
  private async answers(): Promise<boolean> {
    const info = await withRedis(this.port, (client) => client.info('server'));
    return infoField(info, 'config_file') === this.configFile;
  }

  private throwStartFailure(): never {
    const { log } = this;
    const message = `redis did not start on port ${this.port}:\n${log}`;
    throw /address already in use/i.test(log) ? new AddressInUseError(message) : new Error(message);
  }

  private async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.child;
    if (!child || hasExited(child)) return;
    const gone = exited(child);
    child.kill(signal);
    // A paused process takes SIGTERM only once it runs again.
    child.kill('SIGCONT');
    const patience = setTimeout(() => child.kill('SIGKILL'), STOP_GRACE_MS);
    await gone;
    clearTimeout(patience);
  }

  private get configFile(): string {
    return join(this.dir, 'redis.conf');
  }

  private get logFile(): string {
    return join(this.dir, 'redis.log');
  }
}

/** Starts a redis-server on a free loopback port and waits until it answers. */
export const startRedis = (options: RedisOptions = {}): Promise<RedisProcess> =>
  RedisProcess.start(options);

/**
 * In memory where there is such a place: nodes of a cluster and sentinels sync their files before they vote, and a disk
 * that takes 0.6 s for that keeps a cluster with a timeout of 1 s from ever electing anybody, measured. The library
 * of a stepped clock has to be executable, which files in memory need not be.
 */
function placeOf({ clock }: RedisOptions): string | undefined {
  if (clock === 'stepped') return undefined;
  try {
    accessSync(FILES_IN_MEMORY, constants.W_OK);
    return FILES_IN_MEMORY;
  } catch {
    return undefined;
  }
}

function serverProgram(): string {
  const program = process.env.REDIS_SERVER_BIN;
  if (!program) {
    throw new Error(
      'REDIS_SERVER_BIN is not set: start through npm test or npm run bench, or set it to a redis-server',
    );
  }
  return program;
}

const quoteEmpty = (value: string | number): string => (value === '' ? '""' : String(value));
