// Two sentences beside each other: which tokens stand for each other.

// The longest common run of tokens is matched; between matches, tokens are paired in order.
export function align(a, b) {
  const longest = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      longest[i][j] = a[i] === b[j] ? 1 + longest[i + 1][j + 1] : Math.max(longest[i + 1][j], longest[i][j + 1]);
  const columns = [];
  let [i, j, left, right] = [0, 0, [], []];
  const flush = () => {
    for (let at = 0; at < Math.max(left.length, right.length); at++)
      columns.push({ a: left[at] ?? null, b: right[at] ?? null, same: false });
    [left, right] = [[], []];
  };
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      flush();
      columns.push({ a: i++, b: j++, same: true });
    } else if (j >= b.length || (i < a.length && longest[i + 1][j] >= longest[i][j + 1])) left.push(i++);
    else right.push(j++);
  }
  flush();
  return columns;
}
