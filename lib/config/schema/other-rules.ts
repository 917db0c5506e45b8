import { type z } from 'zod';
import { durationMs } from '../../common/duration.js';
import { type ConfigIssue } from '../../common/errors.js';
import { mergePatch } from '../document/merge-patch.js';
import { type PathSegment } from '../document/path.js';
import { defaultsOf } from './defaults.js';
import { degradationSchema } from '../../degradation/degradation.schema.js';
import { type ConfigDocument } from './document.schema.js';
import { issue, unknownName } from './issue.js';

type Path = readonly PathSegment[];

/** The rules between fields of sections that no limiter knows. */
export function otherRules(document: ConfigDocument): ConfigIssue[] {
  const { degradation, protection = {} } = document;
  return [
    ...Object.keys(protection).flatMap((resource) => policyName(document, resource)),
    ...(degradation === undefined ? [] : degradationRules(degradation)),
  ];
}

function policyName(
  { protection, policies = {} }: ConfigDocument,
  resource: string,
): ConfigIssue[] {
  const known = Object.keys(policies);
  const settings = protection?.[resource];
  const policy = typeof settings === 'object' ? settings.rate : undefined;
  if (typeof policy !== 'string' || known.includes(policy)) return [];
  const expected = 'the name of one of the policies';
  return [unknownName(['protection', resource, 'rate'], policy, known, expected)];
}

/** The settings as they will hold: what is not said has its default. */
function filled<T>(schema: z.ZodObject, value: T): T {
  return mergePatch(defaultsOf(schema), value) as T;
}

function degradationRules(given: NonNullable<ConfigDocument['degradation']>): ConfigIssue[] {
  return rising(['degradation'], filled(degradationSchema, given), ['slow', 'deadline']);
}

/** Each of the figures must be above the one before it. */
function rising<T extends object>(
  at: Path,
  figures: T,
  names: (keyof T & string)[],
): ConfigIssue[] {
  return names.slice(1).flatMap((name, i) => {
    const before = names[i]!;
    if (sizeOf(figures[name]) > sizeOf(figures[before])) return [];
    const expected = `more than ${before} (${String(figures[before])})`;
    return [issue([...at, name], figures[name], expected)];
  });
}

/** A ratio as it is, a duration in milliseconds. */
function sizeOf(figure: unknown): number {
  return typeof figure === 'string' ? durationMs(figure, '') : Number(figure);
}
