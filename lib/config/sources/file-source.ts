import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { SystemClock, type Clock } from '../../common/clock.js';
import { durationMs, type Duration } from '../../common/duration.js';
import { MOST_BYTES } from '../schema/plain-json.js';
import { type ConfigSource } from './source-layer.js';
import { ConfigSyntaxError, formatOf, parseText, tooLarge, type TextFormat } from './parse-text.js';

/** The initial values are the defaults. */
export class FileSourceOptions {
  /** How often the file is looked at. */
  pollInterval: Duration = '2s';
  /** By default `json` for names that end so, else `yaml`. */
  format?: TextFormat;
  clock: Clock = new SystemClock();
}

/** A new content must be the same after this time: else it is still being written. */
const SETTLE_MS = 50;
const MOST_READS = 40;

/**
 * A JSON or YAML file, looked at by content. The path is opened anew each time, so a file that is
 * replaced, or a link that points elsewhere (as Kubernetes does it), is seen like one that is written.
 */
export class FileSource implements ConfigSource {
  private readonly options: FileSourceOptions;
  private readonly pollMs: number;
  /** The full path, for messages. */
  private readonly place: string;
  /** The hash of the last content, or why it could not be read. */
  private seen: string | undefined;
  private isLooking = false;
  private reads = 0;

  constructor(
    readonly path: string,
    options: Partial<FileSourceOptions> = {},
  ) {
    this.options = Object.assign(new FileSourceOptions(), options);
    this.place = resolve(path);
    this.pollMs = durationMs(this.options.pollInterval, 'pollInterval');
  }

  async read(): Promise<unknown> {
    this.seen = undefined;
    this.reads++;
    try {
      const text = await this.steadyText();
      this.seen = hash(text);
      return await parseText(text, this.path, this.options.format ?? formatOf(this.path));
    } catch (error) {
      this.seen ??= markOf(error);
      throw error;
    } finally {
      this.reads--;
    }
  }

  watch(changed: () => void): () => void {
    return this.options.clock.every(this.pollMs, () => void this.look(changed));
  }

  private async look(changed: () => void): Promise<void> {
    // The read under way will see it.
    if (this.isLooking || this.reads > 0) return;
    this.isLooking = true;
    try {
      const mark = await this.text().then(hash, markOf);
      if (mark !== this.seen && this.reads === 0) changed();
    } finally {
      this.isLooking = false;
    }
  }

  /** The content of the file once it is no longer being written. */
  private async steadyText(): Promise<string> {
    let text = await this.text();
    for (let reads = 1; reads < MOST_READS; reads++) {
      await this.pause(SETTLE_MS);
      const again = await this.text();
      if (again === text) return text;
      text = again;
    }
    throw new ConfigSyntaxError(this.path, 'is being written without end');
  }

  private text(): Promise<string> {
    return readText(this.place, this.path);
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.options.clock.after(ms, resolve));
  }
}

/** The content of a file, if it is one and not too large. `name` stands in messages. */
export async function readText(path: string, name: string): Promise<string> {
  try {
    const found = await stat(path);
    // A pipe would never end, and a device could be without end.
    if (!found.isFile()) throw new ConfigSyntaxError(name, 'is not a file');
    if (found.size > MOST_BYTES) throw tooLarge(name, found.size);
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof ConfigSyntaxError) throw error;
    throw new ConfigSyntaxError(name, `cannot be read (${(error as Error).message})`);
  }
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex');

const markOf = (error: unknown): string => String((error as Error).message);
