// The inbox: all conversations with unread messages, by channel. Channels and folders can be collapsed.
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { plural, t } from "../i18n/text.ts";
import { openChannelMenu, openTopicMenu } from "../sidebar/menus.tsx";
import { markRead } from "../store/actions.ts";
import { Confirm, Menu, openDialog, openPopover } from "../ui/dialogs.tsx";
import { Icon } from "../ui/icons.tsx";
import { Header } from "./header.tsx";
import { PolicyMark, TopicPolicyButton } from "../channels/topic_policy.tsx";
import { inboxFolders, unreadOf, type InboxFolder, type InboxRow, type InboxSection, type TopicChoice } from "./inbox_data.ts";

const firstShown = 100; // rows; more are drawn when the list is scrolled

const filter = signal(""); // view state

// choice is view state that this browser keeps.
const choice = signal<TopicChoice>((localStorage.getItem("inbox-topics") as TopicChoice | null) ?? "unmuted");
choice.subscribe((v) => localStorage.setItem("inbox-topics", v));

// collapsed is view state that this browser keeps: the keys of the channels and folders that show only their heading.
const collapsed = signal<ReadonlySet<string>>(new Set(JSON.parse(localStorage.getItem("inbox-collapsed") ?? "[]") as string[]));
collapsed.subscribe((v) => localStorage.setItem("inbox-collapsed", JSON.stringify([...v])));

function isCollapsed(key: string): boolean {
  return collapsed.value.has(key) && !filter.value.trim(); // a filter shows all that it finds
}

function toggle(key: string): void {
  const now = new Set(collapsed.value);
  if (!now.delete(key)) now.add(key);
  collapsed.value = now;
}

// lastPosition is view state. It is restored when the view is opened again: its scroll position, and the row with the focus.
const lastPosition = { scrollTop: 0, key: "", index: 0 };

function choices(): { choice: TopicChoice; label: string }[] {
  return [
    { choice: "followed", label: t("Followed topics") },
    { choice: "unmuted", label: t("Unmuted topics") },
    { choice: "all", label: t("All topics") },
  ];
}

function askReadAll(folders: readonly InboxFolder[]): void {
  const ids = unreadOf(folders.flatMap((f) => f.sections));
  const text = plural(ids.length, "{count} message is marked as read.", "{count} messages are marked as read.");
  openDialog(<Confirm title={t("Mark all as read?")} text={text} button={t("Mark as read")} run={() => markRead(ids)} />);
}

export function Inbox() {
  const folders = inboxFolders(choice.value, filter.value);
  const [shown, setShown] = useState(firstShown);
  const page = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const el = page.current!;
    el.scrollTop = lastPosition.scrollTop;
    if (document.activeElement !== document.body || !lastPosition.key) return;
    const row = itemOf(el, lastPosition.key) ?? items(el)[lastPosition.index] ?? items(el).at(-1); // another one if all of it is read now
    row?.focus({ preventScroll: true });
  }, []);
  useEffect(() => setShown(firstShown), [filter.value, choice.value]);
  const limit = { remaining: shown };
  return (
    <>
      <Header>
        <span class="view-icon">
          <Icon name="inbox" />
        </span>
        <h1 class="view-title">{t("Inbox")}</h1>
        {folders.length > 0 && (
          <button type="button" class="icon-button" aria-label={t("Mark all as read")} title={t("Mark all as read")} onClick={() => askReadAll(folders)}>
            <Icon name="checkCircle" />
          </button>
        )}
      </Header>
      <div
        class="page"
        tabIndex={-1}
        ref={page}
        onKeyDown={keys}
        onFocusIn={remember}
        onScroll={(e) => {
          const el = e.currentTarget;
          lastPosition.scrollTop = el.scrollTop;
          if (el.scrollTop + el.clientHeight > el.scrollHeight - 400) setShown((n) => n + firstShown);
        }}
      >
        <Tools />
        {folders.length === 0 && <Empty />}
        {folders.map((f) => (
          <Folder key={f.key} folder={f} limit={limit} />
        ))}
      </div>
    </>
  );
}

