import { existsSync, readFileSync } from 'node:fs';

/**
 * A file of the package that is read at run time, such as a Lua script. It is looked for from here upwards, as the
 * sources, the modules and the bundles of them lie at different depths.
 */
export function packageFile(path: string): URL {
  return new URL(path, root());
}

let found: URL | undefined;

function root(): URL {
  found ??= folderWith('lua/', new URL('./', import.meta.url));
  return found;
}

function folderWith(name: string, folder: URL): URL {
  const above = new URL('../', folder);
  const isThere = existsSync(new URL(name, folder)) || above.href === folder.href;
  return isThere ? folder : folderWith(name, above);
}

/** The version of this library; empty if its package.json is not there, as in a bundle. */
export function libraryVersion(): string {
  try {
    const file = readFileSync(packageFile('package.json'), 'utf8');
    return (JSON.parse(file) as { version: string }).version;
  } catch {
    return '';
  }
}
