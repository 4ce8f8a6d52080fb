// Package preview fetches pages that messages link to and reads their metadata.
//
// It fetches nothing unless a Fetcher is created. A Fetcher connects only to public addresses and to the networks
// that New allows. The check is on the address of each connection, after the name is resolved and for every
// redirect, so that neither a name nor a redirect can lead to this machine or its network. Time, size and length of
// all parts are bounded.
package preview
