import { type ConfigSource } from './sources/config-source.js';
import { type Duration } from '../common/duration.js';

/** How limits change while the service runs. The initial values are the defaults. */
export class ConfigOptions {
  /** A JSON or YAML file whose content is laid over the code; followed while the process runs. */
  file?: string;
  /** The same from anywhere else, in place of a file. */
  source?: ConfigSource;
  /** How often the file is looked at. */
  filePoll: Duration = '2s';
  /** How often the store is asked, though it tells of changes by itself; ±20 %. */
  poll: Duration = '5s';
}
