import { degradationSchema } from '../../degradation/degradation.schema.js';
import { type Passing, type Schema } from '../../common/schema.js';
import { field, group, named, text, whole } from '../../common/schema-fields.js';
import { appSchema, clusterSchema, policySchema } from '../../limits/limits.schema.js';
import { alertsSchema } from '../../observability/alerts/alerts.schema.js';
import { overloadSchema } from '../../overload/overload.schema.js';
import { protectionSchema } from '../../protection/protection.schema.js';

const sections = {
  cluster: field(clusterSchema, 'The capacity that all apps share, and how processes lease of it'),
  apps: field(named(appSchema, 'apps'), "The apps' shares of it"),
  policies: field(named(policySchema, 'policies'), 'The rules by name'),
  degradation: field(degradationSchema, 'What is answered when the real answer cannot be had'),
  protection: field(protectionSchema, 'Resources inside the service that are protected, by name'),
  overload: field(overloadSchema, 'What happens to more requests than a process can serve'),
  alerts: field(alertsSchema, 'What is told to operators, and when'),
} satisfies Record<keyof ProfileDocument, unknown>;

const profileSchema: Schema<ProfileDocument> = group(sections);

/** The whole document. Every field may be left out here; the rules say what must be there. */
export const documentSchema: Schema<ConfigDocument> = group({
  version: field(whole(), 'Of two versions of a file or of the code, the higher one holds'),
  ...sections,
  profile: field(text('the name of a profile'), 'The profile in force', 'normal'),
  profiles: field(
    named(profileSchema, 'profiles'),
    'What is laid on top while a profile is in force',
  ),
});

/** The part of the configuration that a profile can change. */
export interface ProfileDocument {
  cluster?: ClusterDocument | undefined;
  apps?: Record<string, AppDocument> | undefined;
  policies?: Record<string, PolicyDocument> | undefined;
  degradation?: DegradationDocument | undefined;
  protection?: ProtectionDocument | undefined;
  overload?: OverloadDocument | undefined;
  alerts?: AlertsDocument | undefined;
}

/** Everything that can be configured, as plain JSON. */
export interface ConfigDocument extends ProfileDocument {
  version?: number | undefined;
  profile?: string | undefined;
  profiles?: Record<string, ProfileDocument> | undefined;
}

/** The section `cluster`. */
export type ClusterDocument = Passing<typeof clusterSchema>;
/** An app of the section `apps`. */
export type AppDocument = Passing<typeof appSchema>;
/** A policy of the section `policies`: a `RoutePolicy` without its functions, which JSON cannot carry. */
export type PolicyDocument = Passing<typeof policySchema>;
/** The section `degradation`. */
export type DegradationDocument = Passing<typeof degradationSchema>;
/** A resource of the section `protection`. */
export type ProtectionDocument = Passing<typeof protectionSchema>;
/** The section `alerts` of the configuration. */
export type AlertsDocument = Passing<typeof alertsSchema>;
/** The section `overload`. */
export type OverloadDocument = Passing<typeof overloadSchema>;

/** The names of the document's parts that configure something. */
export const SECTIONS = Object.keys(sections) as readonly (keyof ProfileDocument)[];

/** The document's JSON Schema, by which editors check and complete a file. */
export function editorSchema(): Record<string, unknown> {
  const { type, properties, additionalProperties } = documentSchema.json();
  // A profile has the sections of the document: told twice, they would be half of the file.
  const inProfile = SECTIONS.map((name) => [name, { $ref: `#/properties/${name}` }]);
  const ofProfile = Object.fromEntries(inProfile) as Record<string, object>;
  const profile = { ...profileSchema.json(), properties: ofProfile };
  const { profiles, ...rest } = properties as Record<string, object>;
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'nestjs-weir',
    description: 'The configuration of nestjs-weir',
    type,
    additionalProperties,
    properties: {
      $schema: { type: 'string' },
      ...rest,
      profiles: { ...profiles, additionalProperties: profile },
    },
  };
}
