// Package peer connects the nodes of a cluster: mutual TLS 1.3 with certificates that the cluster issues itself, tokens
// with which a new node gets its certificate, and links that carry messages of bytes.
//
// A Listener serves several protocols on one address; TLS chooses among them (ALPN). A link is one TLS connection on
// which gRPC multiplexes streams. grpc-go is used because the remote part of Proto.Actor needs up to 1.9 s to come back
// after a broken connection; see .github/docs/decisions/link.md.
//
// The package does not read the contents of messages.
package peer
