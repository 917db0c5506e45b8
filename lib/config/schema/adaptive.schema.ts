import { duration, field, flag, group, named, ratio, whole } from './fields.js';

const weightsSchema = group({
  cpu: field(ratio(), 'CPU, or the event loop if that is busier', 0.5),
  memory: field(ratio(), 'Memory', 0.3),
  inFlight: field(ratio(), 'Requests in flight', 0.2),
});

const thresholdsSchema = group({
  low: field(ratio(), 'Up to this load the limits are whole', 0.6),
  high: field(ratio(), 'From this load on they are at their floor', 0.9),
  critical: field(ratio(), 'A single signal above this sets the floor at once', 0.95),
});

const loopDelaySchema = group({
  low: field(duration(), 'Below this delay of the event loop the limits rise again', '15ms'),
  high: field(duration(), 'Above it they are lowered', '30ms'),
  critical: field(duration(), 'Above it they are at their floor at once', '500ms'),
});

const gateSchema = group({
  maxInFlight: field(whole(), 'Requests in flight; without it, learned from what passed'),
  delay: field(duration(), 'A delay of the event loop above this also closes the gate', '100ms'),
  coolOff: field(duration(), 'How long the gate stays watchful', '1s'),
});

const tierSchema = group({
  order: field(whole(1, 1000), 'Who is turned away first: 1 before 2 before 3'),
  passThrough: field(ratio(), 'The part of the excess that passes all the same'),
});

export const adaptiveSchema = group({
  enabled: field(flag(), 'Whether load moves the limits of nodes and routes', false),
  tick: field(duration(), 'How often the load is looked at', '500ms'),
  weights: field(weightsSchema, 'What the load is made of; the three add up to 1'),
  thresholds: field(thresholdsSchema, 'From which load on limits are lowered'),
  floor: field(ratio(), 'The part of a limit that is always left', 0.5),
  loopDelay: field(loopDelaySchema, 'The delay of the event loop, which tells a queue'),
  gate: field(gateSchema, 'What is turned away whatever the floor says'),
  tiers: field(named(tierSchema, 'tiers'), 'Who is turned away when the gate is closed', {
    S: { order: 4, passThrough: 0.8 },
    A: { order: 3, passThrough: 0.5 },
    B: { order: 2, passThrough: 0 },
    C: { order: 1, passThrough: 0 },
  }),
});
