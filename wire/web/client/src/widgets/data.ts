// Polls and todo lists, made from the submessages of a message. Submessages that do not fit are left out.
import type { Submessage } from "../api/types.ts";

export interface Option {
  key: string;
  text: string;
  votes: Set<number>; // users
}

export interface Poll {
  question: string;
  options: Option[];
}

interface Task {
  key: string;
  text: string;
  note: string;
  done: boolean;
}

interface TodoList {
  title: string;
  tasks: Task[];
}

type Data = Record<string, unknown>;

// members returns the members of a value, none if it is no object.
function members(value: unknown): Data {
  return typeof value === "object" ? { ...value } : {};
}

function itemsOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function parse(s: Submessage | undefined): Data {
  try {
    return members(JSON.parse(s?.content ?? ""));
  } catch {
    return {};
  }
}

// widgetKind returns the kind of widget that a message has, "" for none.
export function widgetKind(list: Submessage[]): string {
  return list.length ? String(parse(list[0]).widget_type ?? "") : "";
}

export function pollOf(list: Submessage[], author: number): Poll {
  const extra = members(parse(list[0]).extra_data);
  const out: Poll = { question: String(extra.question ?? ""), options: [] };
  const add = (key: string, text: unknown): void => {
    if (typeof text !== "string" || out.options.some((o) => o.text === text)) return;
    out.options.push({ key, text, votes: new Set() });
  };
  itemsOf(extra.options).forEach((o, i) => add(`canned,${i}`, o));
  for (const s of list.slice(1)) {
    const d = parse(s);
    if (d.type === "new_option") add(`${s.sender_id},${d.idx}`, d.option);
    if (d.type === "question" && s.sender_id === author) out.question = String(d.question);
    const votes = d.type === "vote" ? out.options.find((o) => o.key === d.key)?.votes : undefined;
    if (d.vote === 1) votes?.add(s.sender_id);
    else if (d.vote === -1) votes?.delete(s.sender_id);
  }
  return out;
}

export function todoOf(list: Submessage[], author: number): TodoList {
  const extra = members(parse(list[0]).extra_data);
  const out: TodoList = { title: String(extra.task_list_title ?? ""), tasks: [] };
  const add = (key: string, d: Data): void => {
    if (typeof d.task !== "string" || out.tasks.some((x) => x.text === d.task)) return;
    out.tasks.push({ key, text: d.task, note: String(d.desc ?? ""), done: false });
  };
  itemsOf(extra.tasks).forEach((d, i) => add(`${i},canned`, members(d)));
  for (const s of list.slice(1)) {
    const d = parse(s);
    if (d.type === "new_task") add(`${d.key},${s.sender_id}`, d);
    if (d.type === "new_task_list_title" && s.sender_id === author) out.title = String(d.title);
    const task = d.type === "strike" ? out.tasks.find((x) => x.key === d.key) : undefined;
    if (task) task.done = !task.done;
  }
  return out;
}

// nextIndex returns a number that the user has not yet used for an option or task of the message.
export function nextIndex(list: Submessage[], me: number): number {
  const used = list.slice(1).filter((s) => s.sender_id === me).map((s) => Number(parse(s).idx ?? parse(s).key));
  return Math.max(0, ...used.filter(Number.isInteger)) + 1;
}

// Choice is a button of a bot: it sends a reply.
interface Choice {
  short: string;
  long: string;
  reply: string;
}

// choicesOf returns the heading and the buttons of a bot's form.
export function choicesOf(list: Submessage[]): { heading: string; choices: Choice[] } {
  const extra = members(parse(list[0]).extra_data);
  const choices = itemsOf(extra.choices).flatMap((x): Choice[] => {
    const { short_name, long_name, reply } = members(x);
    return typeof reply === "string" && reply ? [{ short: String(short_name ?? ""), long: String(long_name ?? reply), reply }] : [];
  });
  return { heading: String(extra.heading ?? ""), choices };
}
