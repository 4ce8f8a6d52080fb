// Package slack reads exports of Slack.
//
// The archive is read twice: first for the senders that users.json does not have, then for the messages. Messages of
// threads go through sorters, because the number in the topic of a thread depends on all threads of its day.
package slack
