// Asks for a product again and again, and shows what came and what the server says of itself.
import { showAnswer, showError, showState, showStrip, showSwitches } from './show.js';

const ASK_EVERY_MS = 100;
const LOOK_EVERY_MS = 400;
const MOST_UNDER_WAY = 20;

const byId = (id) => document.getElementById(id);
const query = new URLSearchParams(location.search);
const answers = [];
let product = query.get('product') ?? '1';
let underWay = 0;

byId('user').value = query.get('user') ?? 'ada';
byId('another').addEventListener('click', () => {
  // One that nobody has asked for, so that no cache has it.
  product = String(Math.floor(Math.random() * 900_000) + 1000);
});

/** What the headers of an answer say about it. */
async function readAnswer(response, startedMs) {
  const mark = response.headers.get('x-degraded');
  const age = response.headers.get('age');
  const [, level, reason] = /level=(\d); reason=(\w+)/.exec(mark ?? '') ?? [];
  const isWell = response.ok && mark === null;
  return {
    level: level ?? (isWell ? '0' : 'error'),
    reason,
    ageS: age === null ? undefined : Number(age),
    status: response.status,
    body: await response.json(),
    tookMs: performance.now() - startedMs,
  };
}

async function ask() {
  if (underWay >= MOST_UNDER_WAY) return;
  underWay++;
  const startedMs = performance.now();
  try {
    const headers = { 'x-user': byId('user').value };
    const response = await fetch(`/products/${product}`, { headers, cache: 'no-store' });
    const answer = await readAnswer(response, startedMs);
    answers.push(answer.level);
    showAnswer(answer);
  } catch {
    answers.push('error');
  } finally {
    underWay--;
  }
  if (answers.length > 100) answers.shift();
  showStrip(answers);
}

async function look() {
  try {
    const state = await (await fetch('/state')).json();
    showState(state);
    showSwitches(state, turn);
  } catch {
    showError('The server does not answer.');
  }
}

async function turn(switches) {
  const response = await fetch('/switches', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(switches),
  });
  const state = await response.json();
  showError(response.ok ? '' : state.message);
  if (response.ok) showSwitches(state, turn);
}

setInterval(ask, ASK_EVERY_MS);
setInterval(look, LOOK_EVERY_MS);
look();
