// Package handover replaces a server by a new process of the program without interrupting clients.
//
// A handover replaces a server by a new process (the successor) without interrupting clients. It starts on SIGHUP or
// `parley upgrade`:
//
//	predecessor                              successor
//	starts the program file, passes          reads its configuration
//	  listening sockets
//	serves                            <----  POST /lend: asks for a copy of the store
//	copies the store (hard links),    ---->  loads every organization from the copy
//	  writes no more rows
//	serves until long requests end    <----  POST /yield: is ready to take over
//	passes waiting polls and idle     ---->  accepts connections; requests wait in its backlog
//	  connections, stops, closes the store
//	                                         opens the store, applies the facts since the copy, serves
//
// The predecessor continues if the successor ends before it asks to take over. It ends a successor that hangs: see
// firstRequestTimeout and successorLoadTimeout. After the copy, the predecessor writes no rows, so that the journal
// contains everything that the copy lacks. If the copy fails, or rows were written after
// it, the successor loads the organizations after the predecessor has stopped, and requests wait longer. Event queues
// are in the data directory, so no client has to register again.
package handover
