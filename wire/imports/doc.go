// Package imports is the neutral form of an organization that another chat server exported.
//
//	archive (fs.FS) --> a format's Open --> Source, one for each organization
//	                                          |
//	                                          v  Source.Read
//	                         records, in the order of their stages --> Sink (the import engine)
//	                                                                      |
//	files by their content <-- Source.Open <------------------------------+
//
// The formats are the packages below this one: zulip, slack, mattermost, rocketchat and teams. Each has
//
//	func Open(archive fs.FS, o imports.Options) ([]imports.Source, error)
//
// The contract between a format and the engine:
//
//   - A format reads only the archive that it is given, and writes only through Options.Sorter. It streams: its memory
//     does not grow with the number of messages, reactions or files. Users, channels, groups and emoji may be in
//     memory.
//   - Keys are texts that the format chooses. A record refers to other records by their keys. A key is unique within
//     its type. A record comes after the records that it refers to, except that a User may name a bot owner of any
//     later User.
//   - Read calls the sink in the order of the stages: Organization, Emoji, User, Group, Channel, Subscription, the
//     personal records, Message. Messages may come in any order: the engine sorts them by Message.Order, then by their
//     arrival. Read may be called more than once, and returns the same records in the same order each time.
//   - The engine checks references, names, lengths, times and duplicates, and drops and counts invalid records. A
//     format drops data that has no meaning in Parley, with Sink.Drop. Nothing is left out without a count.
//   - Texts are Markdown of Parley. The format converts mentions, emphasis and links; the engine renders. A text may
//     contain the address of a file as File.Address; the engine replaces it with the address of the stored file.
//   - A value, row or file that cannot be read is left out and counted with its place, with Sink.DropAt: one bad value
//     costs one value. A conversation whose row is lost becomes a private one.
//   - An error of Read refuses the whole import: nothing can be read, or a part is missing. Archives are hostile:
//     sizes, depths and cycles are bounded, paths are checked with fs.ValidPath, and no record causes a panic.
package imports
