import { type Duration } from '../../common/duration.js';

/** What becomes of Kafka's events that are over their limit. The initial values are the defaults. */
export class KafkaOptions {
  /**
   * How long an event may wait in place for its tokens, or be held back by a shaper, and with it its
   * partition; what would take longer is dropped. 0 drops at once. Where callers have limits of their own, it is also how long all events
   * of a partition may wait together before they are dropped at once; a tenth of the time that passes
   * comes back.
   */
  maxWait: Duration = '5s';
}
