export { histories } from './history/run-histories.js';
export { askedFor, scenarioList } from './command/arguments.js';
export { printVerdict, runAsked, simulate, toJson, type Output } from './command/simulate.js';
export { UsageError } from './command/usage-error.js';
export { SCENARIOS } from './scenarios/index.js';
export { type Scenario, type ScenarioReport, type Setting } from './scenarios/scenario.js';
