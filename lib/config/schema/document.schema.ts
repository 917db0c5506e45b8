import { z } from 'zod';
import { degradationSchema } from '../../degradation/degradation.schema.js';
import { field, group, named, text, whole } from '../../common/schema-fields.js';
import { appSchema, clusterSchema, policySchema } from '../../limits/limits.schema.js';
import { overloadSchema } from '../../overload/overload.schema.js';
import { protectionSchema } from '../../protection/protection.schema.js';

const sections = {
  cluster: field(clusterSchema, 'The capacity that all apps share, and how processes lease of it'),
  apps: field(named(appSchema, 'apps'), "The apps' shares of it"),
  policies: field(named(policySchema, 'policies'), 'The rules by name'),
  degradation: field(degradationSchema, 'What is answered when the real answer cannot be had'),
  protection: field(protectionSchema, 'Resources inside the service that are protected, by name'),
  overload: field(overloadSchema, 'What happens to more requests than a process can serve'),
};

const profileSchema = group(sections);

/** The whole document. Every field may be left out here; the rules say what must be there. */
export const documentSchema = group({
  version: field(whole(), 'Of two versions of a file or of the code, the higher one holds'),
  ...sections,
  profile: field(text('the name of a profile'), 'The profile in force', 'normal'),
  profiles: field(
    named(profileSchema, 'profiles'),
    'What is laid on top while a profile is in force',
  ),
});

/** Everything that can be configured, as plain JSON. */
export type ConfigDocument = z.infer<typeof documentSchema>;
/** The part of it that a profile can change. */
export type ProfileDocument = z.infer<typeof profileSchema>;
export type ClusterDocument = z.infer<typeof clusterSchema>;
export type AppDocument = z.infer<typeof appSchema>;
export type PolicyDocument = z.infer<typeof policySchema>;
export type DegradationDocument = z.infer<typeof degradationSchema>;
export type ProtectionDocument = z.infer<typeof protectionSchema>;
export type OverloadDocument = z.infer<typeof overloadSchema>;

/** The names of the document's parts that configure something. */
export const SECTIONS = Object.keys(sections) as readonly (keyof ProfileDocument)[];

/** The document's JSON Schema, by which editors check and complete a file. */
export function editorSchema(): Record<string, unknown> {
  const { $schema, properties, ...rest } = z.toJSONSchema(documentSchema);
  return {
    $schema,
    title: 'nestjs-weir',
    description: 'The configuration of nestjs-weir',
    ...rest,
    properties: { $schema: { type: 'string' }, ...properties },
  };
}
