// Runs histories of the simulator as it is built.
import { histories } from '../dist/cli/simulator/history/run-histories.js';
import { main } from './support/step.mjs';

await main(() => histories(process.argv.slice(2), console));
