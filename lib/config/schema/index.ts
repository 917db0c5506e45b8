export {
  checkDocument,
  checkLayer,
  plainLayer,
  type CheckOptions,
  type ConfigLayer,
} from './check.js';
export { documentOf, limitsOf, type Limits } from './limits-of.js';
export * from './document.schema.js';
export { editorSchema } from './editor-schema.js';
export { MOST_BYTES } from './plain-json.js';
