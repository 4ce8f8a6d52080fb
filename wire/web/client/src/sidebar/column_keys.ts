// The keys of the columns at the sides: up and down go from the filter to the links and between them, and Enter in the
// filter opens the first link, as in Zulip.

// columnKeys returns the handler of keys of a column. links is the selector of the links that the filter finds.
export function columnKeys(links: string, clearFilter: () => void): (e: KeyboardEvent) => void {
  return (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.shiftKey || e.isComposing) return;
    const target = e.target as HTMLElement;
    const inFilter = target instanceof HTMLInputElement;
    const all = [...(e.currentTarget as Element).querySelectorAll<HTMLElement>(links)];
    if (e.key === "Enter" && inFilter && target.value.trim()) {
      if (!all[0]) return;
      e.preventDefault();
      all[0].click();
      clearFilter();
      target.blur();
      return;
    }
    const by = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    const at = all.indexOf(target);
    if (!by || (at < 0 && !inFilter)) return;
    e.preventDefault();
    if (at + by < 0) (e.currentTarget as Element).querySelector<HTMLElement>("input[type=search]")?.focus();
    else if (!(inFilter && by < 0)) all[at + by]?.focus();
  };
}
