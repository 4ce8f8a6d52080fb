// The users of the organization: roles, names, deactivation.
import { useState } from "preact/hooks";
import * as api from "../api/administration.ts";
import { Role, type User } from "../api/types.ts";
import { plural, t } from "../i18n/text.ts";
import { roleName } from "../people/card.tsx";
import { attempt } from "../store/actions.ts";
import { read } from "../store/store.ts";
import { FilterField, RowTable } from "../forms/forms.tsx";

const maxRows = 100; // of one table; the filter finds the others

export function Users() {
  const [filter, setFilter] = useState("");
  const [inactive, setInactive] = useState(false);
  const me = read("me");
  const wanted = filter.trim().toLowerCase();
  const fits = (u: User): boolean => {
    const text = `${u.full_name} ${u.delivery_email ?? u.email}`.toLowerCase();
    return !u.is_system_bot && !u.is_deleted && u.is_active !== inactive && text.includes(wanted);
  };
  const found = [...read("users").values()].filter(fits).sort((a, b) => a.full_name.localeCompare(b.full_name));
  const others = (u: User): boolean => me.is_admin && u.user_id !== me.user_id;
  return (
    <>
      <FilterField value={filter} set={setFilter} />
      <label class="field switch">
        <input type="checkbox" checked={inactive} onChange={(e) => setInactive(e.currentTarget.checked)} />
        <span class="grow">{t("Show deactivated users")}</span>
      </label>
      <RowTable
        label={t("Users")}
        rows={found.slice(0, maxRows)}
        name={(u) => u.full_name}
        empty={t("No users")}
        columns={[
          { title: t("Name"), cell: (u) => u.full_name },
          { title: t("Email"), cell: (u) => u.delivery_email ?? u.email },
          { title: t("Role"), cell: (u) => <RoleChoice user={u} disabled={!others(u) || !u.is_active} /> },
        ]}
        actions={[
          {
            label: t("Deactivate"),
            icon: "trash",
            shown: (u) => others(u) && u.is_active,
            ask: t("The user is logged out everywhere and can no longer log in."),
            run: (u) => (u.is_bot ? api.deactivateBot(u.user_id) : api.deactivateUser(u.user_id)),
          },
          {
            label: t("Reactivate"),
            icon: "check",
            shown: (u) => others(u) && !u.is_active,
            run: (u) => api.reactivateUser(u.user_id),
          },
        ]}
      />
      {found.length > maxRows && (
        <p class="quiet">{plural(found.length - maxRows, "{count} more user", "{count} more users")}</p>
      )}
    </>
  );
}

function RoleChoice({ user: u, disabled }: { user: User; disabled: boolean }) {
  return (
    <select
      class="input"
      aria-label={t("Role of {name}", { name: u.full_name })}
      value={String(u.role)}
      disabled={disabled}
      onChange={(e) => {
        const field = e.currentTarget;
        void attempt(api.changeUser(u.user_id, { role: Number(field.value) }), () => (field.value = String(u.role)));
      }}
    >
      {Object.values(Role).map((r) => (
        <option key={r} value={String(r)}>
          {roleName(r)}
        </option>
      ))}
    </select>
  );
}
