/**
 * The file that `require` gets. A process must have every class once, or what one copy injects, another does not
 * know. So `require` gives the ES modules where they are in use: they were imported before, or Nest itself is
 * made of ES modules, as from version 12 on. On Nest 11 the CommonJS files are taken, as Node would have to
 * read all of Nest a second time to import it.
 */
export function commonJsEntry(name) {
  // Without Nest there is nothing to read twice: package.json gives the ES module to a Node that can.
  if (name === 'algorithms') return `module.exports = require('./entries/${name}.js');\n`;
  return `'use strict';
const { join } = require('node:path');
const { types } = require('node:util');
const isImported = globalThis[Symbol.for('nestjs-weir.copies')]?.has(join(__dirname, '../dist'));
const isNestImported = () => types.isModuleNamespaceObject(require('@nestjs/common'));
module.exports =
  isImported || isNestImported() ? require('../dist/${name}.js') : require('./entries/${name}.js');
`;
}
