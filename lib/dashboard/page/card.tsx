import { type ComponentChildren } from 'preact';
import { percent } from './format.js';
import { shareTone } from './judge.js';
import { go, type View } from './live.js';

export function Card(props: {
  readonly id: string;
  readonly title: string;
  readonly note?: ComponentChildren;
  readonly side?: ComponentChildren;
  readonly children?: ComponentChildren;
}) {
  const { id, title, note, side, children } = props;
  return (
    <section class={`card ${id}`} aria-labelledby={`h-${id}`}>
      <header>
        <h2 id={`h-${id}`}>{title}</h2>
        {note !== undefined && <p>{note}</p>}
        {side}
      </header>
      {children}
    </section>
  );
}

/** The head of a column; `n` if figures stand below it. */
export type Head = string | { readonly n: string };

/** A table that may be wider than its place; the keyboard can scroll it as well. */
export function Table(props: {
  readonly heads: readonly Head[];
  readonly children: ComponentChildren;
}) {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {props.heads.map((head) => {
              const [name, tone] = typeof head === 'string' ? [head, ''] : [head.n, 'n'];
              return (
                <th key={name} scope="col" class={tone}>
                  {name}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
    </div>
  );
}

export function Empty(props: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <b>{props.title}</b>
      <p>{props.children}</p>
    </div>
  );
}

export function Legend({
  of,
}: {
  of: readonly (readonly [tone: string, name: string, value?: string])[];
}) {
  return (
    <ul class="legend">
      {of.map(([tone, name, value]) => (
        <li key={name}>
          <i class={`key ${tone}`} />
          {name}
          {value !== undefined && <b> {value}</b>}
        </li>
      ))}
    </ul>
  );
}

/** Names and what they are now. */
export function Pairs({
  of,
}: {
  of: readonly (readonly [name: string, value: string | number])[];
}) {
  return (
    <dl class="pairs">
      {of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Share({ part }: { part: number }) {
  const tone = shareTone(part);
  return (
    <div class="use">
      <div class="bar">
        <i class={tone} style={{ width: `${Math.min(100, part * 100)}%` }} />
      </div>
      <span class={`is-${tone}`}>{percent(part)}</span>
    </div>
  );
}

export function MoreButton({ to, text }: { to: View; text: string }) {
  return (
    <button class="plain more" onClick={() => go(to)}>
      {text}
    </button>
  );
}
