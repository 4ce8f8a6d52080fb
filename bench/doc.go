// Package bench is Parley's load generator, the command `parley bench`. It sends plain HTTP to a Zulip-compatible
// server, measures latency, throughput and cost, and verifies at the same time that the server meets its guarantees,
// such as that no event is lost. README.md explains each figure.
//
// A run goes from scenario to phases to figures:
//
//   - A Scenario is plain data: the size of the crowd, the event queues, and a list of phases. Flags and JSON files
//     change a built-in scenario.
//   - The harness starts a server (--self) or uses a running one, creates the crowd, and opens one long poll for each
//     queue. A ledger then records which poller must receive which message.
//   - A Phase sends requests in one way: rounds, an open loop at a rate, a closed loop, a share of an earlier phase, or
//     one burst. It ends when all sends are answered and all their events are received.
//   - A phase yields figures named PHASE.KIND, for example open.send_p99. Repeated runs yield the median and range, and
//     with --floor ratios to a bare epoll server. A figure is rejected if the generator or another process was the
//     bottleneck.
//   - Compare shows the differences of two results, targets checks figures against limits, hunt searches for the most
//     users inside a Gate.
//
// Latencies are measured from the intended time of a request, so the delays that a stalling server causes to later
// requests are included (no coordinated omission). A broken guarantee is a violation: the run continues, prints the
// first violation of each kind, and ends with exit code 1.
//
// All clients of a run share one goroutine and one epoll loop (package swarm). Everything random derives from the
// seed of the scenario. Other packages: crowd decides the users' actions, mirror keeps a client's state, and floor
// is the bare server.
package bench
