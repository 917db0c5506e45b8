// esbuild puts them into the page's own style sheet.
declare module '*.css';
