// Package mattermost reads bulk exports of Mattermost.
//
// The file is read three times: for everything but messages and for the names of the senders, for the followers of
// threads, and for the messages. Each team becomes an organization. A message with replies becomes a topic.
package mattermost
