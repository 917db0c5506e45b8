import { nearest } from '../common/nearest.js';
import { NORMAL_PROFILE } from '../config/document/effective.js';
import { checkLayer, type ConfigLayer } from '../config/schema/check.js';
import { snapshotOf } from '../config/snapshot.js';
import { prospects } from '../config/staged-updates.js';
import { pathText } from '../config/document/json.js';
import { joined, NO_LAYERS, patched } from '../config/layers.js';
import { type ConfigLayers, type ConfigRecord } from '../stores/config-store.js';
import { atPath } from './documents.js';
import { CommandFailedError } from './command.js';

interface Meant {
  /** Policies that are not there yet are no mistake. */
  readonly isNew: boolean | undefined;
  /** Nor are fields that the profile in force hides. */
  readonly isBase: boolean | undefined;
  /** The prefix under which they were looked for. */
  readonly prefix: string;
}

/**
 * Two changes that are valid and hardly ever meant: a policy that no route uses because its name is
 * misspelt, and a field that makes no difference because the profile in force also sets it.
 */
export function mustBeMeant(
  patch: ConfigLayer,
  stored: ConfigRecord | undefined,
  effectiveAt: Date | undefined,
  { isNew = false, isBase = false, prefix }: Meant,
): void {
  // Misspelt fields are reported first.
  checkLayer(patch, { allowEmpty: true, name: 'patch' });
  const holding = stored === undefined ? NO_LAYERS : holdingAt(stored, effectiveAt?.getTime());
  if (!isNew) mustBeThere(patch, joined(holding), prefix);
  if (!isBase) mustBeSeen(patch, holding);
}

/** The layers below the patch at that time, as far as is known. */
function holdingAt(stored: ConfigRecord, atMs = 0): ConfigLayers {
  const before = stored.staged.filter(({ effectiveAtMs }) => effectiveAtMs <= atMs);
  const all = prospects(stored, before, (layers, { allowEmpty }) => {
    snapshotOf(layers, stored.revision, { allowEmpty });
  });
  return all.at(-1)?.layers ?? stored;
}

const IF_NEW = '\nnothing was written; add --new if it is to be a new one';

function mustBeThere(patch: ConfigLayer, document: object, prefix: string): void {
  const known = namesAt(document, ['policies']);
  const profiles = namesAt(patch, ['profiles']).map((profile) => ['profiles', profile, 'policies']);
  for (const path of [['policies'], ...profiles]) {
    const there = [...known, ...namesAt(document, path)];
    const added = namesAt(patch, path).filter((name) => atPath(patch, [...path, name]) !== null);
    const strange = added.find((name) => !there.includes(name));
    if (strange !== undefined) throw noPolicy(strange, there, prefix, IF_NEW);
  }
}

const namesAt = (document: object, path: readonly string[]): string[] =>
  Object.keys(fieldsOf(atPath(document, path)));

/** `more` is what could be done instead. */
export function noPolicy(
  name: string,
  known: readonly string[],
  prefix: string,
  more = '',
): CommandFailedError {
  const meant = nearest(name, known);
  const list = [...new Set(known)].join(', ') || `none under --prefix ${prefix}`;
  const hint = meant === undefined ? `there are ${list}` : `did you mean '${meant}'?`;
  return new CommandFailedError(`there is no policy '${name}'; ${hint}${more}`);
}

function mustBeSeen(patch: ConfigLayer, holding: ConfigLayers): void {
  const then = joined(patched(holding, patch));
  const profile = typeof then['profile'] === 'string' ? then['profile'] : NORMAL_PROFILE;
  const over = atPath(then, ['profiles', profile]);
  const saidToo = atPath(patch, ['profiles', profile]);
  const { profile: _name, profiles: _others, version: _number, ...fields } = patch;
  const hidden = leavesOf(fields).filter((path) => isSet(over, path) && !isSet(saidToo, path));
  if (hidden.length === 0) return;
  const names = hidden.map(pathText).join(', ');
  const instead = hidden.map((path) => pathText(['profiles', profile, ...path])).join(', ');
  const isOne = hidden.length === 1;
  throw new CommandFailedError(
    `${names}: the profile '${profile}' is in force and sets ${isOne ? 'it' : 'them'} too, so that nothing ` +
      `would change\nnothing was written; set ${instead}, or add --base for what holds without the profile`,
  );
}

function leavesOf(value: object, above: readonly string[] = []): string[][] {
  return Object.entries(value).flatMap(([name, part]: [string, unknown]) => {
    const path = [...above, name];
    const isInner = isFields(part) && Object.keys(part).length > 0;
    return isInner ? leavesOf(part, path) : [path];
  });
}

/** A value, a list or null stands for all that would be below it. */
function isSet(layer: unknown, path: readonly string[]): boolean {
  let value = layer;
  for (const name of path) {
    if (!isFields(value)) return value !== undefined;
    value = Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return value !== undefined;
}

const isFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const fieldsOf = (value: unknown): object => (isFields(value) ? value : {});
