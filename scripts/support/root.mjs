import { fileURLToPath } from 'node:url';
import { join } from 'node:path';

/** The repository's root; every script works from there, wherever it was called. */
export const root = fileURLToPath(new URL('../../', import.meta.url)).replace(/\/$/, '');

export const inRoot = (...parts) => join(root, ...parts);

/** Where fetched tools are kept. `npm ci` empties it, which only costs another fetch. */
export const toolCache = inRoot('node_modules', '.cache', 'nestjs-weir');

/** The library's modules one by one, as they are before they are bundled; some scripts run parts of them. */
export const modules = inRoot('dist-modules');
