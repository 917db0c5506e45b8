import { readFile } from 'node:fs/promises';
import { posix } from 'node:path';

/** The bounds of a container; undefined where there are none. */
export interface CgroupLimits {
  readonly cpus: number | undefined;
  readonly memoryBytes: number | undefined;
}

/** The text of a file; undefined if it cannot be read. */
export type ReadText = (path: string) => Promise<string | undefined>;

const ROOT = '/sys/fs/cgroup';
/** Larger limits are the largest number of an old kernel, and mean none. */
const UNBOUNDED_BYTES = 2 ** 60;

/**
 * The limits of this process's control group, version 2 or 1. Those of groups around it hold as well, so the least
 * of all counts. Inside a container the path is often that of the host and not there: then the root is the group.
 */
export async function readCgroup(read: ReadText = readText): Promise<CgroupLimits> {
  const groups = groupsIn((await read('/proc/self/cgroup')) ?? '');
  const { unified = '/', cpu = '/', memory = '/' } = groups;
  const cpus = [
    ...(await along(ROOT, unified, async (dir) => cpusIn(await read(`${dir}/cpu.max`)))),
    ...(await along(`${ROOT}/cpu`, cpu, (dir) => oldCpus(dir, read))),
    ...(await along(`${ROOT}/cpu,cpuacct`, cpu, (dir) => oldCpus(dir, read))),
  ];
  const bytes = [
    ...(await along(ROOT, unified, async (dir) => bytesIn(await read(`${dir}/memory.max`)))),
    ...(await along(`${ROOT}/memory`, memory, async (dir) => {
      return bytesIn(await read(`${dir}/memory.limit_in_bytes`));
    })),
  ];
  return { cpus: least(cpus), memoryBytes: least(bytes) };
}

interface Groups {
  unified?: string;
  cpu?: string;
  memory?: string;
}

/** Lines of `number:controllers:path`; of version 2 one, without controllers. */
function groupsIn(text: string): Groups {
  const groups: Groups = {};
  for (const line of text.split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (controllers === undefined || path === undefined) continue;
    if (controllers === '') groups.unified = path;
    for (const one of controllers.split(',')) {
      if (one === 'cpu' || one === 'memory') groups[one] = path;
    }
  }
  return groups;
}

/** The limits of the group and of all around it, up to the root. */
async function along(
  root: string,
  path: string,
  limitOf: (directory: string) => Promise<number | undefined>,
): Promise<(number | undefined)[]> {
  const limits: (number | undefined)[] = [];
  for (let here = posix.normalize(path); ; here = posix.dirname(here)) {
    limits.push(await limitOf(here === '/' ? root : root + here));
    if (here === '/' || here === '.') return limits;
  }
}

/** Reads `150000 100000`, microseconds of CPU in each period of microseconds; `max 100000` is no limit. */
function cpusIn(text: string | undefined): number | undefined {
  const [, quota, period] = /^(\d+) (\d+)\s*$/.exec(text ?? '') ?? [];
  return cpuShareOf(Number(quota), Number(period));
}

/** Version 1 has -1 where there is no limit. */
async function oldCpus(directory: string, read: ReadText): Promise<number | undefined> {
  const quota = await read(`${directory}/cpu.cfs_quota_us`);
  if (quota === undefined) return undefined;
  const period = await read(`${directory}/cpu.cfs_period_us`);
  return cpuShareOf(Number(quota), Number(period ?? NaN));
}

function cpuShareOf(quota: number, period: number): number | undefined {
  return quota > 0 && period > 0 && Number.isFinite(quota / period) ? quota / period : undefined;
}

function bytesIn(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d+\s*$/.test(text)) return undefined;
  const bytes = Number(text);
  return bytes > 0 && bytes < UNBOUNDED_BYTES ? bytes : undefined;
}

function least(limits: readonly (number | undefined)[]): number | undefined {
  const known = limits.filter((limit) => limit !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    return undefined;
  }
}
