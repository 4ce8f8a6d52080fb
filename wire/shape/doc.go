// Package shape describes JSON values in a notation of one line, and compares values with it. Package wire declares
// each answer and event in this notation. Tests compare every real answer with its declaration, and with the
// description of the protocol in package contract. The same shapes become schemas of the OpenAPI document.
//
//	"{id: int, name?: str}" ──Parse──▶ Shape ──Check──▶ Findings   one for each difference
//	                                     └────Schema──▶ JSON Schema
//
// The notation:
//
//	int num str bool any    the plain types
//	[T] []                  an array; an array that is always empty
//	{a: T, b?: T}           an object with exactly these fields; b can be absent
//	{*: T}  {a: T, *: T}    an object whose other fields hold T
//	{a: T, ~b: T, c: T}     b and every field after it can be absent
//	A | B   T?              one of several shapes; T or null
//	'x'                     exactly this string; before a colon, a field name that is not a word
//	Name                    a named shape, which the caller of Parse resolves
//
// A Shape is not changed after it has been parsed, except through FindMutable. It is safe for concurrent use.
package shape
