export { type ConfigSource } from './config-source.js';
export { FileSource, FileSourceOptions, readText } from './file-source.js';
export { ConfigSyntaxError, formatOf, parseText, tooLarge, type TextFormat } from './parse-text.js';
export { SourceLayer, type SourceLayerOptions } from './source-layer.js';
