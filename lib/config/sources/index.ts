export { type ConfigSource } from './config-source.js';
export { FileSource, FileSourceOptions } from './file-source.js';
export { ConfigSyntaxError, formatOf, parseText, type TextFormat } from './parse-text.js';
export { SourceLayer, type SourceLayerOptions } from './source-layer.js';
