// Everything about the configuration: documents, sources, revisions.
export {
  ConfigConflictError,
  ConfigRefusedError,
  TooManyStagedError,
  UnknownRevisionError,
  UnknownStagedError,
  type RevisionSpan,
} from './config/config-errors.js';
export { diff, type ConfigDiff } from './config/document/diff.js';
export {
  RateLimitConfig,
  type ConfigChange,
  type ConfigRefusal,
  type ConfigSnapshot,
  type PastRevision,
  type RollbackOptions,
  type UpdateOptions,
  type ValidateOptions,
} from './config/rate-limit-config.js';
export {
  checkDocument,
  checkLayer,
  type CheckOptions,
  type ConfigLayer,
} from './config/schema/check.js';
export {
  type AlertsDocument,
  type AppDocument,
  type ClusterDocument,
  type ConfigDocument,
  type DegradationDocument,
  type OverloadDocument,
  type PolicyDocument,
  type ProfileDocument,
  type ProtectionDocument,
} from './config/schema/document.schema.js';
export { type ConfigSource } from './config/sources/source-layer.js';
export { FileSource, FileSourceOptions } from './config/sources/file-source.js';
export { ConfigSyntaxError, type TextFormat } from './config/sources/parse-text.js';
export { ConfigOptions } from './config/config.options.js';
export {
  type NodeAck,
  type RevisionKind,
  type StagedName,
  type StagedUpdate,
  type NodeReport,
  type ConfigDraft,
  type ConfigLayers,
  type ConfigRecord,
  type Json,
  type JsonObject,
  type LayersByService,
  type VersionedLayer,
} from './stores/config-store.js';
