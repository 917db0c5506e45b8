// Runs histories of the simulator as it is built.
import { modules } from './support/root.mjs';
import { main } from './support/step.mjs';

const { histories } = await import(`${modules}/cli/simulator/history/run-histories.js`);

await main(() => histories(process.argv.slice(2), console));
