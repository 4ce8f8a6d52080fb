// Package scim serves SCIM 2.0 (RFC 7643, RFC 7644): the login provider of a company makes, changes and deactivates the
// accounts of its people, and tells who is in which group.
//
//	/scim/v2/Users, /scim/v2/Groups ── library: schemas, filters, paths ──► one command of the realm
//
// The contract:
//
//   - A request needs a token of the operator (parley scim token). Its rights are accounts, groups, or reading only.
//   - A request is carried out as a whole or not at all: it is one turn of the realm.
//   - Owners are read, and never made or changed. Bots and accounts of the system are not seen.
//   - An account whose attribute active is false, or that is deleted, is deactivated at once: API keys, event queues
//     and browser sessions end in the same turn. A deleted account is not seen any more. Its messages remain.
//   - The account has one email address and one role. Names are stored as the client wrote them; displayName is the
//     name that users see.
package scim
