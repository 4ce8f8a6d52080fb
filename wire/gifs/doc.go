// Package gifs asks a provider of animated pictures on behalf of users, with the interface of GIPHY or that of Tenor,
// which KLIPY has too. So the provider does not learn who searches, and clients need no access to its interface.
//
//	wire.findGIFs ──► Provider.Find ──► cache ──► place ──► GET URL/search
//
// The contract:
//
//   - Clients of the protocol that ask the provider themselves get the key by Keys, as with the reference server.
//   - A request, an answer, the time for it, the requests at a time and the cache are bounded. An answer that is of no
//     use is a refusal that does not quote it.
//   - Of an answer only addresses of the web, sizes and titles are used. Titles are plain text for the caller.
package gifs
