// matches reports whether each word of a query begins a word of a name.
export function matches(name: string, query: string): boolean {
  const words = name.toLowerCase().split(/\s+/);
  return query.split(/\s+/).every((q) => words.some((w) => w.startsWith(q))) || name.toLowerCase().startsWith(query);
}
