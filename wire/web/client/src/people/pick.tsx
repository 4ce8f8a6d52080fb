// Lists of people with a button each, and the form that adds one: subscribers of channels, members of groups.
import { useState } from "preact/hooks";
import { plural, t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { userName } from "../store/queries.ts";
import { isShort } from "../store/people.ts";
import { read } from "../store/store.ts";
import type { PeopleQuery } from "../api/people.ts";
import { type Found, useFound } from "./found.ts";
import { Avatar } from "../ui/avatar.tsx";
import type { FormName } from "../forms/form_names.ts";
import { SettingsForm } from "../forms/forms.tsx";
import { PersonName } from "./card.tsx";

const maxShown = 100; // of a list: a search finds the others

// PersonForm adds one of the active users that are not in a set.
export function PersonForm(p: { form: FormName; title: string; button: string; without: Set<number>; run: (user: number) => Promise<unknown> }) {
  const others = [...read("users").values()].filter((u) => u.is_active && !u.is_system_bot && !p.without.has(u.user_id));
  others.sort((a, b) => a.full_name.localeCompare(b.full_name));
  return (
    <SettingsForm
      form={p.form}
      title={p.title}
      button={p.button}
      disabled={others.length === 0 && !isShort()}
      fields={[{ name: "user", label: t("User"), kind: "choice", required: true, options: others.map((u) => ({ value: String(u.user_id), label: u.full_name, user: u.user_id })) }]}
      run={(v) => p.run(v.number("user"))}
    />
  );
}

// FoundPeople is PeopleList for a channel or group of which not all members are known: the server searches.
export function FoundPeople(p: { label: string; of: Omit<PeopleQuery, "query">; action: string; may: (user: number) => boolean; run: (user: number) => Promise<unknown> }) {
  const [query, setQuery] = useState("");
  const found = useFound(query, p.of);
  return (
    <>
      <input class="input" type="search" aria-label={t("Filter")} placeholder={t("Filter")} value={query} onInput={(e) => setQuery(e.currentTarget.value)} />
      <ul class="people-list" aria-label={p.label}>
        {found.ids.map((id) => (
          <li key={id}>
            <Avatar id={id} size={24} />
            <PersonName id={id} class="grow" />
            {p.may(id) && (
              <button type="button" class="button small quiet" aria-label={`${p.action}: ${userName(id)}`} onClick={() => void attempt(p.run(id)).then(() => found.reload())}>
                {p.action}
              </button>
            )}
          </li>
        ))}
        {found.ids.length === 0 && !found.loading && <li class="quiet">{t("No users")}</li>}
      </ul>
      <ShowMore of={found} />
    </>
  );
}

// ShowMore fetches the next users of a search.
export function ShowMore({ of: found }: { of: Found }) {
  if (!found.more) return null;
  return (
    <button type="button" class="button small quiet" disabled={found.loading} onClick={found.next}>
      {t("Show more")}
    </button>
  );
}

export function PeopleList(p: { label: string; ids: number[]; action: string; may: (user: number) => boolean; run: (user: number) => Promise<unknown> }) {
  const [query, setQuery] = useState("");
  const q = query.trim().toLowerCase();
  const found = p.ids.map((id) => ({ id, name: userName(id) })).filter((x) => x.name.toLowerCase().includes(q));
  found.sort((a, b) => a.name.localeCompare(b.name));
  return (
    <>
      {p.ids.length > 10 && (
        <input class="input" type="search" aria-label={t("Filter")} placeholder={t("Filter")} value={query} onInput={(e) => setQuery(e.currentTarget.value)} />
      )}
      <ul class="people-list" aria-label={p.label}>
        {found.slice(0, maxShown).map(({ id, name }) => (
          <li key={id}>
            <Avatar id={id} size={24} />
            <PersonName id={id} class="grow" />
            {p.may(id) && (
              <button type="button" class="button small quiet" aria-label={`${p.action}: ${name}`} onClick={() => void attempt(p.run(id))}>
                {p.action}
              </button>
            )}
          </li>
        ))}
        {found.length === 0 && <li class="quiet">{t("No users")}</li>}
      </ul>
      {found.length > maxShown && <p class="quiet">{plural(found.length - maxShown, "{count} more user", "{count} more users")}</p>}
    </>
  );
}
