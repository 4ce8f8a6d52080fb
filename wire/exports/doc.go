// Package exports writes the data exports that users ask for, one after the other: of organizations, and of the data of
// one user.
package exports
