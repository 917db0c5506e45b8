export { ManualClock, settle } from 'nestjs-weir/testing';
