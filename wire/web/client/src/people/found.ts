// The pages of a search for users on the server, for lists in large organizations.
import { useEffect, useRef, useState } from "preact/hooks";
import type { PeopleQuery } from "../api/people.ts";
import { pageOfPeople } from "../store/people.ts";

const typingPause = 150; // milliseconds

export interface Found {
  ids: number[];
  more: boolean;
  loading: boolean;
  next: () => void; // fetches the next page
  reload: () => void;
}

// useFound returns the users that a search finds, page by page. With enabled = false it asks nothing.
export function useFound(query: string, of: Omit<PeopleQuery, "query">, enabled = true): Found {
  const [ids, setIDs] = useState<number[]>([]);
  const [more, setMore] = useState(false);
  const [loading, setLoading] = useState(true);
  const asked = useRef(0);
  const load = async (offset: number): Promise<void> => {
    const mine = ++asked.current;
    setLoading(true);
    try {
      const page = await pageOfPeople({ query, ...of, offset });
      if (mine !== asked.current) return;
      setIDs((now) => [...new Set(offset ? [...now, ...page.ids] : page.ids)]);
      setMore(page.more);
    } catch {
      if (mine === asked.current) setMore(true); // another attempt is possible
    } finally {
      if (mine === asked.current) setLoading(false);
    }
  };
  useEffect(() => {
    if (!enabled) return;
    const timer = setTimeout(() => void load(0), query ? typingPause : 0);
    return () => {
      clearTimeout(timer);
      asked.current++;
    };
  }, [query, JSON.stringify(of), enabled]);
  return { ids, more, loading, next: () => void load(ids.length), reload: () => void load(0) };
}
