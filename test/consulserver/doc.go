// Package consulserver is the part of Consul's HTTP API that the project uses, in one
// process and in memory, for tests where there is no Consul.
//
// Input: HTTP requests; output: the answers that the documentation and the published
// client of Consul describe: keys by name and by prefix, transactions of one checked write,
// locks, sessions that live for twice their time to live, the lock delay, and services in
// the catalog. A key that its session ended with stays locked for the lock delay, and a
// released key is free at once.
//
// It was written from the documentation, and its tests run against an agent of Consul as
// well where one is on PATH. It never blocks a query, replicates, checks health or knows
// rules of access (but for one token); it answers everything else with 404.
package consulserver
