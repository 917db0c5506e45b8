// Makes node_modules match package-lock.json.
import { ensureInstall } from './support/install.mjs';
import { main } from './support/step.mjs';

await main(ensureInstall);
