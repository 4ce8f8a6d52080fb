// Package swarm is a load client for tens of thousands of HTTP/1.1 connections: one thread, one epoll, and no
// goroutine and no buffer for a waiting connection.
//
// A Loop and everything in it (connections, timers, callbacks) belongs to the goroutine that opened it, so nothing
// is locked, and a scenario is a set of callbacks that run between two system calls. A waiting long poll costs one
// Conn; a delivery costs one read, one write and the scan of its bytes. A Pool shares connections between calls
// that are not long polls.
//
// It supports HTTP and HTTPS to IPv4 addresses only.
package swarm
