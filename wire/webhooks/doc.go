// Package webhooks calls the services of outgoing-webhook bots and sends their answers as the bot.
//
//	message that triggers a bot ─▶ outbox job ─▶ dispatch ─▶ Client.Handle
//	                                                            │ buildRequest, POST (up to 3 attempts)
//	                                                            ▼
//	                    bot's message ◀─ parseAnswer ◀─ answer of the service
//	                    bot's message, report to the owner ◀─ failure
//
// The contract:
//
//   - The realm stores a limited number of calls. The calls of one bot run one after the other, so an answer never
//     overtakes an earlier one, and a slow service delays only its own bot.
//   - The answer is sent and the job finished in one turn. A crash before that turn repeats the call, with the same
//     Idempotency-Key.
//   - Addresses are checked when they are dialed, after the name was resolved. So a bot cannot reach the server's own
//     network. The bot's owner does not learn IP addresses; they are logged only.
package webhooks
