import { chmodSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** The script finds its tree from where it lies, so that a checkout may move. */
export function writeStartScript(tree, script, ...lines) {
  const libraries = new Set(
    filesBelow(tree)
      .filter((file) => /\.so(\.|$)/.test(file))
      .map((file) => `$here/${dirname(file)}`),
  );
  const text = [
    '#!/bin/sh',
    'here=$(dirname "$(readlink -f "$0")")',
    `export LD_LIBRARY_PATH="${[...libraries].join(':')}\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"`,
    ...lines.filter(Boolean),
  ];
  writeFileSync(script, `${text.join('\n')}\n`);
  chmodSync(script, 0o755);
}

export const filesBelow = (dir) =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(dir, join(entry.parentPath, entry.name)));
