// Package shape describes JSON values, and compares values with their description. The shape of an answer or event of
// package wire is that of its Go struct, see [StructFields]. Tests compare every real answer with it, and it with the
// description of the protocol in package contract. The same shapes become schemas of the OpenAPI document.
//
//	Go struct ──Of──▶ Shape ──Check──▶ Findings   one for each difference
//	                    └────Schema──▶ JSON Schema
//
// A Shape is not changed after it has been made, except through FindMutable. It is safe for concurrent use.
package shape
