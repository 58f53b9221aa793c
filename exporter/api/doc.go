// Package api is how others talk to the exporter: the wire types, the paths, and
// a client. It is the only exporter package that the controller imports.
//
// In come progress reports from inside jobs; out go the jobs of a node, their
// samples and marks, and what the node can measure. Everything is JSON over HTTP
// on a Unix socket whose peer credentials name the caller: users see their own
// jobs, root sees all. The package never measures anything.
package api
