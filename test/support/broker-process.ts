import { spawnSync, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from './free-port.js';
import { exited, hasExited, makeTempDir, removeTempDir, spawnOwned } from './processes.js';
import { until } from './until.js';

/** The way to start one kind of broker on a port, with a directory of its own. */
export interface BrokerRecipe {
  /** The variable that names its program. */
  readonly variable: string;
  /** The line that it writes when clients may come; the group in parentheses is the port, of a broker that chooses it itself. */
  readonly readyText: RegExp;
  readonly args?: (port: number, dir: string) => readonly string[];
  readonly env?: (port: number, dir: string) => Readonly<Record<string, string>>;
  /** Starts what it cannot do without, which ends with it. */
  readonly before?: (program: string, env: NodeJS.ProcessEnv) => ChildProcess;
}

export interface Broker {
  readonly port: number;
  stop(): Promise<void>;
}

const HOST = '127.0.0.1';
/** RabbitMQ takes seven seconds on a machine that has nothing else to do. */
const START_TIMEOUT_MS = 60_000;
const START_ATTEMPTS = 5;

/** Starts a broker on a free loopback port and waits until it is ready. */
export async function startBroker(recipe: BrokerRecipe): Promise<Broker> {
  const program = programOf(recipe.variable);
  for (let attempt = 1; ; attempt++) {
    const dir = makeTempDir();
    const port = await freePort();
    const env = { ...process.env, ...recipe.env?.(port, dir) };
    const helper = recipe.before?.(program, env);
    const logFile = join(dir, 'broker.log');
    const log = openSync(logFile, 'w');
    const args = recipe.args?.(port, dir) ?? [];
    const child = spawnOwned(program, args, { cwd: dir, env, stdio: ['ignore', log, log] });
    closeSync(log);
    const written = (): string => readFileSync(logFile, 'utf8');
    const stop = async (): Promise<void> => {
      for (const one of [child, helper]) {
        if (one === undefined || hasExited(one)) continue;
        one.kill('SIGKILL');
        await exited(one);
      }
      removeTempDir(dir);
    };
    await until(() => hasExited(child) || recipe.readyText.test(written()), {
      timeoutMs: START_TIMEOUT_MS,
      what: `${program} to be ready on port ${port}`,
    });
    if (!hasExited(child)) {
      return { port: Number(recipe.readyText.exec(written())?.[1] ?? port), stop };
    }
    const said = written();
    await stop();
    // Between the look for a free port and the start another process can take it.
    const isPortTaken = /address already in use|eaddrinuse/i.test(said);
    if (!isPortTaken || attempt === START_ATTEMPTS) {
      throw new Error(`${program} did not start on port ${port}:\n${said}`);
    }
  }
}

/** Found by whoever started the tests; else, for a spec that is run by itself, looked for now. */
function programOf(variable: string): string {
  if (!process.env[variable]) {
    const root = fileURLToPath(new URL('../../', import.meta.url));
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ['scripts/ensure-tools.mjs', 'brokers'],
      { cwd: root, encoding: 'utf8' },
    );
    if (status !== 0) throw new Error(stderr.trim());
    Object.assign(process.env, JSON.parse(stdout));
  }
  return process.env[variable]!;
}

export { HOST as BROKER_HOST };
