import { signal, useSignal, useSignalEffect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { type ConfigDiff } from '../../config/document/diff.js';
import { patchBetween } from '../../config/document/merge-patch.js';
import { type Effect } from '../effects.js';
import { type PageFrame } from '../frame.js';
import { ago, count, plural, shown, text, time } from './format.js';
import { type ApiError, ask, frame as frameNow, go } from './live.js';
import { Card } from './card.js';

interface Current {
  readonly revision: number;
  readonly profile: string;
  readonly document: object;
}

/** With the document as text: of thousands of policies that is too much to do again each second. */
interface Shown extends Current {
  readonly text: string;
}

interface Past {
  readonly revision: number;
  readonly kind: string;
  readonly by: string;
  readonly atMs: number;
  readonly diff?: ConfigDiff;
}

interface Issue {
  readonly path: string;
  readonly message: string;
  readonly line?: number;
}

interface Judged {
  readonly revision: number;
  readonly issues: readonly Issue[];
  readonly diff: ConfigDiff;
  readonly effects?: readonly Effect[];
}

interface Ack {
  readonly node: string;
  readonly revision: number;
  readonly status: 'applied' | 'refused';
  readonly reason?: string;
}

/** The text that is worked on; null as long as it is what holds. Kept while other views are looked at. */
const draft = signal<string | null>(null);
/** The revision that the draft was made of. */
const basis = signal(0);
/** The revision of the history that is looked at; `before` is the one before that which holds. */
const lookedAt = signal<number | 'before' | null>(null);

/** Shows what the revision before was, and how to go back to it. */
export function lookAtBefore(): void {
  go('config');
  lookedAt.value = 'before';
}

/** After a failure. */
const TRIED_AGAIN_MS = 5000;

/** Express refuses bodies above 100 kB. */
const LONGEST_SENT = 90_000;

/**
 * What is sent of a text: the difference to the document, which is small where that is large. What is no JSON goes as it
 * is: the server knows YAML, and where a text is broken.
 */
function changeIn(text: string, document: object): { text: string } | { patch: unknown } {
  if (!text.trimStart().startsWith('{')) return { text };
  try {
    const { $schema: _, ...fields } = JSON.parse(text) as { readonly $schema?: unknown };
    return { patch: patchBetween(document, fields) };
  } catch (error) {
    if (text.length > LONGEST_SENT) throw error;
    return { text };
  }
}

/** The judgement of a text that is too long to be sent as long as it is no JSON. */
function brokenAt({ message }: SyntaxError, revision: number): Judged {
  const [, line] = /line (\d+)/.exec(message) ?? [];
  const issue = { path: '', message, ...(line !== undefined && { line: Number(line) }) };
  return { revision, issues: [issue], diff: { added: [], removed: [], changed: [] } };
}

export function ConfigView({ frame }: { readonly frame: PageFrame }) {
  const current = useSignal<Shown | undefined>(undefined);
  /** Undefined as long as it cannot be read: Redis keeps it. */
  const past = useSignal<readonly Past[] | undefined>(undefined);
  const triedMs = useRef(0);
  const judged = useSignal<Judged | undefined>(undefined);
  const fault = useSignal<{ readonly text: string; readonly others?: readonly Past[] } | undefined>(
    undefined,
  );
  const waitingFor = useSignal<number | null>(null);
  const isBusy = useSignal(false);

  // A revision that anybody has written shows up by itself, and the history once it can be read.
  useSignalEffect(() => {
    const { change, nowMs = 0, state } = frameNow.value ?? {};
    const isNew = change?.revision !== current.peek()?.revision;
    const isMissing = past.peek() === undefined && state?.store?.isUp !== false;
    const wasTried = nowMs - triedMs.current < TRIED_AGAIN_MS;
    if (change && (isNew || isMissing) && !wasTried) void load();
  });
  const findLooked = (): Past | undefined =>
    past.value?.find(({ revision }) =>
      lookedAt.value === 'before'
        ? revision < current.value!.revision
        : revision === lookedAt.value,
    );
  // The judgement of a draft stays until the next one; that of a revision is of no other.
  useSignalEffect(() => {
    void lookedAt.value;
    judged.value = undefined;
  });
  useSignalEffect(() => {
    const text = draft.value;
    const revision = findLooked()?.revision;
    const now = current.value;
    if (now === undefined || (text === null && revision === undefined)) {
      judged.value = undefined;
      return;
    }
    let isLate = false;
    const judge = async (): Promise<void> => {
      try {
        const asked = revision === undefined ? changeIn(text!, now.document) : { revision };
        const answer = await ask<Judged>('validate', asked);
        if (isLate) return;
        judged.value = answer;
        // What was said of an earlier text is over, unless there is still to choose.
        if (fault.peek()?.others === undefined) fault.value = undefined;
      } catch (error) {
        if (isLate) return;
        if (error instanceof SyntaxError) judged.value = brokenAt(error, now.revision);
        else fault.value = { text: (error as Error).message };
      }
    };
    const timer = setTimeout(() => void judge(), 250);
    return () => {
      isLate = true;
      clearTimeout(timer);
    };
  });

  const load = async (): Promise<void> => {
    triedMs.current = frameNow.peek()!.nowMs;
    try {
      const now = await ask<Current>('config');
      current.value = { ...now, text: JSON.stringify(now.document, null, 2) };
      past.value = await ask<Past[]>('history');
      triedMs.current = 0;
    } catch (error) {
      past.value = undefined;
      if (current.peek() === undefined) fault.value = { text: (error as Error).message };
    }
  };
  const written = (revision: number): void => {
    draft.value = null;
    fault.value = undefined;
    lookedAt.value = null;
    waitingFor.value = revision;
    void load();
  };
  const send = async (write: () => Promise<{ readonly revision: number }>): Promise<void> => {
    isBusy.value = true;
    try {
      written((await write()).revision);
    } catch (error) {
      const { message, body = {} } = error as ApiError;
      const issues = body.issues as Issue[] | undefined;
      const others = body.others as Past[] | undefined;
      const list = (issues ?? []).map((one) => one.message).join(' ');
      fault.value = { text: `${message} ${list}`.trim(), ...(others && { others }) };
    } finally {
      isBusy.value = false;
    }
  };
  const apply = (): Promise<void> =>
    send(() => {
      const change = changeIn(draft.value!, current.value!.document);
      return ask('config', { ...change, expectedRevision: basis.value }, 'PUT');
    });
  const rollback = (revision: number): Promise<void> =>
    send(() => ask(`rollback/${revision}`, { expectedRevision: current.value!.revision }));
  const edit = (text: string): void => {
    if (draft.value === null) basis.value = current.value!.revision;
    draft.value = text;
  };
  const rebase = (): void => {
    basis.value = current.value!.revision;
    fault.value = undefined;
  };

  const { value: now } = current;
  if (now === undefined) {
    return (
      <Card id="wide" title="Configuration">
        {fault.value === undefined ? (
          <p class="note">One moment…</p>
        ) : (
          <p class="is-deny">{text(fault.value.text)}</p>
        )}
      </Card>
    );
  }
  const isChanged = draft.value !== null && draft.value !== now.text;
  const issues = judged.value?.issues ?? [];
  const size = judged.value === undefined ? 0 : sizeOf(judged.value.diff);
  const looked = findLooked();
  const isOther = looked !== undefined && looked.revision !== now.revision;
  const isJudged = judged.value !== undefined && issues.length === 0;
  const isReady = isChanged && looked === undefined && isJudged && size > 0;
  return (
    <>
      <Card
        id="wide"
        title="Configuration"
        note={
          now.revision === 0
            ? 'as the code has it; no revision is written yet'
            : `revision ${now.revision}, profile ${shown(now.profile)}`
        }
        side={
          frame.canWrite ? (
            <div class="actions">
              {isChanged && looked === undefined && (
                <span class={`chip ${issues.length > 0 ? 'bad' : 'ok'}`} role="status">
                  {judged.value === undefined
                    ? 'checking'
                    : issues.length > 0
                      ? plural(issues.length, 'fault')
                      : size === 0
                        ? 'no change'
                        : 'valid'}
                </span>
              )}
              <button
                class="ghost"
                disabled={!isChanged}
                onClick={() => {
                  draft.value = null;
                  fault.value = undefined;
                }}
              >
                Discard
              </button>
              <button
                class="primary"
                disabled={!isReady || isBusy.value}
                onClick={() => void apply()}
              >
                Apply to {plural(frame.state.nodeCount, 'node')}
              </button>
            </div>
          ) : (
            <span class="chip">read only</span>
          )
        }
      >
        {fault.value !== undefined && (
          <div class="fault" role="alert">
            <b>{text(fault.value.text)}</b>
            {fault.value.others !== undefined && (
              <>
                {fault.value.others.map((one) => (
                  <div key={one.revision}>
                    <p>
                      Revision {one.revision} by {shown(one.by)}:
                    </p>
                    {one.diff !== undefined && <Diff diff={one.diff} />}
                  </div>
                ))}
                <button class="ghost" onClick={rebase}>
                  Keep my text, over revision {now.revision}
                </button>
              </>
            )}
          </div>
        )}
        {waitingFor.value !== null && (
          <Acks
            key={waitingFor.value}
            revision={waitingFor.value}
            nodeCount={frame.state.nodeCount}
            onDone={() => (waitingFor.value = null)}
          />
        )}
        <div class="config-body">
          <div class="history">
            <h3>History</h3>
            <ol>
              {isChanged && (
                <li class="new">
                  <b>your change</b>
                  <span>not applied</span>
                </li>
              )}
              {past.value?.map(({ revision, kind, by, atMs }) => (
                <li key={revision} class={revision === now.revision ? 'current' : ''}>
                  <button
                    class="plain"
                    aria-pressed={looked?.revision === revision}
                    onClick={() =>
                      (lookedAt.value = looked?.revision === revision ? null : revision)
                    }
                  >
                    {revision}
                  </button>
                  <span>
                    {shown(kind)} by {shown(by)}, {ago(frame.nowMs - atMs)}
                  </span>
                </li>
              ))}
            </ol>
            {past.value === undefined ? (
              <p class="note">
                {frame.state.store?.isUp === false
                  ? 'Redis is away: earlier revisions can be seen when it answers again, and changes be applied.'
                  : 'Earlier revisions are being read…'}
              </p>
            ) : (
              past.value.length === 0 && <p class="note">No revision has been written yet.</p>
            )}
          </div>
          <div class="work">
            {looked === undefined ? (
              <Editor
                text={draft.value ?? now.text}
                isReadOnly={!frame.canWrite}
                faults={issues}
                onEdit={edit}
              />
            ) : (
              <div class="looked-at">
                <h3>
                  Revision {looked.revision}, {time(looked.atMs)}, {shown(looked.kind)} by{' '}
                  {shown(looked.by)}
                </h3>
                {isOther && (
                  <>
                    <p class="note">Going back to it would change:</p>
                    {judged.value && <Diff diff={judged.value.diff} />}
                    <p class="note">It had changed:</p>
                  </>
                )}
                {looked.diff === undefined ? (
                  <p class="note">The revision before it is not known any more.</p>
                ) : (
                  <Diff diff={looked.diff} />
                )}
                {frame.canWrite && isOther && (
                  <button
                    class="primary"
                    disabled={isBusy.value}
                    onClick={() => void rollback(looked.revision)}
                  >
                    Roll back to revision {looked.revision}
                  </button>
                )}{' '}
                <button class="ghost" onClick={() => (lookedAt.value = null)}>
                  Back to the text
                </button>
              </div>
            )}
          </div>
          <div class="impact">
            <h3>{issues.length > 0 ? 'What is wrong' : 'What it would do'}</h3>
            {!isChanged && !isOther && (
              <p class="note">
                {frame.canWrite
                  ? 'Change the text, and this shows the difference and what it would do, before anything is applied.'
                  : 'To change limits from here, mount the dashboard with `write: { guard }`.'}
              </p>
            )}
            <ul class="issues">
              {issues.map(({ path, message, line }) => (
                <li key={message} class="bad">
                  {line !== undefined && `line ${line}: `}
                  {path === '' || message.startsWith(path) ? '' : <b>{shown(path)} </b>}
                  {text(message)}
                </li>
              ))}
            </ul>
            {(looked === undefined ? isChanged : isOther) && isJudged && (
              <>
                {!isOther && <Diff diff={judged.value!.diff} />}
                <ul class="issues">
                  {judged.value!.effects?.map(({ isWarning, text: told }) => (
                    <li key={told} class={isWarning ? 'warn' : 'good'}>
                      {text(told)}
                    </li>
                  ))}
                  {size > 0 && (
                    <li class="good">No restart is needed; all nodes have it within seconds.</li>
                  )}
                  {now.profile !== 'normal' && size > 0 && !isOther && (
                    <li class="warn">
                      Profile {shown(now.profile)} is in force: what it sets too stays as it sets
                      it.
                    </li>
                  )}
                </ul>
              </>
            )}
          </div>
        </div>
      </Card>
    </>
  );
}

const sizeOf = ({ added, removed, changed }: ConfigDiff): number =>
  added.length + removed.length + changed.length;

const valueText = (value: unknown): string => {
  const text = JSON.stringify(value) ?? '';
  return shown(text.length > 80 ? `${text.slice(0, 79)}…` : text);
};

export function Diff({ diff }: { diff: ConfigDiff }) {
  const { changed, added, removed } = diff;
  const rows: readonly { path: string; before?: unknown; after?: unknown }[] = [
    ...changed,
    ...added,
    ...removed,
  ];
  if (rows.length === 0) return <p class="note">Nothing differs.</p>;
  return (
    <ul class="diff">
      {rows.map(({ path, before, after }) => (
        <li key={path}>
          <b>{shown(path)}</b>
          {before !== undefined && <del>{valueText(before)}</del>}
          {after !== undefined && <ins>{valueText(after)}</ins>}
        </li>
      ))}
    </ul>
  );
}

interface EditorProps {
  readonly text: string;
  readonly isReadOnly: boolean;
  readonly faults: readonly Issue[];
  readonly onEdit: (text: string) => void;
}

/** In pixels, as the style has them. */
const EDITOR_TOP = 8;
const EDITOR_LINE = 19;

/** A plain field with the numbers of its lines: everything that a browser knows about text works in it. */
function Editor({ text, isReadOnly, faults, onEdit }: EditorProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  const lines = text.split('\n').length;
  useEffect(() => {
    const { current } = field;
    if (current !== null && current.value !== text) current.value = text;
  }, [text]);
  return (
    <div class="editor">
      <div class="lines" aria-hidden="true">
        {/* One text: of thousands of lines as many elements would be made anew at each key. */}
        {Array.from({ length: lines }, (_, index) => index + 1).join('\n')}
        {faults.map(
          ({ message, line }) =>
            line !== undefined && (
              <b key={message} style={{ top: `${EDITOR_TOP + (line - 1) * EDITOR_LINE}px` }}>
                {line}
              </b>
            ),
        )}
      </div>
      <textarea
        ref={field}
        aria-label="The configuration, as JSON or YAML"
        aria-invalid={faults.length > 0}
        spellcheck={false}
        readOnly={isReadOnly}
        rows={lines}
        wrap="off"
        onInput={(event) => onEdit(event.currentTarget.value)}
      />
    </div>
  );
}

interface AcksProps {
  readonly revision: number;
  readonly nodeCount: number;
  readonly onDone: () => void;
}

const ASKED_SECONDS = 60;
const MOST_ACKS = 40;

/** Node by node, as they report that they work with it; those that have not come first. */
function Acks({ revision, nodeCount, onDone }: AcksProps) {
  const acks = useSignal<readonly Ack[]>([]);
  const secondsLeft = useSignal(ASKED_SECONDS);
  const all = acks.value;
  const isThere = (one: Ack): boolean => one.revision >= revision && one.status === 'applied';
  const there = all.filter(isThere);
  const rows = [...all.filter((one) => !isThere(one)), ...there];
  const isDone = all.length > 0 && there.length === all.length;
  const isOver = secondsLeft.value === 0 && !isDone;
  useEffect(() => {
    if (isDone || isOver) return;
    const load = (): void => {
      if (document.hidden) return;
      secondsLeft.value--;
      // What fails is asked again in a second.
      ask<Ack[]>('nodes').then(
        (answer) => (acks.value = answer),
        () => undefined,
      );
    };
    load();
    const again = setInterval(load, 1000);
    return () => clearInterval(again);
  }, [isDone, isOver]);
  return (
    <div class={`acks ${isDone ? 'done' : ''}`} role="status">
      <b>
        {isDone
          ? `Revision ${revision} is in force on ${all.length === 1 ? 'this node' : `all ${count(all.length)} nodes`}.`
          : `Revision ${revision}: ${count(there.length)} of ${plural(all.length || nodeCount, 'node')} have it.`}
      </b>
      {isOver && (
        <p>The others have not said within a minute that they have it; look whether they run.</p>
      )}
      <ul>
        {rows.slice(0, MOST_ACKS).map((one) => (
          <li key={one.node} class={isThere(one) ? 'good' : one.status === 'refused' ? 'bad' : ''}>
            {isThere(one) ? '✓ ' : one.status === 'refused' ? '✕ ' : '… '}
            {shown(one.node)}
            {one.status === 'refused' && `: ${shown(one.reason ?? 'refused')}`}
          </li>
        ))}
        {rows.length > MOST_ACKS && <li>and {count(rows.length - MOST_ACKS)} more</li>}
      </ul>
      {isOver && (
        <button class="plain" onClick={() => (secondsLeft.value = ASKED_SECONDS)}>
          Ask again
        </button>
      )}
      <button class="plain" onClick={onDone}>
        {isDone ? 'Good' : 'Close'}
      </button>
    </div>
  );
}
