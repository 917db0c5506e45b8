import { transform } from '@swc/core';
import { transform as print } from 'esbuild';
import ts from 'typescript';

/**
 * The code of the package is there once, for ES modules and CommonJS alike: a process has every class once, however it is
 * asked for, or what one copy injects, another does not know.
 *
 * A file of code is CommonJS that asks for nothing by itself: it exports a function that is given the ways to load packages,
 * at once and later, and makes what it has when it is first called. An ES module imports the packages and passes them on, as `require`
 * cannot load the ES modules of Nest 12 everywhere (Jest); a CommonJS file passes its `require`.
 *
 * @param {string} code An ES module as rollup writes it: imports first, one list of exports at the end
 * @param {(from: string) => boolean} isLater Whether another file is loaded only when something of it is used
 */
export async function codeFile(code, isLater) {
  const later = [];
  const body = code
    .replace(/^import ([^;]*?) from '([^']*)';$/gm, (whole, names, from) => {
      if (from.startsWith('.') && isLater(from)) {
        later.push(from);
        return whole;
      }
      return `const ${names.replaceAll(' as ', ': ')} = weirLoad('${from}');`;
    })
    // Only for the order in which modules run; and nothing goes by that.
    .replace(/^import '[^']*';$/gm, '')
    .replace(/^export \{([^}]*)\} from '([^']*)';$/gm, (_, names, from) => {
      const fields = namesIn(names).map(([own, name]) => `${name}: from.${own}`);
      return `{ const from = weirLoad('${from}'); Object.assign(weirExports, { ${fields.join(', ')} }); }`;
    })
    .replace(/^export \{([^}]*)\};$/gm, (_, names) => {
      const fields = namesIn(names).map(([own, name]) => `${name}: ${own}`);
      return `Object.assign(weirExports, { ${fields.join(', ')} });`;
    })
    .replace(/\bimport\(('[^'.][^']*')\)/g, 'weirImport($1)')
    .replaceAll('import.meta.url', 'require("node:url").pathToFileURL(__filename).href');
  const translated = await withLater(body, later);
  const rest = /^(?:import|export)\b.*|\bimport(?:\.meta|\()/m.exec(translated);
  if (rest !== null) throw new Error(`the build cannot translate: ${rest[0]}`);
  const text = `'use strict';
let made, isMaking = false;
module.exports = (packages, later) => {
  if (made !== undefined) return made;
  if (isMaking) throw new Error('nestjs-weir: ' + __filename + ' needs itself to be loaded');
  isMaking = true;
  made = make((name) => {
    if (name.startsWith('.')) return require(name)(packages, later);
    return name.startsWith('node:') ? require(name) : packages(name);
  }, later);
  return made;
};
const make = (function (weirLoad, weirImport) {
const weirExports = {};
${translated}
return weirExports;
});
`;
  return small(text);
}

/** Imports of files that are loaded later become functions that load them once, and names of theirs calls of these. */
async function withLater(body, later) {
  if (later.length === 0) return body;
  const { code } = await transform(body, {
    jsc: { target: 'es2022', parser: { syntax: 'ecmascript' } },
    module: {
      type: 'commonjs',
      lazy: later,
      strict: true,
      strictMode: false,
      importInterop: 'none',
    },
  });
  return code.replace(/\brequire\("(\.\/[^"]*)"\)/g, 'weirLoad("$1")');
}

/** `a, b as c` as pairs of the name in the file and the name outside. */
function namesIn(list) {
  return list.split(',').map((one) => {
    const [own, name = own] = one.trim().split(' as ');
    return [own, name];
  });
}

/**
 * Without comments and with short names of local variables: those of functions and classes stay, as stack traces,
 * Nest's messages, names of errors and of routes are made of them.
 */
async function small(text) {
  const { code } = await transform(text, {
    jsc: {
      target: 'es2022',
      parser: { syntax: 'ecmascript' },
      minify: {
        compress: COMPRESS,
        mangle: { keep_classnames: true, keep_fnames: true },
        format: { comments: false, ascii_only: true },
      },
    },
    minify: true,
    isModule: false,
  });
  const lines = await print(code, {
    minifyWhitespace: true,
    lineLimit: 600,
    target: 'es2022',
  });
  // In parentheses, as V8 takes a function for one that is called at once, and does not read it twice.
  const called = lines.code
    .replace('const make=function(', 'const make=(function(')
    .replace(/\};?\s*$/, '});\n');
  return withLinesForThrows(withoutLeftovers(called));
}

