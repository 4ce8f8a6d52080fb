// Package thumbnails makes thumbnails of uploaded images in the background. Endpoints only queue images: package wire
// starts no goroutine and no timer of its own.
//
//	endpoint ──Add──▶ queue ──▶ worker: make file ──▶ record state ──▶ render waiting messages
//	                    ▲                                                    │
//	                    └──────────────── once more, 10 seconds later ───────┘
//
// Thumbnails can be lost at any time: a file that is missing is made when a client requests it, and the worker catches
// up after a restart.
package thumbnails
