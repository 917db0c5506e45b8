export * from './config-errors.js';
export { type ConfigSettings } from './config-settings.js';
export * from './document/index.js';
export * from './rate-limit-config.js';
export { inOneLine, type Report } from './report.js';
export * from './schema/index.js';
export * from './sources/index.js';
export { snapshotOf } from './snapshot.js';
export { VersionedConfig } from './versioned-config.js';