function Tools() {
  const now = choices().find((x) => x.choice === choice.value) ?? choices()[1]!;
  const items = choices().map((x) => ({
    label: x.choice === "unmuted" ? t("Unmuted topics (standard view)") : x.label,
    icon: x.choice === now.choice ? ("check" as const) : undefined,
    run: () => (choice.value = x.choice),
  }));
  return (
    <div class="inbox-tools">
      <button type="button" class="button small quiet" aria-haspopup="menu" aria-label={t("Topics that are listed: {choice}", { choice: now.label })} onClick={(e) => openPopover(e.currentTarget, <Menu label={t("Topics")} items={items} />)}>
        {now.label}
        <Icon name="chevronDown" size={14} />
      </button>
      <input class="input" type="search" data-inbox-filter placeholder={t("Filter")} aria-label={t("Filter conversations")} value={filter.value} onInput={(e) => (filter.value = e.currentTarget.value)} />
    </div>
  );
}

function Empty() {
  if (filter.value.trim() || choice.value === "followed") {
    const reset = (): void => {
      filter.value = "";
      choice.value = "unmuted";
    };
    return (
      <div class="empty-view">
        <p class="empty-title">{t("No unread conversation fits.")}</p>
        <button type="button" class="button quiet" onClick={reset}>
          {t("Show all unmuted topics")}
        </button>
      </div>
    );
  }
  return (
    <div class="empty-view">
      <p class="empty-title">{t("All read.")}</p>
      <p class="quiet">{t("New messages for you will appear here.")}</p>
      <a class="button quiet" href="#feed">
        {t("Open the combined feed")}
      </a>
    </div>
  );
}

// Limit counts the rows that may still be drawn.
interface Limit {
  remaining: number;
}

function Folder({ folder: f, limit }: { folder: InboxFolder; limit: Limit }) {
  const key = `folder ${f.key}`;
  const closed = f.title !== "" && isCollapsed(key);
  return (
    <>
      {f.title && (
        <h2 class="inbox-folder" data-key={key}>
          <button type="button" class="side-toggle" data-list-item data-toggle={key} aria-expanded={!closed} onClick={() => toggle(key)}>
            <Icon name={closed ? "chevronRight" : "chevronDown"} size={14} />
            <span>{f.title}</span>
          </button>
          <span class="grow" />
          {closed && <Unread ids={unreadOf(f.sections)} mention={f.sections.some((x) => x.rows.some((row) => row.mention))} />}
        </h2>
      )}
      {!closed && f.sections.map((x) => limit.remaining > 0 && <Section key={x.key} section={x} limit={limit} head={f.title ? "h3" : "h2"} />)}
    </>
  );
}

function Section({ section: x, limit, head: Head }: { section: InboxSection; limit: Limit; head: "h2" | "h3" }) {
  const closed = isCollapsed(x.key);
  const { channel } = x;
  const rows = closed ? [] : x.rows.slice(0, limit.remaining);
  limit.remaining -= rows.length + 1;
  const ids = unreadOf([x]);
  return (
    <section class={`inbox-section ${x.muted ? "muted" : ""}`} aria-label={x.title}>
      <Head
        class="inbox-head"
        data-key={x.key}
        onClick={(e) => {
          if (!(e.target as Element).closest("a, button")) toggle(x.key);
        }}
      >
        <button type="button" class="inbox-toggle" data-list-item data-toggle={x.key} aria-expanded={!closed} aria-label={x.title} onClick={() => toggle(x.key)}>
          <Icon name={closed ? "chevronRight" : "chevronDown"} size={15} />
        </button>
        <span class="channel-mark" style={x.color ? { color: x.color } : undefined}>
          <Icon name={x.icon} size={16} />
        </span>
        <a href={x.href}>{x.title}</a>
        <span class="grow" />
        <Unread ids={ids} mention={x.rows.some((row) => row.mention)} accent={channel === null} />
        <span class="inbox-actions">
          <ReadButton ids={ids} label={t("Mark as read: {name}", { name: x.title })} />
          {channel !== null && (
            <button type="button" class="icon-button" aria-haspopup="menu" aria-label={t("Actions of {channel}", { channel: x.title })} onClick={(e) => openChannelMenu(e.currentTarget, channel)}>
              <Icon name="dots" size={15} />
            </button>
          )}
        </span>
      </Head>
      {!closed && (
        <ul>
          {rows.map((row) => (
            <Row key={row.key} row={row} />
          ))}
        </ul>
      )}
    </section>
  );
}

