// Package mail sends the server's emails and receives email for channels and replies to emails.
//
// Outgoing email is an outbox job, which the realm stores until the email has been delivered or given up:
//
//	endpoint ─▶ Composer ─▶ outbox job ─▶ dispatch ─▶ Sender ─▶ SMTP server, or a folder
//	                            ▲
//	message not read in time ─▶ dispatch ─▶ MissedMessages
//
// The contract:
//
//   - An email is delivered at least once. Its Message-ID follows from the job, so a mail program can recognize the
//     copy that a crash causes.
//   - Sender repeats a delivery that failed for now, after growing pauses. It gives an email up, and logs that, when
//     the SMTP server rejects it permanently, after the last pause, or after maxAge.
//   - An email whose link holds a secret is stored without it. Sender adds the link.
//
// Incoming email becomes messages:
//
//	SMTP client ─▶ SMTPServer ─▶ Receiver: parseMail, checks ─▶ Mailboxes.Post, PostReply
//
// The contract:
//
//   - An address is accepted only if a channel has its token, or if the server made it for replies to one email.
//   - A reply is posted as a message of the user that the email was sent to, if that user sent it: see SenderCheck.
//     Mails of programs and lists are no replies.
//   - Nothing of an incomplete mail is posted. If the server closes meanwhile, the sender gets a temporary
//     error and sends it again.
package mail
