// Before the first paint, so that nothing flashes: the theme of the address, else the one that was chosen, else the system's.
const chosen = ((): string | null => {
  const [, asked] = /[?&]theme=(dark|light)\b/.exec(location.search) ?? [];
  if (asked !== undefined) return asked;
  try {
    return localStorage.getItem('weir-theme');
  } catch {
    return null;
  }
})();
const isDark = matchMedia('(prefers-color-scheme: dark)').matches;
const { dataset } = document.documentElement;
dataset.theme = chosen ?? (isDark ? 'dark' : 'light');
if (chosen !== null) dataset.chosen = '';
