// Builds dist and build/ where they do not match their sources; with the argument `library` only dist.
import { ensureLibrary, ensureRunnables } from './support/compile.mjs';
import { main } from './support/step.mjs';

await main(process.argv[2] === 'library' ? ensureLibrary : ensureRunnables);
