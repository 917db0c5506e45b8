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
