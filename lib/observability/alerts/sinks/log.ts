import { inOneLine } from '../../../common/quoted.js';
import { plain, type Alert } from '../alert.js';
import { type AlertSink } from './sink.js';

type WriteLine = (text: string) => void;

/** One line for each change, at a level that fits. */
export function logSink(logger: Readonly<Record<'log' | 'warn' | 'error', WriteLine>>): AlertSink {
  return {
    name: 'log',
    send: (batch) => {
      for (const alert of batch) logger[levelOf(alert)](inOneLine(lineOf(alert)));
    },
  };
}

const LEVELS = { info: 'log', warning: 'warn', critical: 'error' } as const;

const levelOf = ({ state, severity }: Alert): 'log' | 'warn' | 'error' =>
  state === 'resolved' ? 'log' : LEVELS[severity];

const lineOf = ({ rule, state, severity, text, cluster }: Alert): string =>
  state === 'resolved'
    ? `${text} [${plain(cluster)}]`
    : `${severity} ${rule}: ${text} [${plain(cluster)}]`;
