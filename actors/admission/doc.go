// Package admission decides, as plain data, when the commands of an organization may have their turn: Lag estimates how
// long events will wait until they are delivered, Room holds the commands that have to wait, fairly between accounts.
package admission
