// Lets Node import the TypeScript of the repository as it stands: `node --import ./test/setup/typescript.mjs`.
import { register } from 'node:module';

register('./typescript-hooks.mjs', import.meta.url);
