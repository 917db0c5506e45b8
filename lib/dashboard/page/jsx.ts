// JSX is compiled to calls of `h`: shorter than those that `react-jsx` makes. Types go on being those of `react-jsx`.
export { Fragment, h } from 'preact';
