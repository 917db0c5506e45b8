import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { transform } from '@swc/core';

const LIB = new URL('../../lib/', import.meta.url);
const OWN_NAME = /^nestjs-weir(?:\/(.+))?$/;

const SWC = {
  jsc: {
    target: 'es2022',
    keepClassNames: true,
    parser: { syntax: 'typescript', decorators: true },
    transform: {
      legacyDecorator: true,
      decoratorMetadata: true,
      useDefineForClassFields: false,
    },
  },
  module: { type: 'es6' },
  sourceMaps: 'inline',
  swcrc: false,
};

const exists = (url) => existsSync(fileURLToPath(url));

/** The library by its own name is its source, and './x.js' is x.ts: there is only that before a build. */
export async function resolve(specifier, context, next) {
  const own = OWN_NAME.exec(specifier);
  if (own && isSource(context.parentURL))
    return { url: entryOf(own[1]), format: 'module', shortCircuit: true };
  if (/^\.{1,2}\/.*\.js$/.test(specifier) && isSource(context.parentURL)) {
    const url = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL);
    if (exists(url)) return { url: url.href, format: 'module', shortCircuit: true };
  }
  return next(specifier, context);
}

export async function load(url, context, next) {
  if (!isSource(url)) return next(url, context);
  const filename = fileURLToPath(new URL(url));
  const { code } = await transform(await readFile(filename, 'utf8'), { ...SWC, filename });
  return { format: 'module', source: code, shortCircuit: true };
}

function isSource(url) {
  return /\.ts(?:\?|$)/.test(url ?? '') && !url.includes('/node_modules/');
}

function entryOf(name = 'index') {
  const file = new URL(`${name}.ts`, LIB);
  return (exists(file) ? file : new URL(`${name}/index.ts`, LIB)).href;
}
