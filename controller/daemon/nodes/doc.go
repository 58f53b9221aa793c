// Package nodes reaches the exporters of a cluster: one for everything, or one on each
// node.
//
// Input: the name of a node and a request; output: the answer of its exporter, or an
// error. A pattern or a Finder gives the exporter's address: a service in Nomad or Consul.
// Anyone who may run a job may register a service, so an address counts only with the node's
// certificate. The answer of a Finder is used for half a minute, for longer where there is
// no newer one, and is asked for again where a node is missing. A client exists from the
// first request for its node until ten minutes without one.
//
// An exporter that does not answer is silent: further requests fail at once, so that it
// delays no job, and a background probe tries it with growing pauses. Before its first
// answer it gets one request at a time. The log has one line when an exporter falls silent
// and one when it answers again. The package never measures and never interprets an answer.
package nodes
