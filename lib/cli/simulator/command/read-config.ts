import { readFile } from 'node:fs/promises';
import { InvalidArgumentError } from '../../../common/errors.js';
import {
  checkQuota,
  type CheckedQuota,
  type QuotaOptions,
} from '../../../limiter/quota-options.js';
import { UsageError } from './usage-error.js';

/** The quota options in a JSON file, checked as the limiter checks them. */
export async function readConfig(file: string): Promise<CheckedQuota> {
  const options = parse(file, await load(file));
  let quota: CheckedQuota;
  try {
    quota = checkQuota(options as QuotaOptions);
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    throw new UsageError(`${file}: ${error.message}`);
  }
  if (quota.figures.cluster === undefined) {
    throw new UsageError(
      `${file}: quota.cluster is missing: the simulator measures against the cluster's capacity`,
    );
  }
  return quota;
}

async function load(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new UsageError(`${file}: cannot be read (${messageOf(error)})`);
  }
}

function parse(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${file}: not JSON (${messageOf(error)})`);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
