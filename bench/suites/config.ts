import { type Suite } from '../support/suite.js';
import { decisions } from './config/decisions.js';
import { spreading } from './config/spreading.js';

export const config: Suite = {
  name: 'config',
  about: 'how fast a change reaches all processes, and what it leaves behind in a decision',

  async run(context) {
    const reports = [await spreading(context), await decisions(context)];
    return {
      series: reports.flatMap(({ series }) => series),
      absences: reports.flatMap(({ absences = [] }) => absences),
      bars: reports.flatMap(({ bars }) => bars),
      notes: reports.flatMap(({ notes = [] }) => notes),
    };
  },
};
