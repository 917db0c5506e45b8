import { type Contender } from '../contender.js';
import { protectedBy, work } from './work.js';

/** The work alone. */
export const createBare = (): Contender => protectedBy((key) => work(key));
