export * from './document/index.js';
export * from './schema/index.js';
export * from './sources/index.js';
