// Package api is how others talk to the exporter: the wire types, the paths, and
// a client. It is the only exporter package that the controller imports.
//
// The input is progress reports from inside jobs; the output is the jobs of a node, their
// samples and marks, and what the node can measure. Everything is JSON over HTTP on a Unix
// socket whose peer credentials name the caller: users see their own jobs, root and the
// exporter's readers see all. Other machines get the same over TLS with certificates on both
// sides. Callers who see all jobs may also report on behalf of a job that they name
// (PathReport). The package never measures anything.
//
// PROGRESS.md says how a job reports by itself that an epoch ended.
package api
