import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { type IncomingMessage, type ServerResponse } from 'node:http';
import { RateLimitError } from '../common/errors.js';
import { packageFile } from '../stores/package-file.js';
import { begin } from './answers.js';

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.html': 'text/html; charset=utf-8',
};

interface Asset {
  readonly type: string;
  /** As the build has made it: nobody zips while requests wait. */
  readonly zipped: Buffer;
}

const ZIPPED = '.gz';
const PAGE = 'index.html';
const A_YEAR = 'public, max-age=31536000, immutable';

/** The files of the page, read once. Their names hold hashes of their content, so browsers keep them. */
export class Assets {
  private readonly files = new Map<string, Asset>();
  /** Another one means that a page which is open was made by an earlier deployment. */
  readonly build: string;

  constructor(folder: URL = packageFile('assets/dashboard/')) {
    let names: string[];
    try {
      names = readdirSync(folder);
    } catch {
      throw new AssetsMissingError(folder.pathname);
    }
    for (const file of names) {
      const name = file.slice(0, -ZIPPED.length);
      const type = TYPES[extname(name)];
      if (type === undefined || !file.endsWith(ZIPPED)) continue;
      this.files.set(name, { type, zipped: readFileSync(new URL(file, folder)) });
    }
    const page = this.files.get(PAGE);
    if (page === undefined) throw new AssetsMissingError(folder.pathname);
    this.build = createHash('sha256').update(page.zipped).digest('hex').slice(0, 12);
  }

  sendPage(request: IncomingMessage, response: ServerResponse): void {
    this.send(request, response, this.files.get(PAGE)!, 'no-store');
  }

  /** False if there is no such file. */
  sendFile(request: IncomingMessage, response: ServerResponse, name: string): boolean {
    const file = name === PAGE ? undefined : this.files.get(name);
    if (file === undefined) return false;
    this.send(request, response, file, A_YEAR);
    return true;
  }

  private send(
    { headers }: IncomingMessage,
    response: ServerResponse,
    { type, zipped }: Asset,
    cacheControl: string,
  ): void {
    const takesZip = /\bgzip\b/.test(String(headers['accept-encoding'] ?? ''));
    // All browsers take it; what else asks gets it as it was.
    const sent = takesZip ? zipped : gunzipSync(zipped);
    begin(response, 200, {
      'content-type': type,
      'content-length': String(sent.length),
      'cache-control': cacheControl,
      vary: 'accept-encoding',
      ...(takesZip && { 'content-encoding': 'gzip' }),
    });
    response.end(sent);
  }
}

/** The package is not whole. */
export class AssetsMissingError extends RateLimitError {
  readonly code = 'DASHBOARD_ASSETS_MISSING';

  constructor(folder: string) {
    super(`the page of the dashboard is not in ${folder}: install the package again, or build it`);
  }
}
