import { InvalidConfigError, type ConfigIssue } from '../../common/errors.js';
import { deepFreeze, isImmutable } from '../../common/immutable.js';
import { isObject, type DocumentPath } from '../document/json.js';
import { effective, NORMAL_PROFILE } from '../document/effective.js';
import { SECTIONS, type ConfigDocument } from './document.schema.js';
import { issue, unknownName } from './issue.js';
import { plainJson, withoutNulls, type PlainCopy } from './plain-json.js';
import { ALL_SOUND, ruleIssues, type IsSound } from './rules.js';
import { shapeIssues, type LocatedIssue } from './shape-issues.js';

/** How a document is checked. */
export interface CheckOptions {
  /** A document that configures nothing is refused unless this is set. */
  readonly allowEmpty?: boolean;
  /** The name of the document in the message of the error. */
  readonly name?: string | undefined;
}

/** A part of the configuration that is laid over what is below it; null removes. */
export type ConfigLayer = { readonly [name: string]: unknown };

/**
 * The document, checked as a whole, with its profiles, as a frozen copy. Throws an
 * `InvalidConfigError` with everything that is wrong.
 */
export function checkDocument(value: unknown, options: CheckOptions = {}): ConfigDocument {
  return checked(value, options, documentIssues) as ConfigDocument;
}

/**
 * A layer or a patch, as a frozen copy: its form is checked, but not whether it is complete, as that
 * depends on what is below it.
 */
export function checkLayer(value: unknown, options: CheckOptions = {}): ConfigLayer {
  return checked(value, options, layerIssues) as ConfigLayer;
}

type FindIssues = (copy: unknown, options: CheckOptions) => ConfigIssue[];

function checked(value: unknown, options: CheckOptions, find: FindIssues): unknown {
  const { copy, issues, isComplete } = isImmutable(value) ? asItIs(value) : plainJson(value ?? {});
  const left = new Set(issues.map(({ path }) => path));
  // A value that is no JSON is not in the copy, and must not be reported as missing as well.
  const found = isComplete ? find(copy, options).filter(({ path }) => !left.has(path)) : [];
  if (issues.length + found.length > 0) {
    throw new InvalidConfigError([...issues, ...found], options.name);
  }
  return deepFreeze(copy);
}

/** Only what was copied and found right is ever made immutable. */
function asItIs(copy: unknown): PlainCopy {
  return { copy, issues: [], isComplete: true };
}

function layerIssues(copy: unknown, { allowEmpty }: CheckOptions): ConfigIssue[] {
  if (isObject(copy) && isEmpty(copy)) return allowEmpty ? [] : [emptyIssue()];
  return shapeIssues(withoutNulls(copy)).map((one) => one.issue);
}

const isEmpty = (layer: object): boolean => Object.keys(layer).every((name) => name === 'version');

function documentIssues(copy: unknown, options: CheckOptions): ConfigIssue[] {
  const shape = shapeIssues(copy);
  if (!isObject(copy))
    return copy === undefined || copy === null ? [emptyIssue()] : issuesOf(shape);
  const document = copy as ConfigDocument;
  const hasNothing = SECTIONS.every((name) => document[name] === undefined);
  if (hasNothing && shape.length === 0 && !options.allowEmpty) return [emptyIssue()];
  if (shape.length > MOST_FORM_FAULTS) return issuesOf(shape);
  const base = ruleIssues(document, soundness(shape, []));
  return [...issuesOf(shape), ...base, ...profileIssues(document, shape, base)];
}

/** With more than this rules can wait: each part that they look at is compared with each fault. */
const MOST_FORM_FAULTS = 100;
/** Each is checked with the whole document, by every process. */
const MOST_PROFILES = 64;

const issuesOf = (found: readonly LocatedIssue[]): ConfigIssue[] => found.map((one) => one.issue);

function emptyIssue(): ConfigIssue {
  const expected = `at least one of ${SECTIONS.join(', ')}`;
  return issue([], undefined, `${expected} (or allowEmpty, if that is meant)`, 'is empty');
}

/** Rules are only applied to parts whose form is right. */
function soundness(shape: readonly LocatedIssue[], prefix: DocumentPath): IsSound {
  if (shape.length === 0) return ALL_SOUND;
  return (path) => {
    const at = [...prefix, ...path];
    return shape.every((one) => !overlaps(one.at, at));
  };
}

function overlaps(fault: DocumentPath, part: DocumentPath): boolean {
  const shared = Math.min(fault.length, part.length);
  for (let i = 0; i < shared; i++) if (fault[i] !== part[i]) return false;
  return true;
}

/** Every profile must be able to come into force, not only the one that is. */
function profileIssues(
  document: ConfigDocument,
  shape: readonly LocatedIssue[],
  base: readonly ConfigIssue[],
): ConfigIssue[] {
  if (!soundness(shape, [])(['profile'])) return [];
  const profiles = isObject(document.profiles) ? Object.keys(document.profiles) : [];
  if (profiles.length > MOST_PROFILES) {
    return [issue(['profiles'], profiles.length, `no more than ${MOST_PROFILES} profiles`)];
  }
  const known = new Set(base.map(({ message }) => message));
  const inProfiles = profiles.flatMap((profile) => {
    const [inBase, inProfile] = [soundness(shape, []), soundness(shape, ['profiles', profile])];
    const isSound: IsSound = (at) => inBase(at) && inProfile(at);
    if (!isObject(document.profiles?.[profile])) return [];
    // The profiles themselves have been looked at with the document.
    const { profiles: _, ...inForce } = effective(document, profile);
    // Two objects of the right form can make one of the wrong form, such as a key of two kinds.
    const form = shapeIssues(inForce).filter(({ at }) => isSound(at));
    const inForm = soundness(form, []);
    const rules = ruleIssues(inForce, (at) => isSound(at) && inForm(at));
    return [...issuesOf(form), ...rules]
      .filter(({ message }) => !known.has(message))
      .map((one) => belowProfile(profile, one));
  });
  return [...unknownProfile(document.profile, profiles), ...inProfiles];
}

function unknownProfile(profile: string | undefined, profiles: readonly string[]): ConfigIssue[] {
  const known = [...new Set([NORMAL_PROFILE, ...profiles])];
  if (profile === undefined || known.includes(profile)) return [];
  return [unknownName(['profile'], profile, known, `one of ${known.join(', ')}`)];
}

function belowProfile(profile: string, one: ConfigIssue): ConfigIssue {
  const at = issue(['profiles', profile], one.value, one.expected).path;
  const path = one.path.startsWith('[') ? `${at}${one.path}` : `${at}.${one.path}`;
  const message = `${at}: in force, ${one.message}`;
  return { ...one, path, message };
}
