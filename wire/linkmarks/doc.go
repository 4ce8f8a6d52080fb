// Package linkmarks marks the messages with links that older programs did not count as such.
package linkmarks