function Row({ row }: { row: InboxRow }) {
  const { place } = row;
  return (
    <li class={`inbox-row ${row.muted ? "muted" : ""} ${row.mention ? "mentioned" : ""}`} data-key={row.key}>
      <a class="inbox-entry" href={row.href} data-list-item>
        {row.resolved && <Icon name="check" size={14} />}
        <span class={`grow ${"topic" in place && place.topic === "" ? "empty-topic" : ""}`}>{row.label}</span>
        {"topic" in place && <PolicyMark channel={place.channel} topic={place.topic} />}
        <Unread ids={row.ids} mention={row.mention} accent={"people" in place} />
      </a>
      <span class="inbox-actions">
        {"topic" in place && <TopicPolicyButton channel={place.channel} topic={place.topic} />}
        <ReadButton ids={row.ids} label={t("Mark as read")} />
        {"topic" in place && (
          <button type="button" class="icon-button" aria-haspopup="menu" aria-label={t("Actions of the topic")} onClick={(e) => openTopicMenu(e.currentTarget, place.channel, place.topic)}>
            <Icon name="dots" size={15} />
          </button>
        )}
      </span>
    </li>
  );
}

function Unread({ ids, mention, accent }: { ids: { size: number } | readonly number[]; mention: boolean; accent?: boolean }) {
  const n = "size" in ids ? ids.size : ids.length;
  return (
    <>
      {mention && (
        <span class="mention-mark" title={t("You are mentioned")}>
          @
        </span>
      )}
      <span class={`count ${mention || accent ? "accent" : ""}`} aria-label={t("{count} unread", { count: n })}>
        {n}
      </span>
    </>
  );
}

function ReadButton({ ids, label }: { ids: Iterable<number>; label: string }) {
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={label}
      title={label}
      onClick={(e) => {
        focusNext(e.currentTarget);
        markRead(ids);
      }}
    >
      <Icon name="check" size={15} />
    </button>
  );
}

function itemOf(page: Element, key: string): HTMLElement | null {
  return page.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"] [data-list-item]`);
}

function items(page: Element): HTMLElement[] {
  return [...page.querySelectorAll<HTMLElement>("[data-list-item]")];
}

function remember(e: FocusEvent): void {
  const row = (e.target as Element).closest<HTMLElement>("[data-key]");
  if (!row) return;
  lastPosition.key = row.dataset.key!;
  lastPosition.index = items(row.closest(".page")!).findIndex((x) => row.contains(x));
}

// focusNext moves the focus from a row, or from the rows of a channel, before they disappear.
function focusNext(button: HTMLElement): void {
  const page = button.closest(".page")!;
  const leaving = button.closest(".inbox-row") ?? button.closest(".inbox-section")!;
  const all = items(page);
  const at = all.findIndex((x) => leaving.contains(x));
  const next = all.slice(at).find((x) => !leaving.contains(x)) ?? all[at - 1];
  next?.focus({ preventScroll: true });
}

// keys moves the focus within the list: to the left and right between a row and its buttons, to the left from a row to
// the heading of its channel. On a heading, left collapses and right expands. The shortcuts for up and down go from row
// to row.
function keys(e: KeyboardEvent): void {
  const target = e.target as HTMLElement;
  const page = e.currentTarget as HTMLElement;
  if (e.ctrlKey || e.metaKey || e.altKey || e.shiftKey) return;
  if (target.matches("[data-inbox-filter]")) {
    if (e.key !== "ArrowDown") return;
    e.preventDefault();
    items(page)[0]?.focus();
    return;
  }
  const row = target.closest<HTMLElement>("[data-key]");
  if (!row) return;
  if (e.key === "ArrowUp" && items(page)[0] === target) {
    e.preventDefault();
    page.querySelector<HTMLElement>("[data-inbox-filter]")!.focus();
    return;
  }
  const rtl = getComputedStyle(page).direction === "rtl";
  const back = e.key === (rtl ? "ArrowRight" : "ArrowLeft");
  if (!back && e.key !== (rtl ? "ArrowLeft" : "ArrowRight")) return;
  e.preventDefault();
  const { toggle: key } = target.dataset;
  if (key !== undefined && isCollapsed(key) !== back) return toggle(key);
  // Devices with a touch screen show fewer buttons, and may have a keyboard.
  const stops = [...row.querySelectorAll<HTMLElement>("a, button")].filter((x) => x.getClientRects().length > 0);
  const at = stops.indexOf(target);
  if (back && at === 0) row.closest("section")?.querySelector<HTMLElement>("[data-toggle]")?.focus();
  else stops[at + (back ? -1 : 1)]?.focus();
}
