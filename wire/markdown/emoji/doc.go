// Package emoji holds the Unicode emoji: their codes, the names that users write between colons, and which name is
// the canonical one. The table is generated and read once at start.
//
// A code is the hexadecimal code points joined with dashes, without variation selectors ("1f937-200d-2640").
package emoji
