export { simulate, type Output } from './command/simulate.js';
export { SCENARIOS } from './scenarios/index.js';
export { type Scenario, type ScenarioReport, type Setting } from './scenarios/scenario.js';
