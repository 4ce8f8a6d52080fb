// Package sweep removes the files that no organization refers to any more.
package sweep
