import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { StepError } from './step.mjs';

/**
 * Unpacks Debian or Ubuntu packages, with whatever they need that this machine lacks, below
 * `target`. Nothing is installed: apt works on lists of its own, so this needs no root, and apt
 * still checks the signatures. `finish(dir)` completes the tree before it takes its final name, so
 * that a fetch which was cut short, or a second one at the same time, leaves no half a tool behind.
 */
export function unpackDebianPackages(names, target, finish) {
  mkdirSync(dirname(target), { recursive: true });
  const work = mkdtempSync(`${target}-`);
  try {
    const apt = aptWithOwnLists(join(work, 'apt'));
    // A third party's source that cannot be reached fails the update but not the fetch.
    const update = apt('apt-get', ['update']);
    const plan = apt('apt-get', ['install', '--simulate', '--no-install-recommends', ...names]);
    const missing = [...plan.output.matchAll(/^Inst (\S+)/gm)].map(([, found]) => found);
    if (plan.failed || missing.length === 0) {
      const said = lastLine(plan.output, update.output);
      throw new StepError(`apt-get cannot fetch ${names.join(' and ')}: ${said}`);
    }
    const debs = join(work, 'debs');
    mkdirSync(debs);
    const download = apt('apt-get', ['download', ...missing], debs);
    if (download.failed) throw new StepError(`apt-get download: ${lastLine(download.output)}`);

    const tree = join(work, 'tree');
    mkdirSync(join(tree, 'root'), { recursive: true });
    for (const deb of readdirSync(debs)) {
      const unpack = command('dpkg', ['-x', join(debs, deb), join(tree, 'root')]);
      if (unpack.failed) throw new StepError(`dpkg -x ${deb}: ${lastLine(unpack.output)}`);
    }
    finish(tree);
    replaceDirectory(tree, target);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function replaceDirectory(from, to) {
  rmSync(to, { recursive: true, force: true });
  try {
    renameSync(from, to);
  } catch (error) {
    // Another run put its own there in the meantime, which is as good as ours.
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
  }
}

export const hasApt = () =>
  process.platform === 'linux' &&
  ['apt-get', 'dpkg'].every((tool) => !command(tool, ['--version']).failed);

function aptWithOwnLists(dir) {
  for (const part of ['lists/partial', 'cache/archives/partial']) {
    mkdirSync(join(dir, part), { recursive: true });
  }
  const settings = [
    `Dir::State::lists=${dir}/lists`,
    `Dir::Cache=${dir}/cache`,
    'Debug::NoLocking=1',
    // As root apt would change to a user of its own that may not be able to write here.
    'APT::Sandbox::User=root',
    'Acquire::Retries=2',
  ].flatMap((setting) => ['-o', setting]);
  return (tool, args, cwd) => command(tool, [...settings, '-q', ...args], cwd);
}

function command(tool, args, cwd) {
  const result = spawnSync(tool, args, {
    cwd,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' },
  });
  const output = `${result.stdout ?? ''}${result.stderr ?? ''}${result.error?.message ?? ''}`;
  return { output, failed: result.status !== 0 };
}

const lastLine = (...outputs) =>
  outputs
    .map((output) => output.trim().split('\n').at(-1))
    .filter(Boolean)
    .join(' / ');
