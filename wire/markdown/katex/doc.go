// Package katex converts formulas to HTML with KaTeX itself, in an embedded JavaScript engine.
//
// KaTeX (katex.min.js, version in VERSION, MIT licence in LICENSE) is the unchanged file of its npm package.
// The engines are in a pool; each serves one caller at a time. A formula that exceeds its time is cancelled and
// its engine is discarded. Length, output, macros and stack depth of a formula are bounded. The output is checked
// against a list of elements and attributes before it is used.
package katex
