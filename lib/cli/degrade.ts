import { nearest } from '../common/nearest.js';
import { canonicalJson } from '../config/document/json.js';
import { type ConfigLayer } from '../config/schema/check.js';
import { type ConfigDocument } from '../config/schema/document.schema.js';
import { UsageError, type Command, type Output, CommandFailedError } from './command.js';
import { type ConfigRecord, type NodeAck } from '../stores/config-store.js';
import { dateOption, readArguments, wholeOption, FLAG, TEXT } from './arguments.js';
import {
  changeFleet,
  WRITE_HELP,
  WRITE_OPTIONS,
  type Make,
  type WriteValues,
} from './fleet-change.js';
import { mustBeMeant } from './meant.js';
import { prefixOf } from './store-options.js';
import { documentIn } from './stored-config.js';

const OPTIONS = {
  ...WRITE_OPTIONS,
  until: TEXT,
  new: FLAG,
} as const;

const HELP: readonly string[] = [
  '--until TIME      released by itself then, on the clock of Redis',
  '--new             even if no running process knows the resource',
  ...WRITE_HELP,
];

export const degradeForce: Command = {
  name: 'degrade force',
  takes: 'RESOURCE',
  about: 'have all requests of a resource answered by its fallbacks, in the whole fleet',
  options: ['--level N         by the fallback of this level, 1 to 4, and those below it', ...HELP],
  run(args, output) {
    const options = { ...OPTIONS, level: TEXT } as const;
    const { values, words } = readArguments(args, options, [1, 1], 'RESOURCE');
    const level = wholeOption('--level', values.level, 1);
    if (level !== undefined && level > 4) {
      throw new UsageError(`--level must be a whole number from 1 to 4; got '${level}'.`);
    }
    return change(words[0]!, { mode: 'forced', level: level ?? null }, values, output);
  },
};

export const degradeObserve: Command = {
  name: 'degrade observe',
  takes: 'RESOURCE',
  about: 'only count what would be done with a resource, in the whole fleet',
  options: HELP,
  run(args, output) {
    const { values, words } = readArguments(args, OPTIONS, [1, 1], 'RESOURCE');
    return change(words[0]!, { mode: 'observe', level: null }, values, output);
  },
};

export const degradeRelease: Command = {
  name: 'degrade release',
  takes: 'RESOURCE',
  about: 'leave a resource to its health again, in the whole fleet',
  options: HELP.filter((line) => !line.startsWith('--until')),
  run(args, output) {
    const { until: _now, ...options } = OPTIONS;
    const { values, words } = readArguments(args, options, [1, 1], 'RESOURCE');
    return change(words[0]!, RELEASED, values, output);
  },
};

interface Mode {
  readonly mode: 'forced' | 'observe' | null;
  readonly level: number | null;
}

const RELEASED: Mode = { mode: null, level: null };

interface Values extends WriteValues {
  readonly until?: string;
  readonly new?: boolean;
}

const patchFor = (resource: string, mode: Mode): ConfigLayer => ({
  degradation: { resources: { [resource]: mode } },
});

/** The end is staged first: what is to end by itself never begins without it. */
function change(resource: string, mode: Mode, values: Values, output: Output): Promise<number> {
  const until = dateOption('--until', values.until);
  if (until !== undefined && until.getTime() <= Date.now()) {
    throw new UsageError(`--until must be a time to come; got '${values.until}'.`);
  }
  const make: Make = async (config, said, stored) => {
    if (!values.new) await mustBeKnown(resource, stored, config);
    const patch = patchFor(resource, mode);
    mustBeMeant(patch, stored, undefined, {
      ...{ isNew: false, isBase: false, prefix: prefixOf(values) },
    });
    const { by } = said;
    for (const { id } of releasesOf(resource, stored)) await config.cancel(id, { by });
    if (until === undefined) return config.update(patch, said);
    const end = await config.update(patchFor(resource, RELEASED), { by, effectiveAt: until });
    try {
      return await config.update(patch, { by });
    } catch (error) {
      await config.cancel(end.revision, { by });
      throw error;
    }
  };
  return changeFleet(values, output, make);
}

/** A name that no process knows is one that an operator has misspelt. */
async function mustBeKnown(
  resource: string,
  stored: ConfigRecord | undefined,
  config: { nodes(): Promise<NodeAck[]> },
): Promise<void> {
  const known = resourcesIn(documentIn(stored), await config.nodes());
  if (known.includes(resource)) return;
  throw unknownResource(resource, known, 'add --new if it is one of processes to come');
}

export function unknownResource(
  resource: string,
  known: readonly string[],
  remedy: string,
): CommandFailedError {
  const meant = nearest(resource, known);
  const some = known.slice(0, MOST_NAMES).join(', ') + (known.length > MOST_NAMES ? '…' : '');
  const list = known.length === 0 ? 'no running process has any' : `there are ${some}`;
  const hint = meant === undefined ? list : `did you mean '${meant}'?`;
  return new CommandFailedError(`there is no resource '${resource}'; ${hint}\n${remedy}`);
}

const MOST_NAMES = 12;

function resourcesIn({ degradation }: ConfigDocument, nodes: readonly NodeAck[]): string[] {
  const told = nodes.flatMap(({ resources = [] }) => [...resources]);
  return [...new Set([...told.map(String), ...Object.keys(degradation?.resources ?? {})])].sort();
}

/** Updates that wait to release the resource, as `--until` has staged them. */
function releasesOf(resource: string, stored: ConfigRecord | undefined) {
  const release = canonicalJson(patchFor(resource, RELEASED));
  return (stored?.staged ?? []).filter(({ patch }) => canonicalJson(patch) === release);
}

/** A resource that an operator holds. */
export interface HeldResource {
  readonly resource: string;
  readonly mode: string;
  readonly level?: number;
  /** When it is released by itself. */
  readonly untilMs?: number;
}

export function heldResources(stored: ConfigRecord | undefined): HeldResource[] {
  const resources = documentIn(stored).degradation?.resources ?? {};
  return Object.entries(resources).flatMap(([resource, { mode = 'auto', level }]) => {
    if (mode === 'auto') return [];
    const end = releasesOf(resource, stored)[0];
    const more = {
      ...(level !== undefined && { level }),
      ...(end && { untilMs: end.effectiveAtMs }),
    };
    return [{ resource, mode, ...more }];
  });
}
