// Package rocketchat reads dumps of Rocket.Chat: folders that mongodump has written.
//
// Each file NAME.bson is the documents of a collection, one after the other. Users, rooms and emoji are in memory, and
// for each uploaded file its position in the dump; messages are not.
package rocketchat
