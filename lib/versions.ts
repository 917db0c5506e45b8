import { type ModulesContainer } from '@nestjs/core';
import { RateLimitError } from './common/errors.js';

/** A Nest that lacks what this library builds on. */
export class OldNestError extends RateLimitError {
  readonly code = 'NEST_TOO_OLD';

  constructor() {
    super(
      'nestjs-weir needs Nest 11 or later, and this application runs on an older one: ' +
        'npm install @nestjs/common@11 @nestjs/core@11, and the other packages of Nest likewise',
    );
  }
}

/** Known by what it lacks, as Nest does not say at run time which one it is. */
export function checkNest(modules: Partial<ModulesContainer>): void {
  if (typeof modules.getRpcTargetRegistry !== 'function') throw new OldNestError();
}

/** A Node that lacks what this library builds on. */
export class OldNodeError extends RateLimitError {
  readonly code = 'NODE_TOO_OLD';

  constructor(readonly version: string) {
    super(
      'nestjs-weir needs Node 20.19, 22.12, or 24 and later, and this process runs on ' +
        `${version}: nvm install 24, or a package of https://nodejs.org`,
    );
  }
}

/** The least minor version of each major one that is not new enough as a whole. */
const LEAST_MINOR = new Map([
  [20, 19],
  [22, 12],
]);

export function checkNode(version: string = process.version): void {
  const [major = 0, minor = 0] = version.replace('v', '').split('.').map(Number);
  const isEnough = major >= 24 || minor >= (LEAST_MINOR.get(major) ?? Infinity);
  if (!isEnough) throw new OldNodeError(version);
}
