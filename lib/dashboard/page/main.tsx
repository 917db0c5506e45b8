import './style.css';
import { effect } from '@preact/signals';
import { render } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { inState } from '../../observability/alerts/alert-words.js';
import { CapacityView } from './capacity.js';
import { ConfigView } from './config.js';
import { shown, span } from './format.js';
import {
  clockMs,
  frame,
  go,
  heardMs,
  horizon,
  HORIZON_NAMES,
  HORIZONS,
  isStale,
  link,
  opened,
  outdated,
  paused,
  retryNow,
  start,
  switchTheme,
  theme,
  view,
  VIEWS,
  type View,
} from './live.js';
import { Overview } from './overview.js';
import { keep } from './rates.js';
import { FleetView, PoliciesView, ResourcesView } from './tables.js';

const titleOf = (one: View): string => one[0]!.toUpperCase() + one.slice(1);

function Brand() {
  return (
    <div class="brand">
      <svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">
        {[6, 12, 18].map((y) => (
          <path key={y} d={`M2 ${y}c2.5 0 2.5 2 5 2s2.5-2 5-2 2.5 2 5 2 2.5-2 5-2`} />
        ))}
      </svg>
      <b>weir</b>
    </div>
  );
}

function Top() {
  const now = frame.value;
  return (
    <header class="top">
      <Brand />
      {now !== null && (
        <div class="where">
          <span class="dim">{now.state.quota === undefined ? 'service' : 'cluster'}</span>
          <strong>{shown(now.state.cluster)}</strong>
          {/* Whether the last change has reached everyone, wherever one looks. */}
          {now.change !== null && now.reached !== '' && (
            <a
              href="#config"
              class={/^(?:on all nodes|here)$/.test(now.reached) ? '' : 'is-degraded'}
            >
              revision {now.change.revision} {now.reached}
            </a>
          )}
        </div>
      )}
      <nav aria-label="Views">
        <ul class="tabs">
          {VIEWS.map((one) => (
            <li key={one}>
              <a
                href={`#${one}`}
                aria-current={view.value === one ? 'page' : undefined}
                onClick={(event) => {
                  event.preventDefault();
                  go(one);
                }}
              >
                {titleOf(one)}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="right">
        <div class="segments" role="group" aria-label="How far back">
          {HORIZONS.map((one) => (
            <button
              key={one}
              aria-pressed={horizon.value === one}
              onClick={() => (horizon.value = one)}
            >
              {HORIZON_NAMES[one]}
            </button>
          ))}
        </div>
        <Live />
        <button
          class="ghost icon"
          aria-label={`Switch to ${theme.value === 'dark' ? 'light' : 'dark'}`}
          onClick={switchTheme}
        >
          <svg viewBox="0 0 20 20" width="16" height="16" aria-hidden="true">
            <path d="M10 2a8 8 0 1 0 8 8 6 6 0 0 1-8-8z" fill="currentColor" />
          </svg>
        </button>
        <button class="ghost icon" aria-label="Keys of the keyboard" onClick={showKeys}>
          ?
        </button>
      </div>
    </header>
  );
}

const LINKS: Readonly<Record<typeof link.value, string>> = {
  live: 'Live',
  refused: 'Signed out',
  lost: 'Lost',
  connecting: 'Connecting',
};

function Live() {
  const isPaused = paused.value;
  const text = isPaused ? 'Paused' : LINKS[link.value];
  return (
    <button
      class={`link ${isPaused ? 'paused' : link.value}`}
      aria-pressed={isPaused}
      title="Pause (space)"
      onClick={() => (paused.value = !paused.value)}
    >
      <i aria-hidden="true" />
      {text}
    </button>
  );
}

function Banners() {
  return (
    <div class="banners" role="status">
      {link.value === 'lost' && (
        <p class="banner">
          The stream is lost: last heard {span(Math.max(1000, clockMs.value - heardMs.value))} ago.
          It is tried again by itself.{' '}
          <button class="plain" onClick={retryNow}>
            Try now
          </button>
        </p>
      )}
      {link.value === 'refused' && (
        <p class="banner">
          The server does not let you look any more. <a href="./">Sign in again</a>
        </p>
      )}
      {outdated.value && (
        <p class="banner">
          This page is of an earlier deployment. <a href="./">Load the new one</a>
        </p>
      )}
    </div>
  );
}

const KEYS: readonly (readonly [keys: string, does: string])[] = [
  ['g then o p f r c a', 'Overview, policies, fleet, resources, config, capacity'],
  ['1 2 3', '2 minutes, 3 hours, 7 days'],
  ['/', 'filter'],
  ['space', 'pause and go on'],
  ['t', 'light or dark'],
  ['Esc', 'close what is open'],
  ['?', 'this list'],
];

let keysDialog: HTMLDialogElement | null = null;
function showKeys(): void {
  keysDialog?.showModal();
}

function Keys() {
  return (
    <dialog ref={(element) => void (keysDialog = element)} aria-labelledby="h-keyboard">
      <h2 id="h-keyboard">Keys</h2>
      <dl>
        {KEYS.map(([keys, does]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button class="ghost">Close</button>
      </form>
    </dialog>
  );
}

/** Of the views, in their order. */
const LETTERS = 'opfrca';

let goesUntil = 0;

function onKey(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  const isTyping = target.closest('input, textarea, select') !== null;
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const { key } = event;
  const to = VIEWS[LETTERS.indexOf(key)];
  if (to !== undefined && performance.now() < goesUntil) {
    goesUntil = 0;
    go(to);
    document.getElementById('main')?.focus();
  } else if (key === 'g') goesUntil = performance.now() + 1500;
  else if (key === '1' || key === '2' || key === '3') horizon.value = HORIZONS[Number(key) - 1]!;
  else if (key === '?') showKeys();
  else if (key === 't') switchTheme();
  else if (key === '/') focusFilter();
  else if (key === ' ' && target.closest('button, a, summary, .scroll') === null) {
    paused.value = !paused.value;
  } else {
    // An open dialog is closed by the browser itself, unless that is prevented.
    if (key === 'Escape') opened.value = null;
    return;
  }
  event.preventDefault();
}

/** Views without a filter have none to go to: the policies are what is mostly looked for. */
function focusFilter(): void {
  if (document.getElementById('filter') === null) go('policies');
  requestAnimationFrame(() => document.getElementById('filter')?.focus());
}

function Shown() {
  const now = frame.value;
  if (now === null) {
    return (
      <p class="waiting" role="status">
        {link.value === 'refused'
          ? 'The server does not let you look.'
          : 'Waiting for the first figures…'}
      </p>
    );
  }
  switch (view.value) {
    case 'overview':
      return <Overview frame={now} />;
    case 'policies':
      return <PoliciesView frame={now} />;
    case 'fleet':
      return <FleetView frame={now} />;
    case 'resources':
      return <ResourcesView frame={now} />;
    case 'config':
      return <ConfigView frame={now} />;
    case 'capacity':
      return <CapacityView frame={now} />;
  }
}

function App() {
  const main = useRef<HTMLElement>(null);
  const now = frame.value;
  useEffect(() => {
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  useEffect(() => scrollTo(0, 0), [view.value]);
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the content
      </a>
      <Top />
      <Banners />
      <main id="main" ref={main} tabIndex={-1} class={isStale.value ? 'stale' : ''}>
        <h1 class="hidden">
          {titleOf(view.value)}
          {now === null ? '' : ` of ${shown(now.state.cluster)}`}
        </h1>
        <Shown />
      </main>
      {now !== null && (
        <footer>
          nestjs-weir {now.version} · seen from {shown(now.seenFrom)} · store{' '}
          {now.storeKind === 'redis' ? 'Redis' : 'in memory'}
          {now.scope === 'fleet' &&
            ` · figures of the fleet ${span(Math.max(0, now.nowMs - now.state.atMs))} old`}
        </footer>
      )}
      <Keys />
    </>
  );
}

effect(() => {
  const now = frame.value;
  if (now === null) return;
  keep(now);
  const firing = inState(now.state.alerts, 'firing').length;
  const alerts = firing === 0 ? '' : `${firing} alert${firing === 1 ? '' : 's'} · `;
  document.title = `${alerts}${shown(now.state.cluster)} · weir`;
});
start();
render(<App />, document.getElementById('app')!);
