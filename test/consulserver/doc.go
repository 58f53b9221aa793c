// Package consulserver is the part of Consul's HTTP API that the project uses, in one
// process and in memory, for tests where there is no Consul.
//
// In come HTTP requests; out come the answers that the documentation and the published
// client of Consul describe: keys with check-and-set, sessions, locks, recursion and
// blocking queries, transactions on keys, sessions with a time to live of which twice
// as much passes before they end, both behaviours of their end, the lock delay, and the
// catalog of nodes and services. Keys that a session ended with are not free before the
// lock delay has passed, and keys that were released are.
//
// It was written from the documentation, and its own tests run against an agent of
// Consul as well where one is on PATH. It never elects a leader, replicates or checks
// health: a test says when a node fails. Prepared queries, namespaces, rules of access
// (but for one token) and everything else are answered with 404.
package consulserver
