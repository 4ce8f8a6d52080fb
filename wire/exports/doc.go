// Package exports writes the data exports that users ask for, one after the other.
package exports
