import { type PlainKeys } from './plain-keys.js';

/** Tells those who listen on a channel. */
export type Publish = (channel: string, text: string) => void;

interface ScriptCall {
  readonly keys: PlainKeys;
  readonly nowMs: number;
  readonly args: readonly string[];
  readonly publish: Publish;
}

/** A script; its answer is without the number of the call, which comes last in all of them. */
type Script = (call: ScriptCall) => readonly unknown[];

/** The work of the scripts of lua/ for configuration, orders, leases and the board: see the headers there. */
export function fleetScript(command: string): Script | undefined {
  return Object.hasOwn(SCRIPTS, command) ? SCRIPTS[command] : undefined;
}

const SCRIPTS: Readonly<Record<string, Script>> = {
  weirHoldLease: ({ keys, args: [lease, mark, termMs] }) => {
    const holder = keys.get(lease!);
    if (holder !== null && holder !== mark) return [0];
    keys.set(lease!, mark!, Number(termMs));
    return [1];
  },

  weirReleaseLease: ({ keys, args: [lease, mark] }) => {
    return [keys.get(lease!) === mark ? keys.remove(lease!) : 0];
  },

  weirSwapText: ({ keys, args: [key, readMark, mark, text, ttlMs] }) => {
    const held = keys.get(key!)?.split('\n', 1)[0] ?? '';
    if (held === mark) return [1];
    if (held !== readMark) return [0];
    keys.set(key!, `${mark}\n${text}`, Number(ttlMs));
    return [1];
  },

  weirConfigRead: ({ keys, nowMs, args: [config, orders, known] }) => {
    const record = keys.hash(config!);
    const [revision, held] = [record.get('revision') ?? '0', keys.hash(orders!).size];
    if (known !== '' && record.get('id') === known) return [revision, nowMs, 1, '', '', held];
    const [current, previous] = [record.get('current') ?? '', record.get('previous') ?? ''];
    return [revision, nowMs, 0, current, previous, held];
  },

  weirConfigWrite: ({ keys, nowMs, args, publish }) => {
    const [config, historyKey, expected, above, id, body] = args as string[];
    const [mostRecords, mostBytes] = [Number(args[6]), Number(args[7])];
    const record = keys.hash(config!);
    const held = wholeOr0(record.get('revision'), Number(args[9]));
    if (record.get('id') === id) return [1, held, nowMs];
    if (held !== Number(expected)) return [0, held, nowMs];
    const revision = Math.max(Number(expected), Number(above)) + 1;
    const text = `{"revision":${revision},"atMs":${nowMs},${body!.slice(1)}`;
    const history = keys.list(historyKey!);
    history.unshift(text);
    let bytes = history.reduce((sum, one) => sum + Buffer.byteLength(one), 0);
    while (history.length > mostRecords || (bytes > mostBytes && history.length > 1)) {
      bytes -= Buffer.byteLength(history.pop()!);
    }
    record.set('previous', record.get('current') ?? '');
    record.set('revision', String(revision)).set('id', id!).set('current', text);
    publish(args[8]!, String(revision));
    return [1, revision, nowMs];
  },

  weirConfigAcknowledge: ({ keys, nowMs, args: [acksKey, deadlinesKey, node, body, ttlMs] }) => {
    const [acks, deadlines] = [keys.hash(acksKey!), keys.scores(deadlinesKey!)];
    acks.set(node!, `{"atMs":${nowMs},${body!.slice(1)}`);
    deadlines.set(node!, nowMs + Number(ttlMs));
    for (const [silent, deadlineMs] of deadlines) {
      if (deadlineMs > nowMs) continue;
      acks.delete(silent);
      deadlines.delete(silent);
    }
    return [nowMs];
  },

  weirConfigAcks: ({ keys, nowMs, args: [acksKey, deadlinesKey] }) => {
    const acks = keys.hash(acksKey!);
    return [...keys.scores(deadlinesKey!)].flatMap(([node, deadlineMs]) => {
      return deadlineMs > nowMs ? (acks.get(node) ?? []) : [];
    });
  },

  weirOrderPut: ({ keys, nowMs, args, publish }) => {
    const [ordersKey, body, askedMs, keepMs, most, channel] = args as string[];
    const orders = keys.hash(ordersKey!);
    const atMs = Math.max(Number(askedMs), nowMs);
    const untilMs = atMs + Number(keepMs);
    let [count, latestMs] = [0, untilMs];
    for (const [number, text] of orders) {
      if (!/^\d+$/.test(number)) continue;
      const endsMs = Number(/"untilMs":(\d+)/.exec(text)?.[1] ?? 0);
      if (endsMs > nowMs) {
        count++;
        latestMs = Math.max(latestMs, endsMs);
      } else forgetOrder(orders, number);
    }
    if (count >= Number(most)) return [0, nowMs];
    const number = Number(orders.get('next') ?? 0) + 1;
    orders.set('next', String(number));
    const head = `{"id":${number},"atMs":${atMs},"untilMs":${untilMs},`;
    orders.set(String(number), head + body!.slice(1));
    keys.expire(ordersKey!, latestMs - nowMs);
    publish(channel!, 'orders');
    return [number, nowMs];
  },

  weirOrderClaim: ({ keys, nowMs, args: [ordersKey, order, service, node, leaseMs, result] }) => {
    const orders = keys.hash(ordersKey!);
    const field = `${order}/${service}`;
    if (!orders.has(order!)) return [0, nowMs];
    const held = orders.get(field);
    if (held !== undefined) {
      const claim = JSON.parse(held) as { node: unknown; untilMs: number; result: unknown };
      const isOwn = JSON.stringify(claim.node) === JSON.stringify(JSON.parse(node!));
      if (claim.result !== null || (!isOwn && claim.untilMs > nowMs)) return [0, nowMs];
    }
    const untilMs = nowMs + Number(leaseMs);
    orders.set(field, `{"node":${node},"untilMs":${untilMs},"atMs":${nowMs},"result":${result}}`);
    return [1, nowMs];
  },

  weirOrderCancel: ({ keys, args: [ordersKey, order] }) => {
    const orders = keys.hash(ordersKey!);
    if (!orders.has(order!)) return [0];
    if ([...orders.keys()].some((field) => field.startsWith(`${order}/`))) return [2];
    orders.delete(order!);
    return [1];
  },

  weirOrdersRead: ({ keys, nowMs, args: [ordersKey] }) => {
    return [nowMs, ...[...keys.hash(ordersKey!)].flat()];
  },
};

function forgetOrder(orders: Map<string, string>, number: string): void {
  for (const field of orders.keys()) {
    if (field === number || field.startsWith(`${number}/`)) orders.delete(field);
  }
}

/** A text that is no such number was not written here. */
function wholeOr0(text: string | undefined, highest: number): number {
  const number = Number(text ?? 0);
  return Number.isInteger(number) && number >= 0 && number <= highest ? number : 0;
}
