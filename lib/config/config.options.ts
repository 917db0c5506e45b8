import { type ConfigSource } from './sources/source-layer.js';
import { durationMs, type Duration } from '../common/duration.js';
import { InvalidArgumentError } from '../common/errors.js';
import { plainObject, rejectUnknown, withoutUndefined } from '../common/validate.js';

/** How limits change while the service runs. The initial values are the defaults. */
export class ConfigOptions {
  /** A JSON or YAML file whose content is laid over the code; followed while the process runs. */
  file?: string;
  /** The same from anywhere else, in place of a file. */
  source?: ConfigSource;
  /** How often the file is looked at. */
  filePoll: Duration = '2s';
  /** How often the store is read although it announces changes; ±20 %. */
  poll: Duration = '5s';
}

const KNOWN = ['file', 'source', ...Object.keys(new ConfigOptions())];

/** The options with their defaults; throws for those that make no sense. */
export function checkConfigOptions(input: Partial<ConfigOptions>): ConfigOptions {
  plainObject('config', input, 'an object');
  rejectUnknown('config', input, KNOWN);
  const options = Object.assign(new ConfigOptions(), withoutUndefined(input));
  const { file, source, poll, filePoll } = options;
  if (file !== undefined && (typeof file !== 'string' || file === '')) {
    throw new InvalidArgumentError('config.file', file, 'a text that is not empty');
  }
  if (source !== undefined && typeof source?.read !== 'function') {
    throw new InvalidArgumentError('config.source', source, 'an object with a function read');
  }
  if (file !== undefined && source !== undefined) {
    throw new InvalidArgumentError('config.source', source, "not to be there beside 'config.file'");
  }
  durationMs(poll, 'config.poll');
  durationMs(filePoll, 'config.filePoll');
  return options;
}
