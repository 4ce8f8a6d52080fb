// Package teams reads exports of Microsoft Teams: a folder of the answers of Microsoft Graph.
//
//	users/usersList.json                  accounts that are active
//	users/USER/messages_USER.json         messages of the chats of a user
//	teams/teamsList.json                  names and descriptions of teams
//	teams/teamsSettings.json              who sees a team, and whether it is archived
//	teams/TEAM/channels_TEAM.json         channels of a team
//	teams/TEAM/teamMembers_TEAM.json      members of a team
//	teams/TEAM/messages_TEAM.json         messages of all channels of a team, in any order
//
// A team becomes a channel, and a channel of the team becomes a topic in it. A post with a subject or with replies gets
// a topic of its own if the operator wants it. Users, teams, channels, chats and the titles of posts with replies are
// in memory; messages are not.
//
// The export has no roles and no members of private channels. With a token, both are read from Microsoft Graph.
package teams
