export { type Command, type Output } from './command.js';
export { COMMANDS, runCommand } from './run-command.js';
