// The value of a profile field: text, a link, a date, names of users.
import { FieldType, type ProfileField } from "../api/types.ts";
import { Content } from "../content/content.tsx";
import { userName } from "../store/queries.ts";
import { read } from "../store/store.ts";
import { formatDate } from "../ui/time.ts";

interface Account {
  subtype: string;
  url_pattern?: string;
}

// accountURL returns the address of an external account, or "".
function accountURL(f: ProfileField, user: string): string {
  const data = parsed<Account>(f.field_data, { subtype: "" });
  const known = read("realm").realm_default_external_accounts ?? {};
  const pattern = data.url_pattern ?? known[data.subtype]?.url_pattern ?? "";
  return pattern.replace("%(username)s", encodeURIComponent(user));
}

export function parsed<T>(json: string, otherwise: T): T {
  try {
    return JSON.parse(json) as T;
  } catch {
    return otherwise;
  }
}

function link(address: string, text: string) {
  if (!/^https?:\/\//i.test(address)) return text;
  return (
    <a href={address} target="_blank" rel="noopener noreferrer">
      {text}
    </a>
  );
}

export function FieldValue({ field: f, value, rendered }: { field: ProfileField; value: string; rendered?: string }) {
  switch (f.type) {
    case FieldType.choice:
      return <>{parsed<Record<string, { text: string }>>(f.field_data, {})[value]?.text ?? value}</>;
    case FieldType.users:
      return <>{parsed<number[]>(value, []).map((x) => userName(x)).join(", ")}</>;
    case FieldType.date:
      return <>{formatDate(Date.parse(value + "T12:00:00") / 1000)}</>;
    case FieldType.link:
      return <>{link(value, value)}</>;
    case FieldType.account:
      return <>{link(accountURL(f, value), value)}</>;
  }
  return rendered ? <Content html={rendered} /> : <>{value}</>;
}
