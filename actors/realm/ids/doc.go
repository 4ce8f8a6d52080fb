// Package ids has the types of ids within an organization, and compressed sets of ids.
//
// It is the only package that uses the Roaring bitmap library in the realm's data. It depends on no other package of
// the server.
package ids
