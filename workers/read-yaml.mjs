// Reads one YAML text beside the event loop: within the size that is allowed a text can still be a
// matter of seconds, and a service has other things to do. Takes { text, mostKeys, mostDepth }, answers
// { value } or { fault: { reason, line?, column? } }, lines and columns from 1.
import { parentPort, workerData } from 'node:worker_threads';
import { CORE_SCHEMA, load, mergeTag } from 'js-yaml';

const MOST_ALIASES = 100;

parentPort.postMessage(read(workerData));

/** Tags could be anything, so there are none but those of the core schema. The first fault ends it. */
function read({ text, mostKeys, mostDepth }) {
  try {
    const schema = CORE_SCHEMA.withTags(mergeTag);
    const value = load(text, { schema, maxAliases: MOST_ALIASES, maxDepth: mostDepth });
    const keys = keysIn(value, mostKeys);
    if (keys > mostKeys) return { fault: { reason: `it has more than ${mostKeys} keys` } };
    return { value };
  } catch (error) {
    const { reason = error.message, mark } = error;
    return { fault: { reason, ...(mark && { line: mark.line + 1, column: mark.column + 1 }) } };
  }
}

/** Of maps and lists, each counted once however many aliases lead there; no further than `most`. */
function keysIn(value, most) {
  const seen = new Set();
  const open = [value];
  let keys = 0;
  while (open.length > 0 && keys <= most) {
    const next = open.pop();
    if (typeof next !== 'object' || next === null || seen.has(next)) continue;
    seen.add(next);
    const inside = Object.values(next);
    keys += inside.length;
    for (const one of inside) open.push(one);
  }
  return keys;
}
