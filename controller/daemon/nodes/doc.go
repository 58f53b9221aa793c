// Package nodes reaches the exporters of a cluster: one for everything, or one on
// each node.
//
// In come the name of a node and what is asked of its exporter; out goes the answer,
// or why there is none. Where the exporter of a node is, a pattern says or a Finder
// knows, whose answer is used for half a minute, sooner asked for again where a node is
// not in it, and kept where there is no newer one. A client is made when a node is first asked about and
// forgotten when nobody asks any more. An exporter that does not answer is silent:
// from then on what is asked of it fails at once, and it is tried beside that, now
// and then, until it answers, so that it holds up nobody; until it has shown that it
// answers, it is asked one thing at a time. The operator hears once that it fell
// silent, and once that it is back. The package never measures and never decides what
// an answer means.
package nodes
