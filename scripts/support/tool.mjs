import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { hasApt, unpackDebianPackages } from './debian-packages.mjs';
import { toolCache } from './root.mjs';
import { StepError } from './step.mjs';

/**
 * Finds a program that npm does not bring: an environment variable, the PATH, a copy fetched
 * before, or a fetch of the distribution's package. Returns its path or throws one line of advice.
 *
 * @param tool `name`, `variable`, `programs` (names on the PATH), `versionPattern` (what --version
 *   must say), `packages` (Debian names, sets to try in turn), `wrap(tree)` (writes the start script
 *   of a fetched tree and returns its path), `advice`; and where it is unlike other programs `places`
 *   (directories beside the PATH) and `works(path)`.
 */
export function ensureTool(tool) {
  const named = process.env[tool.variable];
  if (named) {
    // Falling through here would test against another program than the one asked for.
    if (works(tool, named)) return named;
    throw new StepError(
      `${tool.variable}=${named} does not run as ${tool.name}: correct the path or unset it`,
    );
  }
  const installed = onPath(tool).find((path) => works(tool, path));
  if (installed) return installed;

  const target = join(toolCache, tool.name);
  const cached = join(target, tool.name);
  if (existsSync(cached) && works(tool, cached)) return cached;

  const reasons = [];
  if (!hasApt()) reasons.push('not on the PATH, and there is no apt-get to fetch it with');
  else {
    for (const names of tool.packages) {
      try {
        unpackDebianPackages(names, target, (tree) => tool.wrap(tree, join(tree, tool.name)));
        if (works(tool, cached)) return cached;
        reasons.push(`the fetched package ${names[0]} does not run here`);
      } catch (error) {
        if (!(error instanceof StepError)) throw error;
        reasons.push(error.message);
      }
    }
  }
  throw new StepError(
    `no ${tool.name} (${reasons.join('; ')}): ${tool.advice}, or set ${tool.variable}`,
  );
}

function works(tool, path) {
  if (tool.works) return tool.works(path);
  const { status, stdout } = spawnSync(path, ['--version'], { encoding: 'utf8', timeout: 10_000 });
  return status === 0 && tool.versionPattern.test(stdout);
}

const onPath = ({ programs, places = [] }) =>
  [...(process.env.PATH ?? '').split(delimiter), ...places]
    .filter(Boolean)
    .flatMap((dir) => programs.map((program) => join(dir, program)))
    .filter((path) => existsSync(path));