/** Where swc joins returns it leaves `(false, x)` for `x`: six bytes at each of some 400 places. */
function withoutLeftovers(code) {
  const file = ts.createSourceFile('code.js', code, ts.ScriptTarget.ES2022);
  let [text, at] = ['', 0];
  const visit = (node) => {
    const isComma = node.operatorToken?.kind === ts.SyntaxKind.CommaToken;
    if (isComma && node.left.kind === ts.SyntaxKind.FalseKeyword) {
      text += code.slice(at, node.left.getStart(file));
      at = node.right.getStart(file);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return text + code.slice(at);
}

/** An error that nobody catches is shown with the line that threw it: with that statement, not with pages of code. */
function withLinesForThrows(code) {
  const file = ts.createSourceFile('code.js', code, ts.ScriptTarget.ES2022);
  const breaks = [];
  const visit = (node) => {
    if (ts.isThrowStatement(node)) breaks.push(node.getStart(file), node.end);
    ts.forEachChild(node, visit);
  };
  visit(file);
  let [text, at] = ['', 0];
  for (const next of breaks.sort((one, other) => one - other)) {
    const isBroken = code[next - 1] === '\n' || code[next] === '\n';
    text += code.slice(at, next) + (isBroken ? '' : '\n');
    at = next;
  }
  return text + code.slice(at);
}

/** Shorter ways to write the same; nothing is moved, inlined or renamed. */
const COMPRESS = {
  ...{ defaults: false, keep_classnames: true, keep_fnames: true, passes: 1 },
  ...{ booleans: true, comparisons: true, conditionals: true, if_return: true },
  ...{
    join_vars: true,
    sequences: true,
    properties: true,
    loops: true,
    switches: true,
    typeofs: true,
  },
};

/** The file that `require` gets. */
export function commonJsEntry(name) {
  return `'use strict';
const missing = require('./code/missing-package.js')('nestjs-weir/${name}');
const load = (name) => {
  try {
    return require(name);
  } catch (error) {
    return missing(name, error);
  }
};
const later = async (name) => require(name);
module.exports = Object.defineProperty(require('./code/${name}.js')(load, later), '__esModule', { value: true });
`;
}

/**
 * Packages that are CommonJS for ES modules as well. Imported, Node would look through all their files for the names of
 * their exports, which takes longer than to load most of this package.
 */
const COMMON_JS = ['rxjs'];

/** The file that `import` gets: `optional` are those of its packages that an application need not have. */
export function moduleEntry(name, packages, optional, names) {
  const isOptional = (from) => optional.includes(from);
  const imported = packages.filter((from) => !COMMON_JS.includes(from));
  const lines = imported.map((from, index) =>
    isOptional(from)
      ? `const p${index} = await import('${from}').catch((error) => missing('${from}', error));\n`
      : `import * as p${index} from '${from}';\n`,
  );
  if (imported.some(isOptional)) {
    lines.push(`import missingFor from '../dist-cjs/code/missing-package.js';\n`);
    lines.unshift(`const missing = missingFor('nestjs-weir/${name}');\n`);
  }
  const given = imported.map((from, index) => `'${from}': p${index}`);
  const isRequired = imported.length < packages.length;
  if (isRequired) lines.push(`import { createRequire } from 'node:module';\n`);
  const imports = lines.filter((line) => line.startsWith('import '));
  return `${imports.join('')}import code from '../dist-cjs/code/${name}.js';
${lines.filter((line) => !imports.includes(line)).join('')}const packages = { ${given.join(', ')} };
${isRequired ? 'const require = createRequire(import.meta.url);\n' : ''}const load = (name) => packages[name]${isRequired ? ' ?? require(name)' : ''};
export const { ${names.join(', ')} } = code(load, (name) => import(name));
`;
}

/** Says which package to install where one is missing, and nothing of what is wrong inside of one. */
export const MISSING_PACKAGE = `'use strict';
module.exports = (entry) => (name, error) => {
  const isMissing = /^(?:ERR_)?MODULE_NOT_FOUND$/.test(error.code) && error.message.includes(\`'\${name}'\`);
  if (!isMissing) throw error;
  const { MissingPackageError } = require('./algorithms-part.js')(require);
  throw new MissingPackageError(name, entry, { cause: error });
};
`;
