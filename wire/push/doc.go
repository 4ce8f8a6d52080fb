// Package push sends notifications to mobile devices: directly through Apple's and Google's services, or through a
// bouncer. A bouncer is a server that has an app's credentials and forwards the notifications of other servers.
//
//	realm turn ─▶ outbox job ─▶ dispatch ─┬▶ Notifier ─▶ newNotification ─▶ Pusher.notify ─▶ APNs, FCM or bouncer
//	                                      └▶ Registrar ───────────────────▶ Pusher.Register ─▶ bouncer
//	endpoint (test notification) ─▶ wire.Pusher ─▶ Pusher.Test, Pusher.TestEncrypted
//
// The contract:
//
//   - A user is notified of a message only while it is unread. An active user is notified only if no client of theirs
//     has received the message within seconds, or if they asked for it.
//   - A notification is sent at least once to each device. Only the devices where sending failed are tried again.
//     Repeated notifications have the same id, so Apple's devices show them once.
//   - A device that its service does not know any more is removed from the realm.
//   - Devices with a key get notifications that neither the bouncer nor the push service can read.
package push
