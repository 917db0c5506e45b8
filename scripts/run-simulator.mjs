// Runs the simulator as it is built.
import { simulate } from '../dist/cli/simulator/command/simulate.js';
import { main } from './support/step.mjs';

await main(() => simulate(process.argv.slice(2), console));
