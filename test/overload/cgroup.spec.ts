import { readCgroup } from '../../lib/overload/cgroup.js';

const reads = (files: Record<string, string>) => (path: string) => Promise.resolve(files[path]);
const V2 = '/sys/fs/cgroup';
const MIB = 2 ** 20;
const NONE = { cpus: undefined, memoryBytes: undefined };

describe('limits of a container', () => {
  it.each<[string, Record<string, string>, object]>([
    ['no control groups at all', {}, NONE],
    [
      'version 2 in a container, whose path is its root',
      {
        '/proc/self/cgroup': '0::/\n',
        [`${V2}/cpu.max`]: '150000 100000\n',
        [`${V2}/memory.max`]: `${512 * MIB}\n`,
      },
      { cpus: 1.5, memoryBytes: 512 * MIB },
    ],
    [
      'version 2, nested: the least of all around it',
      {
        '/proc/self/cgroup': '0::/kubepods/pod1/app\n',
        [`${V2}/kubepods/pod1/app/cpu.max`]: 'max 100000\n',
        [`${V2}/kubepods/pod1/cpu.max`]: '200000 100000\n',
        [`${V2}/kubepods/cpu.max`]: '800000 100000\n',
        [`${V2}/kubepods/pod1/app/memory.max`]: `${256 * MIB}`,
        [`${V2}/kubepods/pod1/memory.max`]: 'max\n',
      },
      { cpus: 2, memoryBytes: 256 * MIB },
    ],
    [
      'version 2 without a limit',
      {
        '/proc/self/cgroup': '0::/',
        [`${V2}/cpu.max`]: 'max 100000',
        [`${V2}/memory.max`]: 'max',
      },
      NONE,
    ],
    [
      'version 1',
      {
        '/proc/self/cgroup': '7:memory:/docker/a\n4:cpu,cpuacct:/docker/a\n1:name=systemd:/x\n',
        [`${V2}/cpu,cpuacct/docker/a/cpu.cfs_quota_us`]: '50000\n',
        [`${V2}/cpu,cpuacct/docker/a/cpu.cfs_period_us`]: '100000\n',
        [`${V2}/memory/docker/a/memory.limit_in_bytes`]: `${128 * MIB}\n`,
      },
      { cpus: 0.5, memoryBytes: 128 * MIB },
    ],
    [
      'version 1 inside a container, where the path of the host is not there',
      {
        '/proc/self/cgroup': '4:cpu:/docker/a\n7:memory:/docker/a\n',
        [`${V2}/cpu/cpu.cfs_quota_us`]: '400000',
        [`${V2}/cpu/cpu.cfs_period_us`]: '100000',
        [`${V2}/memory/memory.limit_in_bytes`]: `${64 * MIB}`,
      },
      { cpus: 4, memoryBytes: 64 * MIB },
    ],
    [
      'version 1 without a limit: -1, and the largest number there is',
      {
        '/proc/self/cgroup': '4:cpu:/\n7:memory:/\n',
        [`${V2}/cpu/cpu.cfs_quota_us`]: '-1',
        [`${V2}/cpu/cpu.cfs_period_us`]: '100000',
        [`${V2}/memory/memory.limit_in_bytes`]: '9223372036854771712',
      },
      NONE,
    ],
    [
      'garbage',
      {
        '/proc/self/cgroup': 'what\n::\n0:/x\n5:cpu:../..\n0::/../../etc\n',
        [`${V2}/cpu.max`]: '0 0',
        [`${V2}/memory.max`]: '-5',
        [`${V2}/cpu/cpu.cfs_quota_us`]: 'x',
      },
      NONE,
    ],
  ])('%s', async (_, files, limits) => {
    expect(await readCgroup(reads(files))).toEqual(limits);
  });

  it('can be read here, whatever they are', async () => {
    const { cpus = 1, memoryBytes = 1 } = await readCgroup();
    expect([cpus > 0, memoryBytes > 0]).toEqual([true, true]);
  });
});
